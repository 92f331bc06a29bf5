import { Buffer } from "node:buffer";
import { LRUCache } from "lru-cache";
import type { clientRegistration, RegisteredClient } from "../../schemas/account.ts";
import type { Infer } from "../../schemas/schema.ts";
import type { Env } from "../platform/env.ts";
import { Fail } from "../platform/errors.ts";
import { asObject, parseJson } from "../platform/json.ts";
import { perObject } from "../platform/lazy.ts";
import type { OutboundCall } from "../platform/outbound.ts";
import type { Runtime } from "../platform/runtime.ts";
import { readSignedValue, signedValue } from "../platform/sealing.ts";
import { deviceName } from "./session-store.ts";

interface OAuthClient {
  name: string;
  redirectUris: string[];
}

/** Largest client registration in bytes; the client id contains it. */
const MAX_REGISTRATION_BYTES = 1500;
const PURPOSE = "mcp client";
/** A document is small, fetched without redirects, and cached for five minutes. */
const DOCUMENT_CALL: OutboundCall = { timeoutMs: 3000, maxBytes: 5120, headers: { accept: "application/json" } };
const documentsOf = perObject(() => new LRUCache<string, OAuthClient>({ max: 500, ttl: 300_000 }));
const MAX_ADDRESS_LENGTH = 500;
const MAX_REDIRECTS = 10;
/** Schemes that browsers handle themselves, so that no app can own them (RFC 8252, section 7.1). */
const BROWSER_SCHEMES = /^(javascript|data|file|blob|about|vbscript|filesystem|view-source|wss?|ftp):$/;
const LOOPBACK = /^(localhost|127\.0\.0\.1|\[::1\])$/;
const LOOPBACK_PORT = /^(http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])):\d{1,5}(?=[/?]|$)/;

/**
 * Registers a client (RFC 7591). Nothing is stored: the client id contains the registration and a MAC of this service.
 * `invalid_redirect_uri`, `invalid_client_metadata`.
 */
