import type { Redis } from "ioredis";
import { LRUCache } from "lru-cache";
import { canonicalAddress, distinctAddresses } from "../platform/address.ts";
import { Fail } from "../platform/errors.ts";
import { perObject } from "../platform/lazy.ts";
import { type Role, roles, type Store } from "../platform/runtime.ts";
import { coalesce } from "../store/coalesce.ts";
import { keys } from "../store/keys.ts";
import { transact } from "../store/redis.ts";
import { type Limit, sharedTag, takeToken } from "../store/throttle.ts";

type HandleRecord = { handle: string; account: string; active: boolean };
export type Member = { userId: string; role: Role; email: string | null };
type Membership = { handle: string; role: Role; account: string };

/** A user's role on a handle, read live; undefined for strangers, and for unknown or inactive handles. */
export function roleOf(redis: Redis, handle: string, userId: string): Promise<Role | undefined> {
  return coalesce(redis, `role ${handle} ${userId}`, async () => {
    const [status, role] = await redis.hmget(keys.handle(handle), "status", `role:${userId}`);
    return status === "ACTIVE" ? roles.find((one) => one === role) : undefined;
  });
}

/** The field of a handle's record that counts changes of its pages, of its state and of its account's entitlements. */
export const pagesCounter = "pages";

/** The current page counter; "0" if nothing has changed yet. */
export async function pagesCounterOf(redis: Redis, handle: string): Promise<string> {
  return (await coalesce(redis, `pages ${handle}`, () => redis.hget(keys.handle(handle), pagesCounter))) ?? "0";
}

/** True if the first role includes the second. */
export function hasRole(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed);
}

/** The creation time of the handle. In cache keys it tells a handle from an erased one of the same name. */
export async function epochOf(redis: Redis, handle: string): Promise<string> {
  return (await coalesce(redis, `epoch ${handle}`, () => redis.hget(keys.handle(handle), "createdAt"))) ?? "";
}

/** When the handle was first created, here or before it was moved here. What visitors got before then belongs to an earlier handle of the same name. */
export async function originOf(redis: Redis, handle: string): Promise<string> {
  const [since, createdAt] = await redis.hmget(keys.handle(handle), "since", "createdAt");
  return since ?? createdAt ?? "";
}

export async function findHandle(redis: Redis, handle: string): Promise<HandleRecord | undefined> {
  const [account, status] = await redis.hmget(keys.handle(handle), "account", "status");
  return account ? { handle, account, active: status === "ACTIVE" } : undefined;
}

/** True for a handle that exists and is active. */
export async function isActive(redis: Redis, handle: string): Promise<boolean> {
  return (await findHandle(redis, handle))?.active === true;
}

/**
 * Throws `forbidden` if the handle was erased or deactivated meanwhile: before a write that follows a call to another server, which may
 * outlast an erasure.
 */
export async function mustStillBeActive(redis: Redis, handle: string): Promise<void> {
  if (!(await isActive(redis, handle))) throw new Fail("forbidden");
}

const accountsOf = perObject(() => new LRUCache<string, string>({ max: 10_000, ttl: 60_000 }));

/** The account of a handle; undefined if the handle doesn't exist. Only an erasure changes it, so it is cached for a minute. */
export async function accountOf(redis: Redis, handle: string): Promise<string | undefined> {
  const cache = accountsOf(redis);
  const known = cache.get(handle);
  if (known) return known;
  const account = (await redis.hget(keys.handle(handle), "account")) ?? undefined;
  if (account) cache.set(handle, account);
  return account;
}

/** Takes one token of a handle's bucket, of which unknown handles share one; `rate_limited` with the wait if it is empty. */
export async function takeHandleToken(store: Store, handle: string, limit: Limit): Promise<void> {
  const isKnown = (await accountOf(store.redis, handle)) !== undefined;
  await takeToken(store, { ...limit, tag: isKnown ? handle : sharedTag(handle) });
}

