import type { Redis } from "ioredis";
import { Fail } from "../platform/errors.ts";
import type { Caller, Role, Runtime, TokenSession } from "../platform/runtime.ts";
import { hasRole, roleOf } from "./handles.ts";
import { holderOf, type TokenHolder, tokenPrefix } from "./tokens.ts";

/** What a route on a handle requires of a token. */
interface HandleAccess {
  token: string;
  handle: string;
  role: Role;
  /** A personal access token must have one of these scopes; if undefined, only sessions are accepted. */
  scopes: readonly string[] | undefined;
  /** The resource of the route, if tokens are issued for it. */
  resource?: string | undefined;
}

/**
 * The user and role of a token on a handle, read live. Throws `invalid_token` first; then `forbidden` for strangers and for unknown or
 * inactive handles alike, so that handles can't be enumerated; `insufficient_role` below the required role; `insufficient_scope` for a
 * personal access token without the scope.
 */
export async function handleSession({ redis, sessions }: Runtime, asked: HandleAccess): Promise<Partial<Caller>> {
  const session: TokenHolder | TokenSession = asked.token.startsWith(tokenPrefix)
    ? await personal(redis, asked)
    : await sessions.check(asked.token, asked.resource);
  const role = await roleOf(redis, asked.handle, session.userId);
  if (role === undefined) throw new Fail("forbidden");
  if (!hasRole(role, asked.role))
    throw new Fail("insufficient_role", { detail: `This operation requires the role ${asked.role}.` });
  mustHaveScope(session, asked.scopes ?? []);
  return { role, handle: asked.handle, ...session };
}

/** Throws for a personal access token without any of the scopes (RFC 6750). A session has all rights of its user. */
export function mustHaveScope({ scopes }: Pick<Caller, "scopes">, needed: readonly string[]): void {
  if (scopes !== undefined && !needed.some((scope) => scopes.includes(scope)))
    throw new Fail("insufficient_scope", { scope: needed.join(" ") });
}

function personal(redis: Redis, { token, scopes }: HandleAccess): Promise<TokenHolder> {
  if (scopes === undefined)
    throw new Fail("invalid_token", { detail: "This route does not accept personal access tokens." });
  return holderOf(redis, token);
}