export async function registerClient(
  { env }: Runtime,
  input: Infer<typeof clientRegistration>,
): Promise<RegisteredClient> {
  const { redirect_uris: redirectUris, client_name } = input;
  if (!redirectUris.every(isRedirectUri))
    throw oauthFailure("invalid_redirect_uri", "Use https, loopback http or an app's own scheme.");
  const client: OAuthClient = { name: deviceName(client_name, "An MCP client"), redirectUris };
  if (Buffer.byteLength(JSON.stringify(client)) > MAX_REGISTRATION_BYTES)
    throw oauthFailure("invalid_client_metadata", `A registration has at most ${MAX_REGISTRATION_BYTES} bytes.`);
  return {
    client_id: signedValue(env, PURPOSE, client),
    client_id_issued_at: Math.floor(Date.now() / 1000),
    client_name: client.name,
    redirect_uris: redirectUris,
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
}

/**
 * The client of an id, if it registered this redirect address; else `invalid_request`, without a redirect. An id that is a URL
 * refers to a client document.
 */
export async function clientAt(runtime: Runtime, clientId: string, redirectUri: string): Promise<OAuthClient> {
  const client = isDocumentId(clientId)
    ? await documentedClient(runtime, clientId)
    : registeredClient(runtime.env, clientId);
  if (client === undefined) throw wrongClient("The client is not registered.");
  if (!isRegistered(client.redirectUris, redirectUri))
    throw wrongClient("The client did not register this redirect address.");
  return client;
}

/**
 * `invalid_client` for an id that was not registered under the current keys: its client registers again. A client that has tried to
 * authenticate gets 401 (RFC 6749, section 5.2).
 */
export function mustBeClient(env: Env, clientId = "", authorization?: string): void {
  if (isDocumentId(clientId) || registeredClient(env, clientId)) return;
  const failure = oauthFailure("invalid_client", "The client is not registered.");
  if (authorization === undefined) throw failure;
  throw new Fail("invalid_token", { ...failure.details, challenge: 'Basic realm="oauth"' });
}

function registeredClient(env: Env, clientId: string): OAuthClient | undefined {
  return readSignedValue<OAuthClient>(env, PURPOSE, clientId);
}

/** `not_found` unless the built-in sign-in is on; otherwise another authorization server is in charge. */
export async function mustBeBuiltIn({ env }: Runtime): Promise<void> {
  if (!env.LOGIN_BUILTIN) throw new Fail("not_found");
}

/** True for a client id that is a URL and so refers to a document; ids of registered clients never do. */
export function isDocumentId(clientId: string): boolean {
  return /^https?:/i.test(clientId);
}

/** A failure with the name of an OAuth error: RFC 6749 (section 5.2), RFC 7591 (section 3.2.2) or RFC 8707 (section 2). */
export function oauthFailure(error: string, detail: string): Fail {
  return new Fail("invalid_request", { detail, more: { error } });
}

/** A failure that must not be redirected, since the client's redirect address is unknown: the user sees it. */
function wrongClient(detail: string, cause?: unknown): Fail {
  return new Fail("invalid_request", { detail }, cause);
}

/**
 * The client of a metadata document (draft-ietf-oauth-client-id-metadata-document): the document is at the URL of its id, contains that id
 * and the redirect addresses, and has no secret. `invalid_request` if it can't be fetched or is invalid.
 */
async function documentedClient({ redis, outbound }: Runtime, clientId: string): Promise<OAuthClient> {
  const cache = documentsOf(redis);
  const known = cache.get(clientId);
  if (known) return known;
  if (!isDocumentAddress(clientId)) throw wrongClient("The client's id is not the address of a client document.");
  const client = clientOf(clientId, await fetchDocument(outbound, clientId));
  cache.set(clientId, client);
  return client;
}

/** https (http on loopback), with a plain path, without userinfo or fragment (section 3). */
function isDocumentAddress(clientId: string): boolean {
  if (clientId.length > MAX_ADDRESS_LENGTH || !URL.canParse(clientId)) return false;
  const { href, protocol, hostname, pathname, username, password } = new URL(clientId);
  const isSafe = protocol === "https:" || LOOPBACK.test(hostname);
  return isSafe && href === clientId && pathname !== "/" && !clientId.includes("#") && username + password === "";
}

/** The document's claims, unverified. */
async function fetchDocument(outbound: Runtime["outbound"], clientId: string): Promise<Record<string, unknown>> {
  const answer = await outbound.request(clientId, DOCUMENT_CALL).catch((error: unknown) => {
    throw wrongClient("The client's document can't be fetched.", error);
  });
  if (answer.status !== 200) throw wrongClient(`The client's document answered ${answer.status}.`);
  try {
    return asObject(parseJson(answer.body));
  } catch (error) {
    throw wrongClient("The client's document is no JSON.", error);
  }
}

function clientOf(clientId: string, document: Record<string, unknown>): OAuthClient {
  const { client_id, client_name, redirect_uris, token_endpoint_auth_method = "none" } = document;
  if (client_id !== clientId) throw wrongClient("The client's document names another client.");
  if (token_endpoint_auth_method !== "none" || "client_secret" in document)
    throw wrongClient("A client with a document of its own has no secret here.");
  const redirectUris = Array.isArray(redirect_uris) ? redirect_uris.slice(0, MAX_REDIRECTS) : [];
  if (!redirectUris.every(isRedirectUri))
    throw wrongClient("The client's document has a redirect address that can't be used.");
  // The host is verified, and always whole; the name is only the client's claim.
  const { host } = new URL(clientId);
  return { name: [deviceName(client_name), host].filter(Boolean).join(" – "), redirectUris };
}

/** https, http on loopback, or an app's scheme; no fragment (RFC 6749, section 3.1.2) and no credentials. */
function isRedirectUri(uri: unknown): uri is string {
  if (typeof uri !== "string" || !URL.canParse(uri) || /[\s"'<>\\#]/.test(uri)) return false;
  const { protocol, hostname, username, password } = new URL(uri);
  if (username !== "" || password !== "") return false;
  if (protocol === "http:") return LOOPBACK.test(hostname);
  return !BROWSER_SCHEMES.test(protocol);
}

/**
 * True for an address among the registered ones. On loopback every port matches: the app listens on a free one (RFC 8252, section 7.3;
 * RFC 9700, section 2.1, for `localhost`).
 */
function isRegistered(registered: readonly string[], uri: string): boolean {
  return URL.canParse(uri) && registered.map(withoutPort).includes(withoutPort(uri));
}

function withoutPort(uri: string): string {
  return uri.replace(LOOPBACK_PORT, "$1");
}
