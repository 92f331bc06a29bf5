import { readFile } from "node:fs/promises";
import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  type JSONWebKeySet,
  type JWTPayload,
  jwtVerify,
} from "jose";
import { LRUCache } from "lru-cache";
import type { Env } from "../platform/env.ts";
import { Fail } from "../platform/errors.ts";
import { membersOf, parseJson } from "../platform/json.ts";
import { Outbound } from "../platform/outbound.ts";
import type { SigningKey, TokenSession, TokenVerifier } from "../platform/runtime.ts";

type Keys = ReturnType<typeof createLocalJWKSet>;

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
  /** Real time in ms, independent of TEST_CLOCK. */
  clock?: () => number;
  /** Reads the external signer's key set. */
  outbound?: Pick<Outbound, "request">;
}

/**
 * Verifies session tokens of this service and of the external signer (docs/reference.md, "Session tokens"). It does not check membership.
 */
export class Sessions implements TokenVerifier {
  readonly #env: Env;
  readonly #own: SigningKey;
  readonly #ownKeys: Keys;
  readonly #outside: KeySet | undefined;
  readonly #isLive: SessionChecks["isLive"];
  readonly #clock: () => number;
  /** The sessions of tokens whose signature was verified. */
  readonly #checked: LRUCache<string, TokenSession>;

