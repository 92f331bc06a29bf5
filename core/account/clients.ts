import { Buffer } from "node:buffer";
import type { clientRegistration, RegisteredClient } from "../../schemas/account.ts";
import type { Infer } from "../../schemas/schema.ts";
import type { Env } from "../platform/env.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { readSignedValue, signedValue } from "../platform/sealing.ts";
import { documentedClient, isDocumentId, type OAuthClient } from "./client-documents.ts";
import { oauthFailure, wrongClient } from "./oauth-failure.ts";
import { isRedirectUri, isRegistered } from "./redirect-addresses.ts";
import { deviceName } from "./session-store.ts";

/** Largest client registration in bytes; the client id contains it. */
const MAX_REGISTRATION_BYTES = 1500;
const PURPOSE = "mcp client";

/**
 * Registers a client (RFC 7591). Nothing is stored: the client id contains the registration and a MAC of this service.
 * `invalid_redirect_uri`, `invalid_client_metadata`.
 */
export async function registerClient(
  { env }: Runtime,
  input: Infer<typeof clientRegistration>,
): Promise<RegisteredClient> {
  mustBeBuiltIn(env);
  const { redirect_uris: redirectUris, client_name } = input;
  const wrong = redirectUris.find((uri) => !isRedirectUri(uri));
  if (wrong !== undefined)
    throw oauthFailure("invalid_redirect_uri", "Use https, loopback http or an app's own scheme.");
  const client: OAuthClient = { name: deviceName(client_name, "An MCP client"), redirectUris };
  const issuedAt = Math.floor(Date.now() / 1000);
  return {
    client_id: idOf(env, client),
    client_id_issued_at: issuedAt,
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
  if (!isRegistered(client.redirectUris, redirectUri))
    throw wrongClient("The client did not register this redirect address.");
  return client;
}

function registeredClient(env: Env, clientId: string): OAuthClient {
  const client = readSignedValue<OAuthClient>(env, PURPOSE, clientId);
  if (client === undefined) throw wrongClient("The client is not registered.");
  return client;
}

/** `not_found` unless the built-in sign-in is on; otherwise another authorization server is in charge. */
export function mustBeBuiltIn({ LOGIN_BUILTIN, AUTH_ISSUER }: Env): void {
  if (!LOGIN_BUILTIN || AUTH_ISSUER !== undefined) throw new Fail("not_found");
}

function idOf(env: Env, client: OAuthClient): string {
  if (Buffer.byteLength(JSON.stringify(client)) > MAX_REGISTRATION_BYTES)
    throw oauthFailure("invalid_client_metadata", `A registration has at most ${MAX_REGISTRATION_BYTES} bytes.`);
  return signedValue(env, PURPOSE, client);
}
