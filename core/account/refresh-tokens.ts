import { Buffer } from "node:buffer";
import type { Runtime } from "../platform/runtime.ts";
import { isSigned, sign } from "../platform/sealing.ts";
import { keys } from "../store/keys.ts";
import { scripts } from "../store/scripts.ts";

/** The rights of a client's session, as granted. */
export interface ClientGrant {
  clientId: string;
  resource: string;
  scopes: string[];
  userId: string;
  email?: string;
}

/** A parsed token: its session, and its number within it. */
interface RefreshToken {
  userId: string;
  sessionId: string;
  round: number;
}

type Store = Pick<Runtime, "redis" | "env">;

const PURPOSE = "refresh token";
/** Ms in which a used token is accepted again: the response to its first use may have been lost. */
const GRACE_MS = 10_000;

/** The first refresh token of a session (RFC 6749, section 1.5); it lives as long as the session. */
export async function startRefreshing(
  { redis, env }: Store,
  { sessionId, expiresAt, grant }: { sessionId: string; expiresAt: number; grant: ClientGrant },
): Promise<string> {
  const key = keys.oauthRefresh(grant.userId, sessionId);
  await redis.hset(key, { round: 0, at: 0, json: JSON.stringify(grant) });
  await redis.pexpireat(key, expiresAt);
  return textOf(env, { userId: grant.userId, sessionId, round: 0 });
}

/** A continued session, with its next token. */
interface Refreshed {
  sessionId: string;
  grant: ClientGrant;
  refreshToken: string;
}

/**
 * Uses a refresh token, once: the session continues until `expiresAt`, real ms. Undefined for an invalid token; reuse of a replaced one
 * ends its session (RFC 9700, section 4.14.2). Within ten seconds the same token gets the same answer.
 */
export async function useRefreshToken(
  { redis, env }: Store,
  text: string,
  { isFor, expiresAt }: { isFor: (grant: ClientGrant) => boolean; expiresAt: number },
): Promise<Refreshed | undefined> {
  const token = tokenIn(env, text);
  if (token === undefined) return undefined;
  const { userId, sessionId, round } = token;
  const grantKey = keys.oauthRefresh(userId, sessionId);
  const json = await redis.hget(grantKey, "json");
  const grant = json === null ? undefined : (JSON.parse(json) as ClientGrant);
  // A request by another client doesn't consume the token.
  if (grant === undefined || !isFor(grant)) return undefined;
  const [became, next] = await scripts.useRefresh(
    redis,
    { grant: grantKey, sessions: keys.sessions(userId) },
    { sessionId, round, now: Date.now(), expiresAt, graceMs: GRACE_MS },
  );
  if (became !== "used") return undefined;
  return { sessionId, grant, refreshToken: textOf(env, { userId, sessionId, round: Number(next) }) };
}

function textOf(env: Store["env"], { userId, sessionId, round }: RefreshToken): string {
  const body = Buffer.from(JSON.stringify([userId, sessionId, round])).toString("base64url");
  return `${body}.${sign(env, PURPOSE, body)}`;
}

function tokenIn(env: Store["env"], text: string): RefreshToken | undefined {
  const [body = "", mac = ""] = text.split(".");
  if (!isSigned(env, PURPOSE, body, mac)) return undefined;
  const [userId, sessionId, round] = JSON.parse(Buffer.from(body, "base64url").toString("utf8"));
  return { userId, sessionId, round };
}
