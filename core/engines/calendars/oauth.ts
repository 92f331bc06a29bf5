import { Buffer } from "node:buffer";
import * as oauth from "oauth4webapi";
import type { ProviderKey } from "../../../schemas/integrations.ts";
import { Fail } from "../../platform/errors.ts";
import type { Outbound, OutboundCall } from "../../platform/outbound.ts";
import type { Runtime } from "../../platform/runtime.ts";
import { keys } from "../../store/keys.ts";
import type { OAuthSettings, ProviderGrant } from "./providers/provider.ts";

/** Lifetime of an authorisation request in seconds. */
const STATE_TTL_SECONDS = 600;

/** Limits of a token response: ms in all and without progress, and bytes. */
const EXCHANGE_LIMITS: OutboundCall = { timeoutMs: 10_000, idleTimeoutMs: 4_000, maxBytes: 65_536 };
/** A refresh may be silent for the whole time: the provider may already have replaced a single-use refresh token. */
const REFRESH_LIMITS: OutboundCall = { timeoutMs: 10_000, maxBytes: 65_536 };

/** A pending authorisation request. */
export interface AuthorisationRequest {
  handle: string;
  providerKey: ProviderKey;
  /** The user who started it; only this user may complete it. */
  userId: string;
  verifier: string;
}

/** The authorisation URL for the owner (RFC 6749 with PKCE, RFC 7636); its state is valid once. */
export async function requestAuthorisation(
  { redis, env }: Runtime,
  { handle, providerKey, userId }: Omit<AuthorisationRequest, "verifier">,
  settings: OAuthSettings,
): Promise<{ authorizeUrl: string; state: string }> {
  const [state, verifier] = [oauth.generateRandomState(), oauth.generateRandomCodeVerifier()];
  const started: AuthorisationRequest = { handle, providerKey, userId, verifier };
  await redis.set(keys.oauthState(state), JSON.stringify(started), "EX", STATE_TTL_SECONDS);
  const url = new URL(settings.authorize);
  const query = {
    response_type: "code",
    client_id: settings.clientId,
    redirect_uri: redirectUri(env.BASE_URL, providerKey),
    ...(settings.scope === "" ? {} : { scope: settings.scope }),
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    ...settings.parameters,
  };
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return { authorizeUrl: url.href, state };
}

/**
 * Consumes the state of an authorisation. `invalid_oauth_state` if it is unknown, used, expired, another provider's or another user's:
 * consent is bound to the user's browser (RFC 6749, section 10.12; RFC 9700, section 4.7).
 */
export async function takeState(
  { redis }: Runtime,
  returned: { providerKey: string; state: string; userId: string },
): Promise<AuthorisationRequest> {
  const json = await redis.getdel(keys.oauthState(returned.state));
  const started = JSON.parse(json ?? "{}") as Partial<AuthorisationRequest>;
  const isMeant = started.providerKey === returned.providerKey && started.userId === returned.userId;
  if (json === null || !isMeant) throw new Fail("invalid_oauth_state");
  return started as AuthorisationRequest;
}

/** Exchanges a code for tokens; `oauth_exchange_failed` if the provider refuses or returns no grant. */
export async function exchangeCode(
  { env, outbound }: Runtime,
  settings: OAuthSettings,
  { code, verifier, providerKey }: { code: string; verifier: string; providerKey: ProviderKey },
): Promise<ProviderGrant> {
  const parties = partiesOf(settings);
  const [server, client] = parties;
  const parameters = oauth.validateAuthResponse(server, client, new URLSearchParams({ code }), oauth.expectNoState);
  const redirect = redirectUri(env.BASE_URL, providerKey);
  const options = optionsOf(outbound, settings, EXCHANGE_LIMITS);
  try {
    const answer = await oauth.authorizationCodeGrantRequest(...parties, parameters, redirect, verifier, options);
    return grantOf(await oauth.processAuthorizationCodeResponse(server, client, answer));
  } catch (error) {
    const answers = [oauth.ResponseBodyError, oauth.WWWAuthenticateChallengeError, oauth.OperationProcessingError];
    throw answers.some((kind) => error instanceof kind) ? new Fail("oauth_exchange_failed", {}, error) : error;
  }
}

/** Exchanges a refresh token for new tokens; `integration_revoked` if the grant has ended (RFC 6749, section 5.2). */
export async function refreshGrant(
  { outbound }: Runtime,
  settings: OAuthSettings,
  refreshToken: string,
): Promise<ProviderGrant> {
  const parties = partiesOf(settings);
  const [server, client] = parties;
  const options = optionsOf(outbound, settings, REFRESH_LIMITS);
  const answer = await oauth.refreshTokenGrantRequest(...parties, refreshToken, options);
  try {
    return grantOf(await oauth.processRefreshTokenResponse(server, client, answer));
  } catch (error) {
    const code = errorCode(error);
    if (ENDED_GRANT_ERRORS.has(code ?? "")) throw new Fail("integration_revoked", {}, error);
    throw code ? new Error(`The provider refused the refresh: ${code}.`, { cause: error }) : error;
  }
}

