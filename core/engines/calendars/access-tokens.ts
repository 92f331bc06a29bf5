import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { Fail, insteadOf } from "../../platform/errors.ts";
import { perObject } from "../../platform/lazy.ts";
import type { CredentialRef, Runtime } from "../../platform/runtime.ts";
import { keys } from "../../store/keys.ts";
import { tryLock } from "../../store/lock.ts";
import { retryWhileAway } from "../../store/retry.ts";
import { refreshGrant } from "./oauth.ts";
import type { OAuthSettings, ProviderGrant, Tokens } from "./providers/provider.ts";

/** A connected account, and the settings to refresh its tokens with. */
export interface TokenHolder {
  runtime: Runtime;
  account: CredentialRef;
  settings: OAuthSettings;
}

/** Ms that a caller waits for a refresh, its own or another's (docs/reference.md, "Connected accounts"). */
const REFRESH_WAIT_MS = 4_500;

/** Running refreshes, by the connection that stores their tokens: each continues after its caller has left. */
const runningOf = perObject(() => new Set<Promise<unknown>>());

/** The secret to store for a grant; `oauth_exchange_failed` for a grant without a refresh token. */
export function secretFor({ tokens }: ProviderGrant): string {
  if (tokens.refreshToken === null)
    throw new Fail("oauth_exchange_failed", { detail: "The provider issued no refresh token." });
  return JSON.stringify(tokens);
}

/** Throws `oauth_exchange_failed` unless the owner granted one scope of each list. */
export function mustGrant({ answer }: ProviderGrant, ...needs: string[][]): void {
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
 * An access token of an account, refreshed if the cached one has expired or was `refused`. Only one refresh per account runs at a time over
 * all processes. Its tokens are stored before anyone uses them, because a refresh token may be valid only once; for the same reason a slow
 * refresh continues after its caller has left. `integration_revoked` if the grant has ended, which degrades the account;
 * `service_unavailable` after 4.5 s; `integration_not_found`.
 */
export async function accessToken(holder: TokenHolder, refused?: string): Promise<string> {
  const until = Date.now() + REFRESH_WAIT_MS;
  for (;;) {
    const usable = usableToken(await storedTokens(holder), refused);
    if (usable !== undefined) return usable;
    const fetched = await untilDeadline(holder.runtime, refresh(holder, refused), until);
    if (fetched !== undefined) return fetched;
    if (Date.now() >= until)
      throw new Fail("service_unavailable", { retryAfter: 5, detail: "The provider is responding too slowly." });
    await sleep(50);
  }
}

/** Waits until all running refreshes have stored their tokens; a process shuts down afterwards. */
export async function settleRefreshes(redis: Redis): Promise<void> {
  await Promise.allSettled(runningOf(redis));
}

/** The stored tokens; `integration_revoked` if the grant has ended. */
async function storedTokens({ runtime: { credentials }, account }: TokenHolder): Promise<Tokens> {
  const tokens = tokensIn(await credentials.secret(account));
  if (!tokens.ended) return tokens;
  const failure = new Fail("integration_revoked");
  await credentials.updateHealth(account, failure);
  throw failure;
}

/** The access token; undefined if it can't be used. */
function usableToken({ accessToken, staleAt }: Tokens, refused?: string): string | undefined {
  const isFresh = staleAt === null || Date.now() < staleAt;
  return isFresh && accessToken !== refused ? accessToken : undefined;
}

/** The new access token; undefined if another refresh runs or the grant has ended. */
async function refresh(holder: TokenHolder, refused: string | undefined): Promise<string | undefined> {
  const { handle, credentialId } = holder.account;
  const done = await tryLock(holder.runtime.redis, keys.refreshLock(handle, credentialId), async () => {
    // The previous refresh may have ended between our read and our lock.
    const tokens = await storedTokens(holder);
    return usableToken(tokens, refused) ?? fetchToken(holder, tokens);
  });
  return done?.result;
}

/** The outcome of a refresh; undefined at the deadline, after which the refresh continues. */
async function untilDeadline<T>({ redis, log }: Runtime, work: Promise<T>, until: number): Promise<T | undefined> {
  const running = runningOf(redis).add(work);
  const end = (): boolean => running.delete(work);
  work.then(end, end);
  const late = sleep(Math.max(0, until - Date.now()), "late" as const, { ref: false });
  const first = await Promise.race([work, late]);
  if (first !== "late") return first;
  work.catch((error: Error) => log.warn({ error: error.message }, "integration.refresh_failed"));
  return undefined;
}

async function fetchToken(holder: TokenHolder, tokens: Tokens): Promise<string | undefined> {
  const used = tokens.refreshToken;
  const refreshing = used === null ? undefined : refreshGrant(holder.runtime, holder.settings, used);
  const next = (await refreshing?.catch(insteadOf("integration_revoked", undefined)))?.tokens;
  // If the provider returns no refresh token, the old one remains valid.
  if (next) return (await persist(holder, used, { ...next, refreshToken: next.refreshToken ?? used })).accessToken;
  await persist(holder, used, { ...tokens, ended: true });
  // The next read degrades the account, or finds the tokens of a faster process.
  return undefined;
}

/** Replaces the tokens that a refresh started from. Newer tokens of another process stay. */
async function persist({ runtime, account }: TokenHolder, used: string | null, next: Tokens): Promise<Tokens> {
  const change = (secret: string | null): string | null =>
    tokensIn(secret).refreshToken === used ? JSON.stringify(next) : null;
  // A refresh token that is valid once must not be lost.
  return tokensIn(await retryWhileAway(() => runtime.credentials.changeSecret(account, change)));
}
