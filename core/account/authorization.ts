import { scopes as allScopes, type authorizationForm, type authorizationPage } from "../../schemas/account.ts";
import type { Infer } from "../../schemas/schema.ts";
import type { Env } from "../platform/env.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime, TokenSession } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { transact } from "../store/redis.ts";
import { formProof, loginUrl, sessionOfCookie, sessionOfForm } from "./browser-sessions.ts";
import { CODE_SECONDS, type CodeGrant } from "./client-tokens.ts";
import { clientAt, isDocumentId } from "./clients.ts";
import { hasRole, roleOf } from "./handles.ts";
import { displayNameOf } from "./settings.ts";

type PageInput = Infer<typeof authorizationPage>;
type Fields = Omit<PageInput, "cookie">;

/** A redirect, the contents of the consent page, or the user whose account has no access. */
export type AuthorizationStep =
  | { step: "onward"; location: string }
  | ConsentRequest
  | ({ step: "stranger" } & Pick<ConsentRequest, "user" | "loginUrl">);

/** A client's request for the tools of a handle. `proof` ties the form to this request and session. */
export interface ConsentRequest {
  step: "ask";
  client: string;
  handle: string;
  /** The name by which people know the handle. */
  name: string;
  user: string;
  /** Address of the sign-in, which returns here. */
  loginUrl: string;
  scopes: string[];
  request: Fields;
  proof: string;
}

/** Authorization server metadata (RFC 8414, section 2). */
export async function describeServer({ env }: Runtime): Promise<Record<string, unknown>> {
  const { BASE_URL } = env;
  return {
    issuer: BASE_URL,
    authorization_endpoint: `${BASE_URL}/oauth/authorize`,
    token_endpoint: `${BASE_URL}/oauth/token`,
    registration_endpoint: `${BASE_URL}/oauth/register`,
    scopes_supported: allScopes,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: ["authorization_code", "refresh_token"],
    code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: ["none"],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: true,
  };
}

/**
 * Handles a client's authorization request. An unknown client or redirect address is shown to the user (`invalid_request`); other errors
 * redirect to the client. A browser without a session signs in first, so that nobody's link leads a stranger away from here (RFC 9700,
 * section 4.11.2).
 */
export async function askAuthorization(
  runtime: Runtime,
  { cookie, ...request }: PageInput,
): Promise<AuthorizationStep> {
  const { env } = runtime;
  const session = await sessionOfCookie(runtime, cookie);
  const login = loginUrl(env, `${env.BASE_URL}/oauth/authorize?${queryOf(request)}`);
  // Documents are fetched only for signed-in users.
  if (session === undefined && isDocumentId(request.client_id)) return { step: "onward", location: login };
  const client = await clientAt(runtime, request.client_id, request.redirect_uri);
  if (session === undefined) return { step: "onward", location: login };
  const fault = faultOf(env, request);
  if (fault) return { step: "onward", location: backTo(env, request, fault) };
  const handle = handleOf(env, request.resource) as string;
  const who = { user: session.email ?? session.userId, loginUrl: login };
  if (!(await belongs(runtime, handle, session))) return { step: "stranger", ...who };
  const name = await displayNameOf(runtime.redis, handle);
  const proof = formProof(env, session, formOf(request));
  return { step: "ask", client: client.name, handle, name, ...who, scopes: scopesOf(request), request, proof };
}

/**
 * Handles the user's decision and redirects to the client with a code or an error. `invalid_token` without a session; `forbidden` for a
 * forged form and for a user without a role on the handle.
 */
export async function decideAuthorization(
  runtime: Runtime,
  { cookie, decision, proof, ...request }: Infer<typeof authorizationForm>,
): Promise<{ step: "onward"; location: string }> {
  const { env } = runtime;
  const session = await sessionOfForm(runtime, { cookie, proof }, formOf(request));
  const client = await clientAt(runtime, request.client_id, request.redirect_uri);
  const answer = decision === "allow" ? await grant(runtime, request, { client: client.name, session }) : denied;
  return { step: "onward", location: backTo(env, request, answer) };
}

/** The resource identifier of a handle's tools. */
export function toolsResource({ BASE_URL }: Pick<Env, "BASE_URL">, handle: string): string {
  return `${BASE_URL}/mcp/${handle}/mcp`;
}

const denied = { error: "access_denied" };

async function grant(
  runtime: Runtime,
  request: Fields,
  { client, session }: { client: string; session: TokenSession },
): Promise<{ code: string }> {
  if (!(await belongs(runtime, handleOf(runtime.env, request.resource) as string, session)))
    throw new Fail("forbidden");
  const code = runtime.id("oac_");
  const granted: CodeGrant = {
    clientId: request.client_id,
    client,
    redirectUri: request.redirect_uri,
    challenge: request.code_challenge ?? "",
    resource: request.resource ?? "",
    scopes: scopesOf(request),
    userId: session.userId,
    email: session.email,
    sessionId: runtime.id("ses_"),
  };
  await transact(runtime.redis, (transaction) => {
    const key = keys.oauthCode(code);
    transaction.hset(key, "json", JSON.stringify(granted)).expire(key, CODE_SECONDS);
  });
  return { code };
}

/** The OAuth error of a request (RFC 6749, section 4.1.2.1), if it has one. */
function faultOf(env: Env, request: Fields): { error: string; error_description: string } | undefined {
  const { response_type, code_challenge_method, code_challenge = "", resource } = request;
  if (response_type !== "code") {
    const error = response_type ? "unsupported_response_type" : "invalid_request";
    return { error, error_description: "Use the response type code." };
  }
  if (code_challenge_method !== "S256" || !/^[\w-]{43}$/.test(code_challenge))
    return { error: "invalid_request", error_description: "PKCE with S256 is required." };
  if (handleOf(env, resource) === undefined)
    return { error: "invalid_target", error_description: "Name the MCP endpoint as the resource." };
  if (scopesOf(request).length === 0)
    return { error: "invalid_scope", error_description: `The scopes are ${allScopes.join(", ")}.` };
  return undefined;
}

/** The handle of a resource identifier; undefined for every other URL. */
function handleOf(env: Env, resource = ""): string | undefined {
  const [handle] = resource.slice(env.BASE_URL.length).split("/").slice(2);
  return handle && resource === toolsResource(env, handle) ? handle : undefined;
}

/** The known scopes of the request; all scopes if it names none at all. */
function scopesOf({ scope = "" }: Fields): string[] {
  return allScopes.filter((one) => scope === "" || scope.split(" ").includes(one));
}

async function belongs({ redis }: Runtime, handle: string, { userId }: TokenSession): Promise<boolean> {
  const role = await roleOf(redis, handle, userId);
  return role !== undefined && hasRole(role, "CREATOR");
}

/** The client's redirect address, with its own query (RFC 6749, section 3.1.2), the response, the state and the issuer (RFC 9207). */
function backTo({ BASE_URL }: Env, { redirect_uri, state }: Fields, answer: Record<string, string>): string {
  const url = new URL(redirect_uri);
  const added = new URLSearchParams({ ...answer, ...(state !== undefined && { state }), iss: BASE_URL });
  url.search += `${url.search && "&"}${added}`;
  return url.href;
}

/** Browsers send the fields of the form in another order than the client those of its query. */
function formOf(request: Fields): { form: string; about: string } {
  const query = queryOf(request);
  query.sort();
  return { form: "mcp authorization form", about: query.toString() };
}

function queryOf(request: Fields): URLSearchParams {
  const named = Object.entries(request).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  return new URLSearchParams(named);
}