interface NewHandle {
  handle: string;
  account: string;
  owner: string;
  email?: string | undefined;
  assistant: boolean;
}

/**
 * Creates a handle with its account and owner; returns it as it is. Repeating it only adds the owner. A new account gets `assistant`.
 * `forbidden` for a handle of another account, which changes nothing.
 */
export async function createHandle({ redis, now }: Store, input: NewHandle): Promise<HandleRecord> {
  const { handle, account, owner, email, assistant } = input;
  const at = new Date(now()).toISOString();
  await claimHandle(redis, input, at);
  await createAccount(redis, account, { at, entitlements: assistant ? ["assistant"] : [] });
  await redis.sadd(keys.handles, handle);
  await redis.sadd(keys.accountHandles(account), handle);
  await grantRole(redis, { handle, userId: owner, role: "OWNER", email });
  return (await findHandle(redis, handle)) as HandleRecord;
}

/** Creates an account with its entitlements, unless it exists. */
export async function createAccount(
  redis: Redis,
  account: string,
  { at, entitlements }: { at: string; entitlements: string[] },
): Promise<void> {
  if (await redis.exists(keys.account(account))) return;
  const entitled = Object.fromEntries(entitlements.map((name) => [`entitlement:${name}`, "1"]));
  await redis.hset(keys.account(account), { createdAt: at, ...entitled });
}

/** Grants a user a role on a handle, replacing an earlier one. */
export async function grantRole(
  redis: Redis,
  input: { handle: string; userId: string; role: Role; email?: string | undefined },
): Promise<void> {
  await mustExist(redis, input.handle);
  await redis.sadd(keys.userHandles(input.userId), input.handle);
  if (input.email) {
    // The map comes first: an address in it counts only while its user has that address.
    await redis.set(keys.userOfEmail(canonicalAddress(input.email)), input.userId);
    await redis.hset(keys.user(input.userId), "email", input.email);
  }
  await redis.hset(keys.handle(input.handle), `role:${input.userId}`, input.role);
  // An earlier role that is revoked at this moment may have taken the entry with it.
  await redis.sadd(keys.userHandles(input.userId), input.handle);
}

/** The user with this email address, in any spelling. If several users have had it, the newest wins. */
export async function userOfEmail(redis: Redis, email: string): Promise<string | undefined> {
  const userId = await redis.get(keys.userOfEmail(canonicalAddress(email)));
  const current = userId === null ? null : await redis.hget(keys.user(userId), "email");
  return current !== null && canonicalAddress(current) === canonicalAddress(email) ? (userId as string) : undefined;
}

/** The known addresses of a handle's owners. */
export async function ownerAddresses(redis: Redis, handle: string): Promise<string[]> {
  return distinctAddresses((await ownersOf(redis, handle)).map(({ email }) => email));
}

/** The owners of a handle whose addresses are known, by their ids. */
export async function ownersOf(redis: Redis, handle: string): Promise<{ userId: string; email: string }[]> {
  const owners = (await membersOf(redis, handle)).filter(({ role }) => role === "OWNER");
  const known = owners.flatMap(({ userId, email }) => (email === null ? [] : [{ userId, email }]));
  return known.sort((one, other) => (one.userId < other.userId ? -1 : 1));
}

/** Revokes a user's access to a handle at once. */
export async function revokeRole(redis: Redis, input: { handle: string; userId: string }): Promise<void> {
  await mustExist(redis, input.handle);
  // The role goes last: one that is granted afterwards is in the list again.
  await redis.srem(keys.userHandles(input.userId), input.handle);
  await redis.hdel(keys.handle(input.handle), `role:${input.userId}`);
}

/** Status of a handle whose import is unfinished. */
export const IMPORTING = "IMPORTING";

/**
 * Activates or deactivates a handle; an inactive handle answers like an unknown one. A handle whose import is unfinished stays inactive:
 * `not_found` for activating it.
 */
