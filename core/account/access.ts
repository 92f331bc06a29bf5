import type { Redis } from "ioredis";
import { Fail } from "../platform/errors.ts";
import type { Caller, Role, Runtime } from "../platform/runtime.ts";
import { type Membership, membership, hasRole } from "./handles.ts";
import { holderOf, type TokenHolder, tokenPrefix } from "./tokens.ts";

/** What a route on a handle asks of a token. */
export interface HandleAccess {
  token: string;
  handle: string;
  role: Role;
  /** Scopes of which a personal access token must have one; without any, only sessions are taken. */
  scopes: readonly string[] | undefined;
  /** The resource that the route is, where tokens are issued for it. */
  resource?: string | undefined;
}

/**
 * Who a token speaks for on a handle: `invalid_token` first, then `forbidden` for strangers and for handles that are unknown or
 * inactive, so that handles can't be enumerated; `insufficient_role` below the needed role; `insufficient_scope` for a personal
 * access token without the scope. The role is read live.
 */
export async function handleSession({ redis, sessions }: Runtime, asked: HandleAccess): Promise<Partial<Caller>> {
  const readMembership = ({ userId }: { userId: string }) => membership(redis, asked.handle, userId);
  const [session, { role, pages }]: [Partial<Caller>, Membership] = isPersonal(asked.token)
    ? await personal(redis, asked, readMembership)
    : await sessions.checkWith(asked.token, readMembership, asked.resource);
  if (role === undefined) throw new Fail("forbidden");
  if (!hasRole(role, asked.role))
    throw new Fail("insufficient_role", { detail: `This operation requires the role ${asked.role}.` });
  mustHaveScope(session, asked.scopes ?? []);
  return { role, handle: asked.handle, pages, ...session };
}

/** Refuses a personal access token that has none of the scopes (RFC 6750); a session may do all that its user may. */
export function mustHaveScope({ scopes }: Pick<Caller, "scopes">, needed: readonly string[]): void {
  if (scopes !== undefined && !needed.some((scope) => scopes.includes(scope)))
    throw new Fail("insufficient_scope", { scope: needed.join(" ") });
}

function isPersonal(token: string): boolean {
  return token.startsWith(tokenPrefix);
}

async function personal<T>(
  redis: Redis,
  { token, scopes }: HandleAccess,
  read: (holder: TokenHolder) => Promise<T>,
): Promise<[TokenHolder, T]> {
  if (scopes === undefined)
    throw new Fail("invalid_token", { detail: "This route does not accept personal access tokens." });
  const holder = await holderOf(redis, token);
  return [holder, await read(holder)];
}
