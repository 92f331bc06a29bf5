import { readFile } from "node:fs/promises";
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from "jose";
import { LRUCache } from "lru-cache";
import type { Env } from "../platform/env.ts";
import { Fail } from "../platform/errors.ts";
import { asObject, parseJson } from "../platform/json.ts";
import { Outbound, type OutboundCall } from "../platform/outbound.ts";
import type { SigningKey, TokenSession, TokenVerifier } from "../platform/runtime.ts";

const algorithms = ["EdDSA", "ES256", "RS256"];
/** Tolerated clock difference in seconds (docs/reference.md, "Session tokens"). */
const LEEWAY_SECONDS = 5;
/** Ms for which a verified signature is cached (docs/reference.md, "Session tokens": at most 60 s). */
const SIGNATURE_CACHE_MS = 60_000;
/** Characters of all cached tokens: some ten thousand of our own. */
const MAX_CACHED_CHARACTERS = 4 * 2 ** 20;
/**
 * Ms after which a key set is refreshed, and after which one that can't be refreshed is no longer trusted
 * (docs/reference.md, "Session tokens").
 */
const REFRESH_AFTER_MS = 600_000;
const MAX_AGE_MS = 3_600_000;
/** Ms between two refreshes that an unknown key id may cause, and between two attempts after a failed one. */
const COOLDOWN_MS = 30_000;
const RETRY_MS = 1_000;

interface SessionChecks {
  /** False once the session of an own token is revoked. */
  isLive(session: TokenSession): Promise<boolean>;
  /** Reads the external signer's key set. */
  outbound?: Pick<Outbound, "request">;
}

/**
 * Verifies session tokens of this service and of the external signer (docs/reference.md, "Session tokens"). It does not check membership.
 */
