import type { Redis } from "ioredis";
import type { IssuedToken, tokenRequest } from "../../schemas/account.ts";
import type { Infer } from "../../schemas/schema.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { readSignedValue, sameText, signedValue } from "../platform/sealing.ts";
import { keys } from "../store/keys.ts";
import { transact } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";
import { mustBeClient, oauthFailure } from "./clients.ts";
import { challengeOf } from "./pairing.ts";
import { removeSession, startSession } from "./session-store.ts";
import { issueToken, type TokenClaims } from "./signing.ts";

/** Lifetime of a code in seconds; a used one is known for as long again. */
export const CODE_SECONDS = 60;
/** Lifetime in seconds of an access token, and of a session that is not refreshed. */
const TOKEN_SECONDS = 3600;
const SESSION_SECONDS = 30 * 86_400;
/** Ms after which a session ends, however often it is refreshed: its user decides again. */
const MAX_SESSION_MS = 365 * 86_400_000;
/** Ms in which a used refresh token is accepted again: the response to its first use may have been lost. */
const GRACE_MS = 10_000;
const PURPOSE = "refresh token";

interface ClientGrant extends Pick<TokenClaims, "userId" | "email"> {
  clientId: string;
  resource: string;
  scopes: string[];
}

export interface CodeGrant extends ClientGrant {
  client: string;
  redirectUri: string;
  challenge: string;
  /** The session that the code starts. */
  sessionId: string;
}

/** The content of a refresh token: its session, and its number within it. */
type RefreshToken = [userId: string, sessionId: string, round: number];

type TokenRequest = Infer<typeof tokenRequest>;

/**
 * Issues an access token for a code or a refresh token; it is valid only for its resource (RFC 8707). `invalid_request` carries the
 * OAuth error name.
 */
export async function issueAccess(runtime: Runtime, input: TokenRequest): Promise<IssuedToken> {
  mustHave(input, "grant_type");
  mustBeClient(runtime.env, input.client_id, input.authorization);
  if (input.grant_type === "authorization_code") return redeemCode(runtime, input);
  if (input.grant_type === "refresh_token") return refresh(runtime, input);
  throw oauthFailure("unsupported_grant_type", "Use the grant type authorization_code or refresh_token.");
}

/** `invalid_request` without one of these parameters; an empty one is absent (RFC 6749, section 3.2). */
function mustHave(input: TokenRequest, ...names: (keyof TokenRequest)[]): void {
  const missing = names.find((name) => !input[name]);
  if (missing) throw new Fail("invalid_request", { detail: `${missing} is required` });
}

/**
 * Redeems a code, once: it starts a session with its tokens. The first refresh token lives as long as the session. A second use ends the
 * session, since two parties have the code and its verifier (RFC 6749, section 4.1.2).
 */
async function redeemCode(runtime: Runtime, input: TokenRequest): Promise<IssuedToken> {
  mustHave(input, "code", "code_verifier");
  const { redis } = runtime;
  const codeKey = keys.oauthCode(input.code ?? "");
  const granted = await useCode(redis, codeKey, input);
  const { client: device, redirectUri: _uri, challenge: _challenge, sessionId, ...grant } = granted;
  const { userId, email } = grant;
  const session = { sessionId, userId, email, kind: "mcp" as const, device, grant };
  const lifetimes = { seconds: SESSION_SECONDS, tokenSeconds: TOKEN_SECONDS };
  const { token, expiresAt } = await startSession(runtime, { ...session, ...lifetimes });
  // A second use that came before the session has found none to end.
  if ((await redis.hget(codeKey, "uses")) !== "1") await removeSession(redis, userId, sessionId);
  const key = keys.oauthRefresh(userId, sessionId);
  await transact(redis, (transaction) => {
    transaction.hset(key, { round: 0, at: 0, json: JSON.stringify(grant) }).pexpireat(key, Date.parse(expiresAt));
  });
  return issued(runtime, { token, seconds: TOKEN_SECONDS, scopes: grant.scopes, refresh: [userId, sessionId, 0] });
}

