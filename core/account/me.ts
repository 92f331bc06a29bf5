import type { Redis } from "ioredis";
import type { Me } from "../../schemas/account.ts";
import { Fail } from "../platform/errors.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";
import { coalesce } from "../store/coalesce.ts";
import { keys } from "../store/keys.ts";
import { entitlementsOf, handlesOf } from "./handles.ts";

/**
 * The session check (docs/reference.md, "Session tokens"): the user, the handles with their roles, and the entitlements of all their
 * accounts, read live. `invalid_token` if no account has the entitlement `assistant`.
 */
export async function readMe({ redis }: Runtime, _input: unknown, caller: Caller): Promise<Me> {
  const userId = caller.userId as string;
  const { email, ...more } = await coalesce(redis, `me ${userId}`, () => belongings(redis, userId));
  if (!more.entitlements.includes("assistant"))
    throw new Fail("invalid_token", { detail: "None of your accounts has the assistant entitlement." });
  return { user: { userId, email: caller.email ?? email }, ...more };
}

async function belongings(redis: Redis, userId: string): Promise<Omit<Me, "user"> & { email: string | null }> {
  const [email, held] = await Promise.all([redis.hget(keys.user(userId), "email"), handlesOf(redis, userId)]);
  const accounts = [...new Set(held.map(({ account }) => account))];
  const names = await Promise.all(accounts.map((account) => entitlementsOf(redis, account)));
  const entitlements = [...new Set(names.flat())].sort();
  return { email, handles: held.map(({ handle, role }) => ({ handle, role })), entitlements };
}