export class SessionTokens implements TokenVerifier {
  readonly #env: Env;
  readonly #own: SigningKey;
  readonly #ownKeys: JWTVerifyGetKey;
  readonly #outside: JWTVerifyGetKey | undefined;
  readonly #isLive: SessionChecks["isLive"];
  /** The sessions of tokens whose signature was verified. */
  readonly #checked = new LRUCache<string, TokenSession>({
    maxSize: MAX_CACHED_CHARACTERS,
    sizeCalculation: (_session, token) => token.length,
    ttl: SIGNATURE_CACHE_MS,
    ttlResolution: 0,
    perf: Date,
  });

  constructor(env: Env, own: SigningKey, { isLive, outbound = new Outbound(env) }: SessionChecks) {
    const { AUTH_JWKS_URL: url, AUTH_JWKS_FILE: file } = env;
    this.#env = env;
    this.#own = own;
    this.#isLive = isLive;
    this.#ownKeys = createLocalJWKSet(this.jwks);
    this.#outside = url || file ? refreshedKeys(() => readKeySet(outbound, { url, file })) : undefined;
  }

  get jwks(): JSONWebKeySet {
    return { keys: [this.#own.publicJwk] };
  }

  async check(token: string, resource?: string): Promise<TokenSession> {
    const session = await this.verify(token, resource);
    await this.mustBeLive(session);
    return session;
  }

  async verify(token: string, resource?: string): Promise<TokenSession> {
    const session = await this.#signed(token);
    if (session.resources !== undefined && !session.resources.some((one) => one === resource))
      throw new Fail("invalid_token", { detail: "The token was issued for another resource." });
    return session;
  }

  async mustBeLive(session: TokenSession): Promise<void> {
    if (session.sessionId !== undefined && !(await this.#isLive(session)))
      throw new Fail("invalid_token", { detail: "The session was ended; sign in again." });
  }

  /** The session of a signed token. The signature check is cached for a minute; the session's state is not. */
  async #signed(token: string): Promise<TokenSession> {
    const known = this.#checked.get(token);
    if (known) return known;
    const { payload, isOwn } = await this.#verify(token);
    const session = sessionOf(this.#env, payload, isOwn);
    const left = ((payload.exp as number) + LEEWAY_SECONDS) * 1000 - Date.now();
    // Without a lifetime it would be cached for ever.
    this.#checked.set(token, session, { ttl: Math.max(1, Math.min(SIGNATURE_CACHE_MS, left)) });
    return session;
  }

  async #verify(token: string): Promise<{ payload: JWTPayload; isOwn: boolean }> {
    try {
      const { keys, issuer } = this.#signerOf(token);
      const { payload } = await jwtVerify(token, keys, {
        algorithms,
        clockTolerance: LEEWAY_SECONDS,
        requiredClaims: ["sub", "exp"],
        issuer,
      });
      if (typeof payload.sub !== "string" || payload.sub === "") throw new Fail("invalid_token");
      return { payload, isOwn: keys === this.#ownKeys };
    } catch (error) {
      if (error instanceof Fail) throw error;
      // Malformed in any way, or signed with a key that can't be used, which counts as none (RFC 7517, section 5).
      throw new Fail("invalid_token", {}, error);
    }
  }

  /** The keys of the token's signer, and the issuer that its tokens must have. `sessionOf` reads their audience. */
  #signerOf(token: string): { keys: JWTVerifyGetKey; issuer: string } {
    const { BASE_URL, AUTH_ISSUER } = this.#env;
    const [{ iss: issuer = "" }, { kid }] = [decodeJwt(token), decodeProtectedHeader(token)];
    if (this.#outside !== undefined && issuer === AUTH_ISSUER && kid !== this.#own.kid)
      return { keys: this.#outside, issuer };
    if (issuer !== BASE_URL) throw new Fail("invalid_token");
    return { keys: this.#ownKeys, issuer };
  }
}

/**
 * A token whose audience is not the service has only its scopes, at the resources that are its audience. Only own tokens name a session
 * of this service; an external signer's session ids are ignored.
 */
function sessionOf(env: Env, { sub = "", email, sid, aud = [], scope }: JWTPayload, isOwn: boolean): TokenSession {
  if (isOwn && typeof sid !== "string") throw new Fail("invalid_token", { detail: "Sign in again." });
  const { BASE_URL, AUTH_AUDIENCE = BASE_URL } = env;
  const mail = typeof email === "string" ? { email } : {};
  const resources = [aud].flat();
  const isForService = resources.includes(isOwn ? BASE_URL : AUTH_AUDIENCE);
  const bound = isForService ? {} : { resources, scopes: String(scope ?? "").split(" ") };
  return { userId: sub, ...mail, ...(isOwn ? { sessionId: sid as string } : {}), ...bound };
}

/**
 * The keys of a set that changes. An old set is refreshed in the background; an unknown key id waits for one refresh, at most once per
 * cooldown (jose's own counts from the last read, and would reject a key that was published just after one). `service_unavailable` if only
 * a refresh could decide and it fails.
 */
function refreshedKeys(read: () => Promise<Response>): JWTVerifyGetKey {
  const options = { cacheMaxAge: MAX_AGE_MS, cooldownDuration: REFRESH_AFTER_MS, [customFetch]: paused(read) };
  const keys = createRemoteJWKSet(new URL("https://key-set.invalid"), options);
  let nextAt = 0;
  return async (...token) => {
    if (!keys.coolingDown) void keys.reload().catch(() => undefined);
    try {
      return await keys(...token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      if (Date.now() >= nextAt) {
        await keys.reload();
        nextAt = Date.now() + COOLDOWN_MS;
      }
      return keys(...token);
    }
  };
}

/** Reads a key set, but not in the pause after a failed read; `service_unavailable`. */
function paused(read: () => Promise<Response>): () => Promise<Response> {
  let [failure, until]: [unknown, number] = [undefined, 0];
  return async () => {
    if (Date.now() >= until)
      try {
        return await read();
      } catch (error) {
        [failure, until] = [error, Date.now() + RETRY_MS];
      }
    const detail = "The signing keys of the token issuer cannot be loaded.";
    throw new Fail("service_unavailable", { retryAfter: 5, detail }, failure);
  };
}

/** A key set may have 256 KB and 100 keys; real ones have a few keys, some with certificates. */
const KEY_SET_CALL: OutboundCall = { timeoutMs: 3000, maxBytes: 262_144, trusted: true };
const MAX_KEYS = 100;

/** The set at an address or in a file. */
async function readKeySet(
  outbound: Pick<Outbound, "request">,
  { url, file = "" }: { url: string | undefined; file: string | undefined },
): Promise<Response> {
  const { status, body } = url
    ? await outbound.request(url, KEY_SET_CALL)
    : { status: 200, body: await readFile(file) };
  if (status !== 200) throw new Error(`The key set answered ${status}.`);
  const { keys } = parseJson<JSONWebKeySet>(body);
  if (!Array.isArray(keys) || keys.length > MAX_KEYS) throw new Error("The key set is not valid.");
  return Response.json({ keys: keys.map(asObject) });
}
