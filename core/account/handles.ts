import type { Redis } from "ioredis";
import { LRUCache } from "lru-cache";
import { Fail } from "../platform/errors.ts";
import { keys } from "../store/keys.ts";
import { transact } from "../store/redis.ts";
import { coalesce } from "../store/coalesce.ts";
import { sharedTag } from "../store/throttle.ts";
import { type Role, roles, type Runtime } from "../platform/runtime.ts";
import { perConnection } from "../store/connections.ts";

/** A handle as the access check sees it. */
export interface HandleRecord {
  handle: string;
  account: string;
  active: boolean;
}

/** What a handle says of a user, read live. */
export interface Membership {
  /** Undefined for strangers and for handles that don't answer. */
  role: Role | undefined;
  /** The counter of the handle's pages at that moment. */
  pages: string;
}

/** The role that a user has on a handle, and beside it what tells whether kept pages are fresh: one read for both. */
export function membership(redis: Redis, handle: string, userId: string): Promise<Membership> {
  return coalesce(redis, `member ${handle} ${userId}`, async () => {
    const [status, role, pages] = await redis.hmget(keys.handle(handle), "status", `role:${userId}`, pagesCounter);
    return { role: status === "ACTIVE" ? roles.find((one) => one === role) : undefined, pages: pages ?? "0" };
  });
}

/** The field of a handle's record that counts changes of its pages, of its state and of its account's entitlements. */
export const pagesCounter = "pages";

/** That counter now; "0" where it never moved. */
export async function pagesCounterOf(redis: Redis, handle: string): Promise<string> {
  return (await coalesce(redis, `pages ${handle}`, () => redis.hget(keys.handle(handle), pagesCounter))) ?? "0";
}

/** True when the first role may do what needs the second. */
export function hasRole(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed);
}

/** When the handle was made: tells it from one of the same name that was erased, for what a process keeps of handles. */
export async function epochOf(redis: Redis, handle: string): Promise<string> {
  return (await coalesce(redis, `epoch ${handle}`, () => redis.hget(keys.handle(handle), "createdAt"))) ?? "";
}

/** The handle, or undefined when it was never made. */
export async function findHandle(redis: Redis, handle: string): Promise<HandleRecord | undefined> {
  const [account, status] = await redis.hmget(keys.handle(handle), "account", "status");
  return account ? { handle, account, active: status === "ACTIVE" } : undefined;
}

const accountsOf = perConnection(() => new LRUCache<string, string>({ max: 10_000, ttl: 60_000 }));

/** The account of a handle, undefined when it was never made. A handle never changes its account, so the answer is kept for a minute. */
export async function accountOf(redis: Redis, handle: string): Promise<string | undefined> {
  const cache = accountsOf(redis);
  const known = cache.get(handle) ?? (await redis.hget(keys.handle(handle), "account"));
  if (known) cache.set(handle, known);
  return known ?? undefined;
}

/** The tag of a handle's bucket; unknown handles share theirs. */
export async function throttleTag(redis: Redis, handle: string): Promise<string> {
  return (await accountOf(redis, handle)) === undefined ? sharedTag(handle) : handle;
}

/** True when the account has the entitlement. */
export async function isEntitled(redis: Redis, account: string, entitlement: string): Promise<boolean> {
  return (await redis.hexists(keys.account(account), `entitlement:${entitlement}`)) === 1;
}

export interface NewHandle {
  handle: string;
  account: string;
  owner: string;
  email?: string | undefined;
  assistant: boolean;
}

/** Makes a handle with its account and owner; running it again changes nothing but adds the owner. A new account gets `assistant`. */
export async function createHandle(
  { redis, now }: Pick<Runtime, "redis" | "now">,
  input: NewHandle,
): Promise<HandleRecord> {
  const at = new Date(now()).toISOString();
  const fresh = await redis.hsetnx(keys.account(input.account), "createdAt", at);
  if (fresh && input.assistant) await redis.hset(keys.account(input.account), "entitlement:assistant", "1");
  await claimHandle(redis, input, at);
  await redis.sadd(keys.handles, input.handle);
  await redis.sadd(keys.accountHandles(input.account), input.handle);
  await grantRole(redis, { handle: input.handle, userId: input.owner, role: "OWNER", email: input.email });
  return { handle: input.handle, account: input.account, active: true };
}