  constructor(env: Env, own: SigningKey, { isLive, clock = Date.now, outbound = new Outbound(env) }: SessionChecks) {
    const place = env.AUTH_JWKS_URL ?? env.AUTH_JWKS_FILE;
    this.#env = env;
    this.#own = own;
    this.#isLive = isLive;
    this.#clock = clock;
    this.#ownKeys = createLocalJWKSet(this.jwks);
    this.#outside = place === undefined ? undefined : new KeySet(() => readKeySet(outbound, place), clock);
    const size = { maxSize: MAX_CACHED_CHARACTERS, sizeCalculation: (_: unknown, token: string) => token.length };
    this.#checked = new LRUCache<string, TokenSession>({
      ...size,
      ttl: SIGNATURE_CACHE_MS,
      ttlResolution: 0,
      perf: { now: clock },
    });
  }

  /** The published key set of this service. */
  get jwks(): JSONWebKeySet {
    return { keys: [this.#own.publicJwk] };
  }

  async check(token: string, resource?: string): Promise<TokenSession> {
    const session = await this.#signed(token);
    if (session.resources !== undefined && !session.resources.some((one) => one === resource))
      throw new Fail("invalid_token", { detail: "The token was issued for another resource." });
    if (session.sessionId !== undefined && !(await this.#isLive(session)))
      throw new Fail("invalid_token", { detail: "The session was ended; sign in again." });
    return session;
  }

  /** The session of a signed token. The signature check is cached for a minute; the session's state is not. */
  async #signed(token: string): Promise<TokenSession> {
    const known = this.#checked.get(token);
    if (known) return known;
    const { payload, isOwn } = await this.#verify(token);
    const session = sessionOf(this.#env, payload, isOwn);
    const left = ((payload.exp as number) + LEEWAY_SECONDS) * 1000 - this.#clock();
    // Without a lifetime it would be cached for ever.
    this.#checked.set(token, session, { ttl: Math.max(1, Math.min(SIGNATURE_CACHE_MS, left)) });
    return session;
  }

  async #verify(token: string): Promise<{ payload: JWTPayload; isOwn: boolean }> {
    const { keys, issuer } = await this.#signerOf(token);
    try {
      const { payload } = await jwtVerify(token, keys, {
        algorithms,
        clockTolerance: LEEWAY_SECONDS,
        requiredClaims: ["sub", "exp"],
        currentDate: new Date(this.#clock()),
        issuer,
      });
      if (typeof payload.sub !== "string" || payload.sub === "") throw new Fail("invalid_token");
      return { payload, isOwn: keys === this.#ownKeys };
    } catch (error) {
      // A key that can't be used counts as none (RFC 7517, section 5).
      throw new Fail("invalid_token", {}, error);
    }
  }

  /** The keys of the token's signer, and the issuer that its tokens must have. `sessionOf` reads their audience. */
  async #signerOf(token: string): Promise<{ keys: Keys; issuer: string }> {
    const { BASE_URL, AUTH_ISSUER } = this.#env;
    const { issuer, kid } = unverifiedHeader(token);
    if (this.#outside !== undefined && issuer === AUTH_ISSUER && kid !== this.#own.kid)
      return { keys: await this.#outside.holding(kid), issuer };
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

/** The unverified issuer and key id of a token. */
function unverifiedHeader(token: string): { issuer: string; kid: string | undefined } {
  try {
    return { issuer: decodeJwt(token).iss ?? "", kid: decodeProtectedHeader(token).kid };
  } catch (error) {
    // Malformed in any way: not a token.
    throw new Fail("invalid_token", {}, error);
  }
}

/**
 * A key set at a URL or in a file. It is refreshed when it ages or when a key id is unknown. jose's `createRemoteJWKSet` can't replace it:
 * its cooldown counts from the last read, so that a key published just after one is rejected for 30 s; it can't refresh in the background
 * while the old set still serves; and it reports an unreadable key set (503) and a foreign key (401) by the same kind of error.
 */
class KeySet {
  readonly #read: () => Promise<JSONWebKeySet>;
  readonly #clock: () => number;
  #keys: Keys | undefined;
  #ids = new Set<string | undefined>();
  #readAt = Number.NEGATIVE_INFINITY;
  /** The earliest time of the next refresh. */
  #nextAt = Number.NEGATIVE_INFINITY;
  #failure: unknown;
  #refreshing: Promise<void> | undefined;

  constructor(read: () => Promise<JSONWebKeySet>, clock: () => number) {
    this.#read = read;
    this.#clock = clock;
  }

  /**
   * The keys for a token with this key id. An old set is refreshed in the background; an unknown id waits for one refresh, at most once per
   * cooldown. `service_unavailable` if only a refresh could decide and it fails.
   */
  async holding(kid: string | undefined): Promise<Keys> {
    const age = () => this.#clock() - this.#readAt;
    const isKnown = () => kid === undefined || this.#ids.has(kid);
    if (age() > MAX_AGE_MS) await this.#refresh();
    else if (!isKnown()) await this.#refresh(COOLDOWN_MS);
    else if (age() > REFRESH_AFTER_MS) void this.#refresh();
    const isUndecided = !isKnown() && this.#failure !== undefined;
    if (this.#keys === undefined || age() > MAX_AGE_MS || isUndecided) throw unreachable(this.#failure);
    return this.#keys;
  }

  /** One refresh at a time, and none in the pause after a failed one or in the `cooldown` (ms) after this one. Never rejects. */
  async #refresh(cooldown = 0): Promise<void> {
    if (this.#refreshing === undefined && this.#clock() < this.#nextAt) return;
    this.#refreshing ??= this.#load(cooldown).finally(() => {
      this.#refreshing = undefined;
    });
    await this.#refreshing;
  }

  async #load(cooldown: number): Promise<void> {
    try {
      const keys = (await this.#read()).keys.map(membersOf) as JSONWebKeySet["keys"];
      this.#keys = createLocalJWKSet({ keys });
      this.#ids = new Set(keys.map(({ kid }) => kid));
      this.#readAt = this.#clock();
      this.#nextAt = this.#readAt + cooldown;
      this.#failure = undefined;
    } catch (error) {
      this.#failure = error;
      this.#nextAt = this.#clock() + RETRY_MS;
    }
  }
}

/** A key set may have 256 KB and 100 keys; real ones have a few keys, some with certificates. */
const KEY_SET_LIMITS = { timeoutMs: 3000, limit: 262_144, trusted: true };
const MAX_KEYS = 100;

async function readKeySet(outbound: Pick<Outbound, "request">, place: string): Promise<JSONWebKeySet> {
  if (!place.startsWith("http")) return JSON.parse(await readFile(place, "utf8")) as JSONWebKeySet;
  const { status, body } = await outbound.request(place, KEY_SET_LIMITS);
  if (status !== 200) throw new Error(`The key set answered ${status}.`);
  const set = parseJson<JSONWebKeySet>(body);
  if (!Array.isArray(set.keys) || set.keys.length > MAX_KEYS) throw new Error("The key set is not valid.");
  return set;
}

function unreachable(cause: unknown): Fail {
  const detail = "The signing keys of the token issuer cannot be loaded.";
  return new Fail("service_unavailable", { retryAfter: 5, detail }, cause);
}
