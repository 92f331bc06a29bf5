import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { Fail } from "../../platform/errors.ts";
import { tryLock } from "../../store/lock.ts";
import { keys } from "../../store/keys.ts";
import { isRedisAway } from "../../store/redis.ts";
import type { CredentialRef, Runtime } from "../../platform/runtime.ts";
import { refreshGrant } from "./oauth.ts";
import type { Grant, OAuthSettings } from "./providers/provider.ts";
import { perConnection } from "../../store/connections.ts";

/** The tokens of an account: what its sealed secret holds, as JSON. */
export interface Tokens {
  accessToken: string;
  refreshToken: string | null;
  /** Real ms from which the access token is no longer used; null where it lasts until it is refused. */
  staleAt: number | null;
  /** The provider said that the grant is over: only connecting again helps. */
  ended?: true;
}

/** Ms that the answer of a refresh is tried to be written for, should Redis be away just then. */
const persistFor = 30_000;
/** Ms that a caller waits for a refresh, its own or another's (docs/reference.md, "Connected accounts"). */
const REFRESH_WAIT_MS = 4_500;

/** Refreshes that no caller waits for any more, by the connection to which their tokens are written. */
const unattendedOf = perConnection(() => new Set<Promise<unknown>>());

/** The secret to keep for a grant; `oauth_exchange_failed` for one that would end with its first token. */
export function secretFor(grant: Grant): string {
  if (grant.refreshToken === null)
    throw new Fail("oauth_exchange_failed", { detail: "The provider issued no refresh token." });
  return JSON.stringify(tokensOf(grant, null));
}

/** Checks that the owner left every box ticked that the service needs: one scope of each list. `oauth_exchange_failed`. */
export function mustGrant({ answer }: Grant, ...needs: string[][]): void {
  if (typeof answer.scope !== "string") return;
  const granted = answer.scope.toLowerCase().split(/[ ,]+/);
  const isGranted = (scope: string): boolean => granted.some((one) => one.endsWith(scope.toLowerCase()));
  if (!needs.every((scopes) => scopes.some(isGranted)))
    throw new Fail("oauth_exchange_failed", {
      detail: "Access to the calendars was not granted; grant it and connect again.",
    });
}

/** The tokens in a secret. */
export function tokensIn(secret: string | null): Tokens {
  if (secret === null) throw new Fail("integration_revoked");
  return JSON.parse(secret) as Tokens;
}

/**
 * An access token of an account, fetched again if the cached one has expired or was `refused`. One fetch at a time for an
 * account over all processes; its tokens are written before anyone uses them, because refresh tokens may work once only. For the
 * same reason a slow fetch goes on after its caller has left. `integration_revoked` if the grant is over, which degrades the account;
 * `service_unavailable` after 4.5 s; `integration_not_found`.
 */
export async function accessToken(
  runtime: Runtime,
  holder: CredentialRef,
  { settings, refused }: { settings: OAuthSettings; refused?: string },
): Promise<string> {
  const until = Date.now() + REFRESH_WAIT_MS;
  for (;;) {
    const usable = await keptToken(runtime, holder, refused);
    if (usable !== undefined) return usable;
    const fetched = await attended(runtime, refresh(runtime, holder, { settings, refused }), until);
    if (fetched?.result !== undefined) return fetched.result;
    if (Date.now() >= until)
      throw new Fail("service_unavailable", { retryAfter: 5, detail: "The provider is responding too slowly." });
    await sleep(50);
  }
}

/** Waits until the refreshes that go on without a caller have written their tokens: a process ends after them. */
export async function settleRefreshes(redis: Redis): Promise<void> {
  await Promise.allSettled(unattendedOf(redis));
}

function refresh(
  runtime: Runtime,
  holder: CredentialRef,
  { settings, refused }: { settings: OAuthSettings; refused: string | undefined },
): Promise<{ result: string | undefined } | undefined> {
  // The one before may have ended between our look and our lock.
  return tryLock(
    runtime.redis,
    keys.refreshLock(holder.handle, holder.credentialId),
    async () => (await keptToken(runtime, holder, refused)) ?? (await fetchTokens(runtime, holder, settings)),
  );
}

/** The outcome of a refresh, or undefined at the deadline: the refresh goes on then. */
async function attended<T>({ redis, log }: Runtime, work: Promise<T>, until: number): Promise<T | undefined> {
  const deadline = new AbortController();
  const late = sleep(Math.max(0, until - Date.now()), "late" as const, { signal: deadline.signal }).catch(() => "late");
  const first = await Promise.race([work, late]).finally(() => deadline.abort());
  if (first !== "late") return first as T;
  const running = unattendedOf(redis).add(work);
  work
    .catch((error: Error) => log.warn({ error: error.message }, "integration.refresh_failed"))
    .finally(() => running.delete(work));
  return undefined;
}

/** The access token that is kept, or undefined where it can't be used. */
async function keptToken(runtime: Runtime, holder: CredentialRef, refused?: string): Promise<string | undefined> {
  const tokens = await keptTokens(runtime, holder);
  if (tokens.ended) {
    const failure = new Fail("integration_revoked");
    await runtime.credentials.judge(holder, failure);
    throw failure;
  }
  const isFresh = tokens.staleAt === null || Date.now() < tokens.staleAt;
  return isFresh && tokens.accessToken !== refused ? tokens.accessToken : undefined;
}

async function keptTokens({ credentials }: Runtime, holder: CredentialRef): Promise<Tokens> {
  return tokensIn(await credentials.secret(holder));
}

async function fetchTokens(
  runtime: Runtime,
  holder: CredentialRef,
  settings: OAuthSettings,
): Promise<string | undefined> {
  const tokens = await keptTokens(runtime, holder);
  const used = tokens.refreshToken;
  try {
    if (used === null) throw new Fail("integration_revoked");
    const grant = await refreshGrant(runtime, settings, used);
    return (await persist(runtime, holder, { used, next: tokensOf(grant, used) })).accessToken;
  } catch (error) {
    if (!(error instanceof Fail && error.code === "integration_revoked")) throw error;
    await persist(runtime, holder, { used, next: { ...tokens, ended: true } });
    // The next look degrades the account, or finds the tokens of one who was quicker.
    return undefined;
  }
}

/** Replaces the tokens that a refresh started from. Tokens that another process has written meanwhile stay. */
async function persist(
  runtime: Runtime,
  holder: CredentialRef,
  { used, next }: { used: string | null; next: Tokens },
): Promise<Tokens> {
  const until = Date.now() + persistFor;
  const change = (secret: string | null): string | null =>
    tokensIn(secret).refreshToken === used ? JSON.stringify(next) : null;
  for (;;) {
    try {
      return tokensIn(await runtime.credentials.changeSecret(holder, change));
    } catch (error) {
      // Giving up would lose a refresh token that works once.
      if (!isRedisAway(error) || Date.now() > until) throw error;
      await sleep(200);
    }
  }
}

/** A provider that answers without a refresh token means that the old one goes on. */
function tokensOf({ accessToken, refreshToken, expiresAt }: Grant, used: string | null): Tokens {
  const lasts = expiresAt === null ? null : expiresAt - Date.now();
  const staleAt = lasts === null ? null : Math.floor(Date.now() + lasts - Math.min(60_000, lasts / 10));
  return { accessToken, refreshToken: refreshToken ?? used, staleAt };
}
