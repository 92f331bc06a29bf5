import type { Me } from "../../schemas/account.ts";
import type { Env } from "../platform/env.ts";
import { Fail } from "../platform/errors.ts";
import type { Caller, Role, Runtime } from "../platform/runtime.ts";
import { coalesce } from "../store/coalesce.ts";
import { keys } from "../store/keys.ts";
import { entitlementsOf, findHandle, handlesOf, hasRole, roleOf } from "./handles.ts";
import { holderOf, tokenPrefix } from "./tokens.ts";

/** What a route on a handle demands. */
export interface HandleAccess {
  role: Role;
  /** Scopes of which a personal access token needs one; without them only a session is accepted. */
  scopes?: readonly string[];
  /** The URL of the route as a token audience (RFC 8707), for routes that are protected resources. */
  resource?: (env: Env, handle: string) => string;
}

/**
 * The user and role of a token on a handle, read live. Throws `invalid_token` first; then `forbidden` for strangers and for unknown or
 * inactive handles alike, so that handles can't be enumerated; `insufficient_role` below the required role; `insufficient_scope` for a
 * personal access token without the scope.
 */
export async function handleSession(
  { redis, sessions, env }: Runtime,
  { role: needed, scopes, resource }: HandleAccess,
  { token, handle }: Record<"token" | "handle", string>,
): Promise<Partial<Caller>> {
  const isPersonal = token.startsWith(tokenPrefix);
  if (isPersonal && scopes === undefined)
    throw new Fail("invalid_token", { detail: "This route does not accept personal access tokens." });
  const session = isPersonal ? await holderOf(redis, token) : await sessions.verify(token, resource?.(env, handle));
  const [role] = await Promise.all([roleOf(redis, handle, session.userId), sessions.mustBeLive(session)]);
  if (role === undefined) throw new Fail("forbidden");
  if (!hasRole(role, needed))
    throw new Fail("insufficient_role", { detail: `This operation requires the role ${needed}.` });
  mustHaveScope(session, scopes ?? []);
  return { role, handle, ...session };
}

/** Throws for a personal access token without any of the scopes (RFC 6750). A session has all rights of its user. */
export function mustHaveScope({ scopes }: Pick<Caller, "scopes">, needed: readonly string[]): void {
  if (scopes !== undefined && !needed.some((scope) => scopes.includes(scope)))
    throw new Fail("insufficient_scope", { scope: needed.join(" ") });
}

/**
 * True if the anonymous assistant is enabled for a handle: by the global switch, the list of handles, or the account's entitlement
 * `marketing_tools`. Always false for an unknown or inactive handle.
 */
export async function isAgentEnabled({ redis, env }: Runtime, handle: string): Promise<boolean> {
  const found = await coalesce(redis, `agent ${handle}`, () => findHandle(redis, handle));
  if (!found?.active) return false;
  if (env.PUBLIC_PAGE_AGENT_ENABLED || env.PUBLIC_PAGE_AGENT_ALLOWED_HANDLES.includes(handle)) return true;
  return (await redis.hexists(keys.account(found.account), "entitlement:marketing_tools")) === 1;
}

/**
 * The session check (docs/reference.md, "Session tokens"): the user, the handles with their roles, and the entitlements of all their
 * accounts, read live. `invalid_token` if no account has the entitlement `assistant`.
 */
export async function readMe({ redis }: Runtime, _input: unknown, caller: Caller): Promise<Me> {
  const userId = caller.userId as string;
  const [email, memberships] = await Promise.all([redis.hget(keys.user(userId), "email"), handlesOf(redis, userId)]);
  const accounts = [...new Set(memberships.map(({ account }) => account))];
  const names = await Promise.all(accounts.map((account) => entitlementsOf(redis, account)));
  const entitlements = [...new Set(names.flat())].sort();
  if (!entitlements.includes("assistant"))
    throw new Fail("invalid_token", { detail: "None of your accounts has the assistant entitlement." });
  const handles = memberships.map(({ handle, role }) => ({ handle, role }));
  return { user: { userId, email: caller.email ?? email }, handles, entitlements };
}
