import type { consentForm, consentPage, oauthReturn, ProviderKey } from "../../schemas/integrations.ts";
import type { Input } from "../../schemas/schema.ts";
import { displayNameOf, formProof, handleSession, loginUrl, sessionOfCookie, sessionOfForm } from "../account/face.ts";
import { takeState } from "../engines/calendars/calendars.ts";
import type { Env } from "../platform/env.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime, TokenSession } from "../platform/runtime.ts";
import { type SealBinding, seal, unseal } from "../platform/sealing.ts";
import { keys } from "../store/keys.ts";
import { type ConnectedAccount, storeCredential } from "./credentials.ts";
import { authorisedAccount, configuredProvider, revoke } from "./integrations.ts";

/** Seconds within which a user must confirm an account. */
const CONSENT_TTL_SECONDS = 600;
const FORM = "provider consent form";

/** An account that its user has not confirmed yet. */
interface PendingAccount extends ConnectedAccount {
  handle: string;
  userId: string;
}

/** A redirect. A browser without a session signs in first, and returns. */
export interface Redirect {
  location: string;
}

/** The contents of the consent page; `proof` ties its form to this account and session. */
export interface ConsentQuestion {
  providerKey: ProviderKey;
  account: string;
  handle: string;
  /** The name by which people know the handle. */
  name: string;
  user: string;
  consentId: string;
  proof: string;
}

/**
 * Handles a browser that returns from a provider. It is redirected to the application, which completes the authorisation as the user who
 * started it; nothing is connected here. If the built-in sign-in serves the application too, the consent page follows, only for that user's
 * browser. `integration_not_found` for a provider that does not exist, `provider_not_configured`, `invalid_oauth_state`,
 * `oauth_exchange_failed`.
 */
export async function returnFromProvider(
  runtime: Runtime,
  input: Input<"providerKey", typeof oauthReturn>,
): Promise<Redirect> {
  const { env } = runtime;
  const { providerKey, code, state, error } = input;
  configuredProvider(env, providerKey);
  if (!hasConsentPage(env)) return { location: address(env.APP_URL, { providerKey, code, state, error }) };
  if (error !== undefined || code === undefined) throw new Fail("oauth_exchange_failed");
  if (state === undefined) throw new Fail("invalid_oauth_state");
  const session = await sessionOfCookie(runtime, input.cookie);
  if (session === undefined) return signInFirst(env, `${providerKey}/return`, { code, state });
  const started = await takeState(runtime, { providerKey, state, userId: session.userId });
  const found = await authorisedAccount(runtime, { ...started, code });
  const pending: PendingAccount = { ...found, handle: started.handle, userId: session.userId };
  const consentId = runtime.id("con_");
  const sealed = seal(env, sealBinding(consentId), JSON.stringify(pending));
  await runtime.redis.set(keys.oauthConsent(consentId), sealed, "EX", CONSENT_TTL_SECONDS);
  return { location: address(pageOf(env, `${providerKey}/connect`), { consentId }) };
}

/**
 * The contents of the consent page; `integration_not_found`; `invalid_oauth_state` for another user's account and for a decided or old one.
 */
export async function askForConsent(
  runtime: Runtime,
  { providerKey, consentId, cookie }: Input<"providerKey", typeof consentPage>,
): Promise<ConsentQuestion | Redirect> {
  configuredProvider(runtime.env, providerKey);
  const session = await sessionOfCookie(runtime, cookie);
  if (session === undefined) return signInFirst(runtime.env, `${providerKey}/connect`, { consentId });
  const sealed = await runtime.redis.get(keys.oauthConsent(consentId));
  const pending = pendingOf(runtime, session, { consentId, sealed });
  const { account, handle } = pending;
  const proof = formProof(runtime.env, session, { form: FORM, about: consentId });
  const user = session.email ?? session.userId;
  const name = await displayNameOf(runtime.redis, handle);
  return { providerKey: pending.providerKey, account, handle, name, user, consentId, proof };
}

/**
 * Handles the user's decision, once. `invalid_token` without a session; `forbidden` for a forged form and for a user without the role;
 * `invalid_oauth_state`.
 */
export async function decideConsent(
  runtime: Runtime,
  { consentId, decision, ...sent }: Input<"providerKey", typeof consentForm>,
): Promise<{ isConnected: boolean; account: string; name: string; handle: string; userId: string }> {
  const session = await sessionOfForm(runtime, sent, { form: FORM, about: consentId });
  const sealed = await runtime.redis.getdel(keys.oauthConsent(consentId));
  const { handle, userId, providerKey, account, secret } = pendingOf(runtime, session, { consentId, sealed });
  await handleSession(runtime, { role: "CREATOR" }, { token: session.token, handle });
  const isConnected = decision === "connect";
  if (isConnected) await storeCredential(runtime, handle, { providerKey, account, secret });
  else await revoke(runtime, handle, { providerKey, account, secret: () => secret });
  return { isConnected, account, name: await displayNameOf(runtime.redis, handle), handle, userId };
}

/** True if no other application completes authorisations: users sign in here, and the application is this service. */
function hasConsentPage({ LOGIN_BUILTIN, APP_URL, BASE_URL }: Env): boolean {
  return LOGIN_BUILTIN && new URL(APP_URL).origin === new URL(BASE_URL).origin;
}

function signInFirst(env: Env, page: string, query: Record<string, string>): Redirect {
  return { location: loginUrl(env, address(pageOf(env, page), query)) };
}

const pageOf = ({ BASE_URL }: Env, page: string): string => `${BASE_URL}/oauth/scheduling/${page}`;

function address(base: string, query: Record<string, string | undefined>): string {
  const url = new URL(base);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
  return url.href;
}

const sealBinding = (context: string): SealBinding => ({ purpose: "provider consent", context });

function pendingOf(
  { env }: Runtime,
  session: TokenSession,
  { consentId, sealed }: { consentId: string; sealed: string | null },
): PendingAccount {
  const json = sealed === null ? "{}" : unseal(env, sealBinding(consentId), sealed).toString("utf8");
  const pending = JSON.parse(json) as Partial<PendingAccount>;
  if (pending.userId !== session.userId) throw new Fail("invalid_oauth_state");
  return pending as PendingAccount;
}
