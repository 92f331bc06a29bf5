import type { Redis } from "ioredis";
import { type newToken, type Scope, scopes, type Token, type tokenWithSecret } from "../../schemas/account.ts";
import type { Infer, Input } from "../../schemas/schema.ts";
import { day } from "../platform/clock.ts";
import { digestOf, sha256 } from "../platform/digest.ts";
import { Fail } from "../platform/errors.ts";
import { base62 } from "../platform/ids.ts";
import type { Caller, Runtime, Store, TokenSession } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { type Listed, type ListInput, listIds } from "../store/paging.ts";
import { transact } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";

/** Prefix of every personal access token, for people and for secret scanners. */
export const tokenPrefix = "pat_";
/** Random base-62 characters of a token: 214 bits. */
const SECRET_LENGTH = 36;
const form = new RegExp(`^${tokenPrefix}[0-9A-Za-z]{${SECRET_LENGTH}}$`);
const MAX_TOKENS = 200;
/** Ms for which a new token exists without being listed, longer than any request. */
const UNLISTED_TTL_MS = 60_000;
/** Ms between two updates of the last use. */
const TOUCH_INTERVAL_MS = 60_000;

/**
 * Creates a token for the signed-in user. The secret is returned only here; Redis stores its SHA-256. A token acts for its user on all of
 * the user's handles, with the role that the user has at the time of use. `invalid_request` beyond the most that a user may have.
 */
export async function createToken(
  { redis }: Runtime,
  input: Infer<typeof newToken>,
  caller: Caller,
): Promise<{ token: Infer<typeof tokenWithSecret> }> {
  const { userId } = caller as { userId: string };
  const secret = tokenPrefix + base62(SECRET_LENGTH);
  const tokenId = idOf(secret);
  const now = Date.now();
  const expires = input.expiresInDays ? now + input.expiresInDays * day : undefined;
  const stored = { digest: sha256(secret), user: userId, name: input.name, scopes: packed(input.scopes), created: now };
  const key = keys.token(tokenId);
  // Until it is listed it expires soon: a token outside the list could not be revoked.
  await transact(redis, (transaction) => transaction.hset(key, stored).pexpire(key, UNLISTED_TTL_MS));
  await enlist(redis, keys.userTokens(userId), { tokenId, now });
  await (expires ? redis.pexpireat(key, expires) : redis.persist(key));
  return { token: { tokenId, name: input.name, scopes: input.scopes, expiresAt: instantOf(expires), secret } };
}

/** Lists a token; one that finds no room is taken off again, and expires soon. */
async function enlist(redis: Redis, list: string, { tokenId, now }: { tokenId: string; now: number }): Promise<void> {
  const [, count] = await transact(redis, (transaction) => transaction.zadd(list, now, tokenId).zcard(list));
  if (Number(count) <= MAX_TOKENS) return;
  // Expired tokens leave the list when it is read.
  await liveTokens(redis, list, await redis.zrange(list, 0, "-1"));
  if ((await redis.zcard(list)) <= MAX_TOKENS) return;
  await redis.zrem(list, tokenId);
  throw new Fail("invalid_request", { detail: `A user has at most ${MAX_TOKENS} tokens; revoke one first.` });
}

/** The user's tokens, newest first, without expired ones. */
export async function listTokens(
  runtime: Runtime,
  input: ListInput<never>,
  caller: Caller,
): Promise<Listed<"tokens", Token>> {
  const list = keys.userTokens(caller.userId as string);
  const { ids, nextCursor } = await listIds(runtime, list, input);
  return { tokens: await liveTokens(runtime.redis, list, ids), nextCursor };
}

/** Revokes a token of the user from the next request on; `token_not_found`, also for another user's token. */
export async function revokeToken({ redis }: Runtime, { tokenId }: Input<"tokenId">, caller: Caller): Promise<void> {
  const list = keys.userTokens(caller.userId as string);
  const isOwn = (await redis.zscore(list, tokenId)) !== null;
  if (!isOwn || (await redis.del(keys.token(tokenId))) === 0) throw new Fail("token_not_found");
  await redis.zrem(list, tokenId);
}

/** Revokes all tokens of a user. Returns their number. */
export async function revokeTokens({ redis }: Store, userId: string): Promise<number> {
  const list = keys.userTokens(userId);
  const tokenIds = await redis.zrange(list, 0, "-1");
  const removed = await Promise.all(tokenIds.map((tokenId) => redis.del(keys.token(tokenId))));
  if (tokenIds.length > 0) await redis.zrem(list, ...tokenIds);
  return removed.filter((count) => count === 1).length;
}

/** The holder of a secret, read live; `invalid_token` for every string that is not a valid token now. */
export async function holderOf(redis: Redis, secret: string): Promise<TokenSession> {
  if (!form.test(secret)) throw new Fail("invalid_token");
  const key = keys.token(idOf(secret));
  const [digest, user, digits, used] = await redis.hmgetBuffer(key, "digest", "user", "scopes", "used");
  if (!digest?.equals(sha256(secret))) throw new Fail("invalid_token");
  const now = Date.now();
  if (now - Number(used ?? 0) >= TOUCH_INTERVAL_MS)
    await scripts.recordUse(redis, { hash: key }, { used: "digest", field: "used", now });
  return { userId: String(user), scopes: unpacked(String(digits)) };
}

/** The public id is another hash of the secret, so that one key finds the token. It reveals nothing about the stored digest. */
function idOf(secret: string): string {
  return `tok_${digestOf(`token id ${secret}`).slice(0, 22)}`;
}

/** Scopes as digits: their indexes in the table. */
function packed(names: readonly Scope[]): string {
  return names.map((name) => scopes.indexOf(name)).join("");
}

function unpacked(digits: string): Scope[] {
  return [...digits].flatMap((digit) => scopes[Number(digit)] ?? []);
}

/** The tokens of these ids, in their order. The ids of expired ones leave the list. */
async function liveTokens(redis: Redis, list: string, ids: string[]): Promise<Token[]> {
  const found = await Promise.all(ids.map((tokenId) => readToken(redis, tokenId)));
  const gone = ids.filter((_, at) => found[at] === undefined);
  if (gone.length > 0) await redis.zrem(list, ...gone);
  return found.filter((token) => token !== undefined);
}

async function readToken(redis: Redis, tokenId: string): Promise<Token | undefined> {
  const key = keys.token(tokenId);
  const [[name, digits, created, used], expires] = await Promise.all([
    redis.hmget(key, "name", "scopes", "created", "used"),
    redis.pexpiretime(key),
  ]);
  if (!name || !digits || !created) return undefined;
  // Redis tracks the expiry; a negative number means never.
  const times = { createdAt: instantOf(created) as string, expiresAt: instantOf(Math.max(0, expires)) };
  return { tokenId, name, scopes: unpacked(digits), ...times, lastUsedAt: instantOf(used) };
}

function instantOf(ms: string | number | null | undefined): string | null {
  return ms ? new Date(Number(ms)).toISOString() : null;
}