/** The grant of a code at its first use; `invalid_request` at any other. A use without its verifier ends an unused code. */
async function useCode(redis: Redis, codeKey: string, input: TokenRequest): Promise<CodeGrant> {
  const json = await redis.hget(codeKey, "json");
  if (json === null) throw refused("code");
  const granted = JSON.parse(json) as CodeGrant;
  const isTheirs = isRedeemer(granted, input);
  // A used code is not counted again by strangers, who could end its session.
  const [use] = await transact(redis, (transaction) => {
    if (isTheirs) transaction.hincrby(codeKey, "uses", 1);
    else transaction.hsetnx(codeKey, "uses", 1);
    transaction.expire(codeKey, CODE_SECONDS);
  });
  if (isTheirs && use === 1) return granted;
  if (isTheirs) await removeSession(redis, granted.userId, granted.sessionId);
  throw refused("code");
}

function isRedeemer(granted: CodeGrant, input: TokenRequest): boolean {
  const isProven = sameText(challengeOf(input.code_verifier ?? ""), granted.challenge);
  // OAuth 2.1 (section 10.2) drops the redirect address from this request; one that is sent must match.
  return isProven && (!input.redirect_uri || input.redirect_uri === granted.redirectUri) && isFor(granted, input);
}

function isFor({ clientId, resource }: ClientGrant, input: TokenRequest): boolean {
  return input.client_id === clientId && (!input.resource || input.resource === resource);
}

/**
 * Continues a session: the refresh token is replaced each time (RFC 6749, section 6). Reuse of a replaced one ends its session (RFC 9700,
 * section 4.14.2). Within ten seconds the same token is answered again, with the same next one.
 */
async function refresh(runtime: Runtime, input: TokenRequest): Promise<IssuedToken> {
  mustHave(input, "refresh_token");
  const { userId, sessionId, round, grant } = await readGrant(runtime, input);
  const scopes = refreshedScopes(grant, input);
  const scriptKeys = { grant: keys.oauthRefresh(userId, sessionId), sessions: keys.sessions(userId) };
  const now = Date.now();
  const limits = { expiresAt: now + SESSION_SECONDS * 1000, graceMs: GRACE_MS, maxMs: MAX_SESSION_MS };
  const use = { sessionId, round, now, ...limits };
  const [next, endsAt] = await scripts.useRefresh(runtime.redis, scriptKeys, use);
  if (next === undefined) throw refused("refresh token");
  const seconds = Math.min(TOKEN_SECONDS, Math.floor((Number(endsAt) - now) / 1000));
  const claims = { userId, email: grant.email, sessionId, expiresAt: now + seconds * 1000 };
  const token = await issueToken(runtime, { ...claims, grant: { ...grant, scopes } });
  return issued(runtime, { token, seconds, scopes, refresh: [userId, sessionId, Number(next)] });
}

/** What a refresh token names, and the stored grant of that session. A request by another client doesn't consume the token. */
async function readGrant({ redis, env }: Runtime, input: TokenRequest) {
  const [userId, sessionId, round] = readSignedValue<RefreshToken>(env, PURPOSE, input.refresh_token ?? "") ?? [];
  if (userId === undefined || sessionId === undefined || round === undefined) throw refused("refresh token");
  const json = await redis.hget(keys.oauthRefresh(userId, sessionId), "json");
  const grant = json === null ? undefined : (JSON.parse(json) as ClientGrant);
  if (grant === undefined || !isFor(grant, input)) throw refused("refresh token");
  return { userId, sessionId, round, grant };
}

/** The scopes of a refreshed token: those of the grant, or fewer (RFC 6749, section 6). Unknown ones beside them are ignored. */
function refreshedScopes({ scopes }: ClientGrant, { scope }: TokenRequest): string[] {
  const kept = scope ? scopes.filter((one) => scope.split(" ").includes(one)) : scopes;
  if (kept.length === 0) throw oauthFailure("invalid_scope", `The scopes are ${scopes.join(", ")}.`);
  return kept;
}

function refused(what: "code" | "refresh token"): Error {
  return oauthFailure("invalid_grant", `The ${what} is over, was used before, or belongs to another client.`);
}

function issued(
  { env }: Runtime,
  { token, seconds, scopes, refresh }: { token: string; seconds: number; scopes: string[]; refresh: RefreshToken },
): IssuedToken {
  return {
    access_token: token,
    token_type: "Bearer",
    expires_in: seconds,
    refresh_token: signedValue(env, PURPOSE, refresh),
    scope: scopes.join(" "),
  };
}
