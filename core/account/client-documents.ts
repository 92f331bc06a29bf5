import type { Buffer } from "node:buffer";
import { LRUCache } from "lru-cache";
import { AnswerRefused } from "../platform/exchange.ts";
import { parseJson } from "../platform/json.ts";
import type { Runtime } from "../platform/runtime.ts";
import { perConnection } from "../store/connections.ts";
import { wrongClient } from "./oauth-failure.ts";
import { isRedirectUri, LOOPBACK } from "./redirect-addresses.ts";
import { deviceName } from "./session-store.ts";

/** A client as described by its id. */
export interface OAuthClient {
  name: string;
  redirectUris: string[];
}

/** A document is small, fetched without redirects, and cached for five minutes. */
const FETCH = { timeoutMs: 3000, limit: 5 * 1024, headers: { accept: "application/json" } };
const CACHED_MS = 300_000;
const MAX_CACHED = 500;
const MAX_ADDRESS_LENGTH = 500;
const MAX_REDIRECTS = 10;

/** The document's claims, unverified. */
interface ClientDocument {
  client_id?: unknown;
  client_name?: unknown;
  redirect_uris?: unknown;
  token_endpoint_auth_method?: unknown;
}

const cacheOf = perConnection(() => new LRUCache<string, OAuthClient>({ max: MAX_CACHED, ttl: CACHED_MS }));

/** True for a client id that is a URL and so refers to a document; ids of registered clients never do. */
export function isDocumentId(clientId: string): boolean {
  return /^https?:/i.test(clientId);
}

/**
 * The client of a metadata document (draft-ietf-oauth-client-id-metadata-document): the document is at the URL of its id, contains that id
 * and the redirect addresses, and has no secret. `invalid_request` if it can't be fetched or is invalid.
 */
export async function documentedClient(
  { redis, outbound }: Pick<Runtime, "redis" | "outbound">,
  clientId: string,
): Promise<OAuthClient> {
  const cache = cacheOf(redis);
  const known = cache.get(clientId);
  if (known) return known;
  if (!isDocumentAddress(clientId)) throw wrongClient("The client's id is not the address of a client document.");
  const client = clientOf(clientId, await fetchDocument(outbound, clientId));
  cache.set(clientId, client);
  return client;
}

/** https (http on loopback), with a plain path, without userinfo, query or fragment (section 3). */
function isDocumentAddress(clientId: string): boolean {
  if (clientId.length > MAX_ADDRESS_LENGTH || !URL.canParse(clientId)) return false;
  const { href, protocol, hostname, pathname, username, password } = new URL(clientId);
  const isSafe = protocol === "https:" || LOOPBACK.test(hostname);
  return isSafe && href === clientId && pathname !== "/" && !clientId.includes("#") && username + password === "";
}

async function fetchDocument(outbound: Runtime["outbound"], clientId: string): Promise<ClientDocument> {
  const answer = await outbound.request(clientId, FETCH).catch((error: unknown) => {
    throw wrongClient("The client's document can't be fetched.", error);
  });
  if (answer.status !== 200) throw wrongClient(`The client's document answered ${answer.status}.`);
  return parsed(answer.body);
}

function parsed(body: Buffer): ClientDocument {
  try {
    return parseJson<ClientDocument | null>(body) ?? {};
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof AnswerRefused)
      throw wrongClient("The client's document is no JSON.", error);
    throw error;
  }
}

function clientOf(clientId: string, document: ClientDocument): OAuthClient {
  const { client_id, client_name, redirect_uris, token_endpoint_auth_method = "none" } = document;
  if (client_id !== clientId) throw wrongClient("The client's document names another client.");
  if (token_endpoint_auth_method !== "none" || "client_secret" in document)
    throw wrongClient("A client with a document of its own has no secret here.");
  const redirectUris = Array.isArray(redirect_uris) ? redirect_uris.slice(0, MAX_REDIRECTS) : [];
  if (!redirectUris.every((uri): uri is string => typeof uri === "string" && isRedirectUri(uri)))
    throw wrongClient("The client's document has a redirect address that can't be used.");
  // The host is verified; the name is only the client's claim.
  const { host } = new URL(clientId);
  return { name: deviceName([deviceName(client_name), host].filter(Boolean).join(" – ")), redirectUris };
}
