import { Buffer } from "node:buffer";
import type { newSuppression, Suppression, SuppressionSource } from "../../schemas/email.ts";
import type { Input } from "../../schemas/schema.ts";
import { addressDigest, canonicalAddress } from "../platform/address.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { type Listed, type ListInput, listIds } from "../store/paging.ts";
import { transact } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";

/** The stored form of a suppression, with the canonical address. */
export function suppressionOf(
  address: string,
  more: { source: SuppressionSource; reason?: string; messageId?: string; at: number },
): Suppression {
  const { source, messageId = null, at } = more;
  // Without lone surrogates: the JSON decoder of Redis refuses them.
  const reason = Buffer.from(more.reason ?? source).toString();
  return { email: canonicalAddress(address), reason, source, messageId, createdAt: new Date(at).toISOString() };
}

/** Replaces an erased person's address; not deliverable (RFC 2606). */
export const ERASED_ADDRESS = "erased@erased.invalid";

export function suppressionKeys(handle: string) {
  return { suppressed: keys.suppressed(handle), suppressions: keys.suppressions(handle) };
}

/** Suppresses an address on the owner's request; an existing suppression stays, unless its recipient may undo it. */
export async function addSuppression(
  runtime: Runtime,
  input: Input<"handle", typeof newSuppression>,
): Promise<{ suppression: Suppression }> {
  const { handle, email, reason } = input;
  const at = runtime.now();
  const made = suppressionOf(email, { source: "OWNER", ...(reason ? { reason } : {}), at });
  const stored = await scripts.suppressAddress(runtime.redis, suppressionKeys(handle), {
    digest: addressDigest(email),
    json: JSON.stringify(made),
    at,
  });
  return { suppression: JSON.parse(stored) as Suppression };
}

/** The handle's suppressions, newest first. */
export async function listSuppressions(
  runtime: Runtime,
  input: ListInput,
): Promise<Listed<"suppressions", Suppression>> {
  const { ids, nextCursor } = await listIds(runtime, keys.suppressions(input.handle), input);
  const found = ids.length === 0 ? [] : await runtime.redis.hmget(keys.suppressed(input.handle), ...ids);
  return { suppressions: found.flatMap((json) => (json ? [JSON.parse(json) as Suppression] : [])), nextCursor };
}

/** Takes an erased person's address and the owner's words out of a suppression that is not newer; it stays in force. */
export async function eraseSuppression(
  { redis }: Runtime,
  { handle, digest, until }: { handle: string; digest: string; until: string | undefined },
): Promise<void> {
  const replaced = await redis.hget(keys.suppressed(handle), digest);
  if (replaced === null) return;
  const stored = JSON.parse(replaced) as Suppression;
  if (until !== undefined && stored.createdAt > until) return;
  const json = JSON.stringify({ ...stored, email: ERASED_ADDRESS, reason: stored.source });
  await scripts.suppressAddress(redis, suppressionKeys(handle), { digest, json, at: 0, replaced });
}

/** Removes a suppression; idempotent. */
export async function removeSuppression(
  { redis }: Runtime,
  { handle, email }: Input<"handle" | "email">,
): Promise<void> {
  const digest = addressDigest(email);
  await transact(redis, (transaction) => {
    transaction.hdel(keys.suppressed(handle), digest);
    transaction.zrem(keys.suppressions(handle), digest);
  });
}

/** Why an address is suppressed on a handle; undefined if it isn't. */
export async function findSuppression(
  { redis }: Runtime,
  handle: string,
  address: string,
): Promise<Suppression | undefined> {
  const json = await redis.hget(keys.suppressed(handle), addressDigest(address));
  return json === null ? undefined : (JSON.parse(json) as Suppression);
}