export async function setHandleActive(redis: Redis, handle: string, active: boolean): Promise<void> {
  await mustExist(redis, handle);
  if ((await redis.hget(keys.handle(handle), "status")) === IMPORTING) {
    if (active) throw new Fail("not_found", { detail: `The import of ${handle} is unfinished; repeat it.` });
    return;
  }
  await transact(redis, (transaction) =>
    transaction
      .hset(keys.handle(handle), "status", active ? "ACTIVE" : "INACTIVE")
      .hincrby(keys.handle(handle), pagesCounter, 1),
  );
}

/** The members of a handle with their roles and addresses, as far as they are known. */
export async function membersOf(redis: Redis, handle: string): Promise<Member[]> {
  const fields = Object.entries(await redis.hgetall(keys.handle(handle)));
  const members = fields.flatMap(([name, value]) => {
    const role = roles.find((one) => one === value);
    return name.startsWith("role:") && role ? [{ userId: name.slice(5), role }] : [];
  });
  const addresses = await Promise.all(members.map(({ userId }) => redis.hget(keys.user(userId), "email")));
  return members.map((member, at) => ({ ...member, email: addresses[at] ?? null }));
}

export async function entitlementsOf(redis: Redis, account: string): Promise<string[]> {
  const fields = await redis.hkeys(keys.account(account));
  return fields.flatMap((field) => (field.startsWith("entitlement:") ? [field.slice("entitlement:".length)] : []));
}

/** Adds an entitlement to an account, or removes it. */
export async function setEntitlement(redis: Redis, account: string, entitlement: string, has: boolean): Promise<void> {
  await mustBeAccount(redis, account);
  if (has) await redis.hset(keys.account(account), `entitlement:${entitlement}`, "1");
  else await redis.hdel(keys.account(account), `entitlement:${entitlement}`);
  for (const handle of await redis.smembers(keys.accountHandles(account)))
    await redis.hincrby(keys.handle(handle), pagesCounter, 1);
}

/** A user's handles with the live roles, and the accounts of these handles. */
export async function handlesOf(redis: Redis, userId: string): Promise<Membership[]> {
  const names = (await redis.smembers(keys.userHandles(userId))).sort();
  const rows = await Promise.all(
    names.map((name) => redis.hmget(keys.handle(name), "status", `role:${userId}`, "account")),
  );
  return rows.flatMap(([status, stored, account], at) => {
    const role = roles.find((one) => one === stored);
    return status === "ACTIVE" && role ? [{ handle: names[at] as string, role, account: account as string }] : [];
  });
}

/** The field `account` decides between two that create a handle at once. The handle is active from its status on, which comes last. */
async function claimHandle(redis: Redis, { handle, account }: NewHandle, at: string): Promise<void> {
  const key = keys.handle(handle);
  await redis.hsetnx(key, "account", account);
  const holder = await redis.hget(key, "account");
  if (holder !== account) throw new Fail("forbidden", { detail: `${handle} belongs to ${holder}.` });
  // Cached pages and chunks are keyed by these counters: they start above those of an erased handle of the same name.
  await redis.hsetnx(key, pagesCounter, Date.now());
  await redis.hsetnx(keys.knowledge(handle), "version", Date.now());
  await redis.hsetnx(key, "createdAt", at);
  await redis.hsetnx(key, "status", "ACTIVE");
}

/** Throws `not_found` unless the handle exists. */
export async function mustExist(redis: Redis, handle: string): Promise<void> {
  if (!(await redis.hexists(keys.handle(handle), "account")))
    throw new Fail("not_found", { detail: `There is no handle ${handle}.` });
}

/** Throws `not_found` unless the account exists. */
export async function mustBeAccount(redis: Redis, account: string): Promise<void> {
  if (!(await redis.exists(keys.account(account))))
    throw new Fail("not_found", { detail: `There is no account ${account}.` });
}
