import type { Runtime } from "../platform/runtime.ts";
import { readSignedValue, signedValue } from "../platform/sealing.ts";
import { keys } from "../store/keys.ts";
import { transact } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";

/** The rights of a client's session, as granted. */
export interface ClientGrant {
  clientId: string;
  resource: string;
  scopes: string[];
  userId: string;
  email?: string | undefined;
}

/** The content of a token: its session, and its number within it. */
type RefreshToken = [userId: string, sessionId: string, round: number];

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
  await transact(redis, (transaction) => {
    transaction.hset(key, { round: 0, at: 0, json: JSON.stringify(grant) }).pexpireat(key, expiresAt);
  });
  return signedValue(env, PURPOSE, [grant.userId, sessionId, 0] satisfies RefreshToken);
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
  const token = readSignedValue<RefreshToken>(env, PURPOSE, text);
  if (token === undefined) return undefined;
  const [userId, sessionId, round] = token;
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
  const content: RefreshToken = [userId, sessionId, Number(next)];
  return { sessionId, grant, refreshToken: signedValue(env, PURPOSE, content) };
}
