import type {
  handleListing,
  newSuppression,
  Suppression,
  SuppressionSource,
  suppressionPath,
} from "../../schemas/email.ts";
import type { Infer } from "../../schemas/schema.ts";
import { addressDigest, sameAddress } from "../platform/address.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { listIds } from "../store/records.ts";
import { transact } from "../store/redis.ts";

/** The stored form of a suppression, with the canonical address. */
export function suppressionOf(
  address: string,
  more: { source: SuppressionSource; reason?: string; messageId?: string; at: number },
): Suppression {
  const { source, reason = source, messageId = null, at } = more;
  return { email: sameAddress(address), reason, source, messageId, createdAt: new Date(at).toISOString() };
}

/** Suppresses an address on the owner's request; an existing suppression stays. */
export async function addSuppression(
  runtime: Runtime,
  input: Infer<typeof newSuppression>,
): Promise<{ suppression: Suppression }> {
  const { handle, email, reason } = input;
  const at = runtime.now();
  const made = suppressionOf(email, { source: "OWNER", ...(reason ? { reason } : {}), at });
  const digest = addressDigest(email);
  const [, , stored] = await transact(runtime.redis, (transaction) => {
    transaction.hsetnx(keys.suppressed(handle), digest, JSON.stringify(made));
    transaction.zadd(keys.suppressions(handle), "NX", at, digest);
    transaction.hget(keys.suppressed(handle), digest);
  });
  return { suppression: JSON.parse(stored as string) as Suppression };
}

/** The handle's suppressions, newest first. */
export async function listSuppressions(
  runtime: Runtime,
  input: Infer<typeof handleListing>,
): Promise<{ suppressions: Suppression[]; nextCursor: string | null }> {
  const { ids, nextCursor } = await listIds(runtime, keys.suppressions(input.handle), input);
  const found = ids.length === 0 ? [] : await runtime.redis.hmget(keys.suppressed(input.handle), ...ids);
  return { suppressions: found.flatMap((json) => (json ? [JSON.parse(json) as Suppression] : [])), nextCursor };
}

/** Removes a suppression; idempotent. */
export async function removeSuppression(
  { redis }: Runtime,
  { handle, email }: Infer<typeof suppressionPath>,
): Promise<void> {
  const digest = addressDigest(email);
  await transact(redis, (transaction) => {
    transaction.hdel(keys.suppressed(handle), digest);
    transaction.zrem(keys.suppressions(handle), digest);
  });
}

/** Why an address is suppressed on a handle; undefined if it isn't. */
export async function findSuppression(
  { redis }: Pick<Runtime, "redis">,
  handle: string,
  address: string,
): Promise<Suppression | undefined> {
  const json = await redis.hget(keys.suppressed(handle), addressDigest(address));
  return json === null ? undefined : (JSON.parse(json) as Suppression);
}

/** True if an address is suppressed on a handle. */
export async function isSuppressed(
  { redis }: Pick<Runtime, "redis">,
  handle: string,
  address: string,
): Promise<boolean> {
  return (await redis.hexists(keys.suppressed(handle), addressDigest(address))) === 1;
}