/** The code of an error response (RFC 6749, section 5.2); undefined for any other failure. Only `invalid_client` has a challenge. */
function errorCode(error: unknown): string | undefined {
  if (error instanceof oauth.WWWAuthenticateChallengeError) return "invalid_client";
  return error instanceof oauth.ResponseBodyError ? /^[a-z_]{1,40}$/.exec(error.error)?.[0] : undefined;
}

/** Revokes a token at the provider (RFC 7009), and with it the whole grant if the provider does so. */
export async function revokeGrant({ outbound }: Runtime, settings: OAuthSettings, token: string): Promise<void> {
  if (settings.revoke === undefined) return;
  const [server, client, login] = partiesOf(settings);
  // Google expects the token alone.
  const sent: oauth.ClientAuth = settings.login === "basic" ? login : () => undefined;
  const revoking = { ...server, revocation_endpoint: settings.revoke };
  const { status } = await oauth.revocationRequest(revoking, client, sent, token, optionsOf(outbound, settings));
  if (status !== 200) throw new Error(`The provider answered ${status} to a revocation.`);
}

/** Token errors that only the owner can resolve; the last two are Microsoft's. */
const ENDED_GRANT_ERRORS = new Set(["invalid_grant", "interaction_required", "consent_required"]);

function partiesOf(settings: OAuthSettings): [oauth.AuthorizationServer, oauth.Client, oauth.ClientAuth] {
  const server = { issuer: new URL(settings.token).origin, token_endpoint: settings.token };
  return [server, { client_id: settings.clientId }, loginOf(settings)];
}

/** Without the encoding of RFC 6749, section 2.3.1: Zoom expects id and secret verbatim. */
function loginOf({ login, clientId, clientSecret }: OAuthSettings): oauth.ClientAuth {
  if (login === "post") return oauth.ClientSecretPost(clientSecret);
  const basic = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString("base64")}`;
  return (_server, _client, _body, headers) => headers.set("authorization", basic);
}

/** The URLs come from the settings, so http is allowed if the operator configured it. */
function optionsOf(
  outbound: Outbound,
  { token }: OAuthSettings,
  limits: Partial<OutboundCall> = {},
): oauth.TokenEndpointRequestOptions {
  return {
    [oauth.customFetch]: fetchBy(outbound, limits),
    [oauth.allowInsecureRequests]: token.startsWith("http:"),
  };
}

/** A `fetch` for the libraries of providers, whose URLs come from the settings. */
export function fetchBy(outbound: Outbound, limits: Partial<OutboundCall> = {}) {
  return async (url: string, { method = "GET", headers, body }: RequestInit = {}): Promise<Response> => {
    const sent = { method, headers: Object.fromEntries(new Headers(headers)), ...(body ? { body: String(body) } : {}) };
    const answer = await outbound.request(url, { ...sent, trusted: true, ...limits });
    // A response with the status 204 may have no body, not even an empty one.
    const content = answer.body.length === 0 ? null : new Uint8Array(answer.body);
    return new Response(content, { status: answer.status, headers: answer.headers });
  };
}

/** A token that fits into a header (RFC 6749, appendix A.12). One that doesn't would be stored and refused until it expires. */
const USABLE_TOKEN = /^[\x20-\x7e]{1,16384}$/;

/** The access token is stale a minute before it expires, or a tenth of its lifetime. */
function grantOf(answer: oauth.TokenEndpointResponse): ProviderGrant {
  const { access_token: accessToken, refresh_token: refreshToken = null, expires_in: seconds } = answer;
  if (![accessToken, refreshToken ?? "-"].every((token) => USABLE_TOKEN.test(token)))
    throw new oauth.OperationProcessingError("The provider issued a token that can't be sent.");
  const lifetimeMs = (seconds ?? 0) * 1000;
  const staleAt = Math.floor(Date.now() + lifetimeMs - Math.min(60_000, lifetimeMs / 10));
  return { tokens: { accessToken, refreshToken, staleAt: seconds === undefined ? null : staleAt }, answer };
}

/** Where providers redirect browsers to (docs/reference.md, "Connected accounts"). */
function redirectUri(base: string, providerKey: string): string {
  return `${base}/oauth/scheduling/${providerKey}/return`;
}