/** Gives a user a role on a handle, in place of an earlier one. */
export async function grantRole(
  redis: Redis,
  input: { handle: string; userId: string; role: Role; email?: string | undefined },
): Promise<void> {
  await mustExist(redis, input.handle);
  await redis.sadd(keys.userHandles(input.userId), input.handle);
  if (input.email) await setEmail(redis, input.userId, input.email);
  await redis.hset(keys.handle(input.handle), `role:${input.userId}`, input.role);
}

/** The user who signs in with an address, whatever its case. The newest user of an address has it. */
export async function userOfEmail(redis: Redis, email: string): Promise<string | undefined> {
  const userId = await redis.get(keys.userOfEmail(email.toLowerCase()));
  const current = userId === null ? null : await redis.hget(keys.user(userId), "email");
  return current?.toLowerCase() === email.toLowerCase() ? (userId as string) : undefined;
}

/** The addresses of a handle's owners, as far as they are known. */
export async function ownerAddresses(redis: Redis, handle: string): Promise<string[]> {
  const fields = Object.entries(await redis.hgetall(keys.handle(handle)));
  const owners = fields.flatMap(([name, role]) =>
    name.startsWith("role:") && role === "OWNER" ? [name.slice(5)] : [],
  );
  const addresses = await Promise.all(owners.sort().map((userId) => redis.hget(keys.user(userId), "email")));
  return [...new Set(addresses.flatMap((address) => address ?? []))];
}

/** Takes a user's access to a handle away, at once. */
export async function revokeRole(redis: Redis, input: { handle: string; userId: string }): Promise<void> {
  await mustExist(redis, input.handle);
  await redis.hdel(keys.handle(input.handle), `role:${input.userId}`);
  await redis.srem(keys.userHandles(input.userId), input.handle);
}

/** Switches a handle off or on; an inactive handle answers like an unknown one. */
export async function setHandleActive(redis: Redis, handle: string, active: boolean): Promise<void> {
  await mustExist(redis, handle);
  await transact(redis, (transaction) =>
    transaction
      .hset(keys.handle(handle), "status", active ? "ACTIVE" : "INACTIVE")
      .hincrby(keys.handle(handle), pagesCounter, 1),
  );
}

/** Adds an entitlement to an account or takes it away. */
export async function setEntitlement(redis: Redis, account: string, entitlement: string, has: boolean): Promise<void> {
  if (!(await redis.exists(keys.account(account))))
    throw new Fail("not_found", { detail: `There is no account ${account}.` });
  if (has) await redis.hset(keys.account(account), `entitlement:${entitlement}`, "1");
  else await redis.hdel(keys.account(account), `entitlement:${entitlement}`);
  for (const handle of await redis.smembers(keys.accountHandles(account)))
    await redis.hincrby(keys.handle(handle), pagesCounter, 1);
}

/** The handles of a user with their roles, read live, and the accounts that they belong to. */
export async function handlesOf(
  redis: Redis,
  userId: string,
): Promise<{ handle: string; role: Role; account: string }[]> {
  const names = (await redis.smembers(keys.userHandles(userId))).sort();
  const rows = await Promise.all(
    names.map((name) => redis.hmget(keys.handle(name), "status", `role:${userId}`, "account")),
  );
  return rows.flatMap(([status, role, account], at) => {
    const known = roles.find((one) => one === role);
    return status === "ACTIVE" && known
      ? [{ handle: names[at] as string, role: known, account: account as string }]
      : [];
  });
}

async function claimHandle(redis: Redis, input: NewHandle, at: string): Promise<void> {
  const owner = await redis.hget(keys.handle(input.handle), "account");
  if (owner !== null && owner !== input.account)
    throw new Fail("forbidden", { detail: `${input.handle} belongs to ${owner}.` });
  // Processes keep pages and chunks by these counters: they go on from beyond those of an erased handle of the same name.
  await redis.hsetnx(keys.handle(input.handle), pagesCounter, Date.now());
  await redis.hsetnx(keys.knowledge(input.handle), "version", Date.now());
  for (const [field, value] of Object.entries({ createdAt: at, status: "ACTIVE", account: input.account }))
    await redis.hsetnx(keys.handle(input.handle), field, value);
}

/** The map comes first: an address in it counts only while its user has that address. */
async function setEmail(redis: Redis, userId: string, email: string): Promise<void> {
  await redis.set(keys.userOfEmail(email.toLowerCase()), userId);
  await redis.hset(keys.user(userId), "email", email);
}

/** Throws `not_found` for a handle that was never made or was erased. */
export async function mustExist(redis: Redis, handle: string): Promise<void> {
  if (!(await redis.hexists(keys.handle(handle), "account")))
    throw new Fail("not_found", { detail: `There is no handle ${handle}.` });
}
