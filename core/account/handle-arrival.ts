import type { Redis } from "ioredis";
import { canonicalAddress } from "../platform/address.ts";
import { invalid } from "../platform/errors.ts";
import type { Store } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { createAccount, grantRole, IMPORTING, type Member, pagesCounter, userOfEmail } from "./handles.ts";

/** A handle to be imported from another installation or name. */
export interface ArrivingHandle {
  handle: string;
  account: string;
  /** Fields of its record that are kept: settings, its weight in the mail queue, and `since`, when it was first created. */
  fields: Record<string, string>;
  entitlements: string[];
  members: Member[];
}

/**
 * Claims the name of a handle to be imported: until `finishImport` it answers like an unknown one. Creates the account if it is new.
 * Idempotent, also after a crash. `invalid_request` if the handle exists.
 */
export async function beginImport(
  { redis, now }: Store,
  { handle, account, entitlements }: ArrivingHandle,
): Promise<void> {
  const key = keys.handle(handle);
  const isFresh = (await redis.hsetnx(key, "account", account)) === 1;
  const [holder, status] = await redis.hmget(key, "account", "status");
  // A claim cut short by a crash has no status yet.
  const isOurs = isFresh || status === null || status === IMPORTING;
  if (!isOurs) throw invalid("/handle", `${handle} exists already; name another one or erase it first`);
  if (holder !== account) throw invalid("/account", `must be ${holder}, as when this import began`);
  await redis.hset(key, "status", IMPORTING);
  await createAccount(redis, account, { at: new Date(now()).toISOString(), entitlements });
}

/** Adds the members to an imported handle and activates it. Returns the members that were left out. */
export async function finishImport(
  { redis, now }: Store,
  arriving: ArrivingHandle,
): Promise<{ membersLeft: string[] }> {
  const { handle, account, fields } = arriving;
  await redis.sadd(keys.handles, handle);
  await redis.sadd(keys.accountHandles(account), handle);
  const membersLeft = await grantAll(redis, arriving);
  // Processes cache pages by this counter, and everything else by creation time.
  const createdAt = new Date(now()).toISOString();
  await redis.hset(keys.handle(handle), { ...fields, createdAt, [pagesCounter]: Date.now(), status: "ACTIVE" });
  return { membersLeft };
}

/**
 * Members keep their roles. A member is identified by address if a user here has it, else by user id. If another address has that id here,
 * it is another person, who gets no role. A user of other handles here gets no address from the file, by which somebody else could sign in.
 */
async function grantAll(redis: Redis, { handle, members }: ArrivingHandle): Promise<string[]> {
  const left: string[] = [];
  for (const { userId, role, email } of members) {
    const known = email === null ? undefined : await userOfEmail(redis, email);
    const here = await redis.hget(keys.user(userId), "email");
    // An import that was killed may have left this handle.
    const isKnown = (await redis.smembers(keys.userHandles(userId))).some((one) => one !== handle);
    const isOther = here !== null && (email === null || canonicalAddress(here) !== canonicalAddress(email));
    if (known !== undefined) await grantRole(redis, { handle, userId: known, role });
    else if (isOther) left.push(userId);
    else await grantRole(redis, { handle, userId, role, email: (isKnown ? here : email) ?? undefined });
  }
  return left;
}
