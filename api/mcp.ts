import type { Buffer } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import { text } from "node:stream/consumers";
import type { McpRequestContext, Server } from "@modelcontextprotocol/server";
import { toolsResource } from "../core/account/face.ts";
import type { Env } from "../core/platform/env.ts";
import { Fail } from "../core/platform/errors.ts";
import { lazy } from "../core/platform/lazy.ts";
import type { Caller, Runtime } from "../core/platform/runtime.ts";
import { scopes } from "../schemas/account.ts";
import { anything, handle, map, object, optional, type Schema, string } from "../schemas/schema.ts";
import { type Access, anyone, type Row, route, type View } from "./route.ts";
import { assertToolAllowed, callTool, type ToolRow, toolRows, toolsFor } from "./tools.ts";

const endpoint = "/mcp/:handle/mcp";
const metadata = `/.well-known/oauth-protected-resource${endpoint}` as const;

/** A session, a personal access token, or a token that was issued for this endpoint only. */
const access: Access = { kind: "handle", role: "CREATOR", scopes, resource: toolsResource };

interface Message {
  handle: string;
  host: string;
  body: AsyncIterable<Buffer>;
  headers: IncomingHttpHeaders;
}

const message = object({ host: string(), body: anything, headers: anything }) as Schema<Omit<Message, "handle">>;

const rpcMessage = object({
  jsonrpc: string({ const: "2.0" }),
  id: optional({ type: ["string", "integer"] }),
  method: string({ examples: ["tools/call"] }),
  params: optional(map(anything, { examples: [{ name: "strategy_query", arguments: { query: "pricing pages" } }] })),
});
const rpcExample = { jsonrpc: "2.0", id: 1, result: { content: [{ type: "text", text: "…" }] } };

/**
 * The rows with a tool column over the Model Context Protocol (2026-07-28, and the stateless part of the 2025 versions): Streamable HTTP
 * without sessions, so that any web process can answer any message.
 */
export function mcpRows(all: () => Row[]): Row[] {
  const handler = lazy(() => openHandler(toolRows(all())));
  const callTools: MessageHandler = async (runtime, input, caller) => (await handler())(runtime, input, caller);
  return [
    route(`POST ${endpoint}`, access, message, callTools, {
      isReadOnly: true,
      view,
      challenge,
      summary: "Call tools over MCP",
      consumes: { "application/json": rpcMessage },
      produces: { types: ["application/json", "text/event-stream"], schema: { type: "object" }, example: rpcExample },
      empty: { 202: "The notification was received" },
      description:
        "Streamable HTTP without sessions: one JSON-RPC 2.0 message for each request. Send `Accept: application/json, text/event-stream`. Failures of the protocol (400, 406, 415) are JSON-RPC errors as `application/json`. Tools: `strategy_query`, `pages_list`, `pages_read`, `knowledge_query`, `bookings_list`.",
    }),
    route(`GET ${metadata}`, anyone, object({ handle }), describeResource, {
      headers: { "Cache-Control": "public, max-age=3600" },
      hidden: true,
    }),
  ];
}

type MessageHandler = (runtime: Runtime, input: Message, caller: Caller) => Promise<Response>;

/**
 * One HTTP exchange: our checks, then those of the large protocol library, which is loaded at the first message. The tools never change at
 * runtime, so there are no subscriptions.
 */
async function openHandler(tools: ToolRow[]): Promise<MessageHandler> {
  const library = await import("@modelcontextprotocol/server");
  const options = { maxSubscriptions: 0, keepAliveMs: 0 };
  const handler = library.createMcpHandler((context) => serverOf(library, tools, context), options);
  return async (runtime, input, caller) => {
    const { env } = runtime;
    assertKnownOrigin(env, input);
    const body = await text(input.body);
    for (const name of calledTools(body)) assertToolAllowed(tools, name, caller);
    const address = `${env.BASE_URL}/mcp/${input.handle}/mcp`;
    const request = new Request(address, { method: "POST", headers: forwardedHeaders(input.headers), body });
    const extra = { runtime, caller };
    const authInfo = { token: "", clientId: caller.userId ?? "", scopes: [...(caller.scopes ?? scopes)], extra };
    return handler.fetch(request, { authInfo });
  };
}

function serverOf(
  { Server, ProtocolError, ProtocolErrorCode }: typeof import("@modelcontextprotocol/server"),
  tools: ToolRow[],
  { authInfo }: McpRequestContext,
): Server {
  const { runtime, caller } = (authInfo?.extra ?? {}) as { runtime: Runtime; caller: Caller };
  const server = new Server({ name: "handle-platform", version: "2" }, { capabilities: { tools: {} } });
  const usable = toolsFor(tools, caller);
  server.setRequestHandler("tools/list", ({ params }) => {
    if (params?.cursor) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "The list has no further page.");
    return { tools: usable.map(({ described }) => described) };
  });
  server.setRequestHandler("tools/call", async ({ params }) => {
    const row = usable.find(({ tool }) => tool.name === params.name);
    if (row === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${params.name}.`);
    return callTool(runtime, row, { input: params.arguments ?? {}, caller });
  });
  return server;
}

/** Names of the tools that a body calls, also in a batch. The library rejects malformed messages. */
function calledTools(body: string): unknown[] {
  const messages = [parsed(body)].flat() as { method?: unknown; params?: { name?: unknown } }[];
  return messages.filter((one) => one?.method === "tools/call").map((one) => one.params?.name);
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    // The library replies to this with its own error.
    return undefined;
  }
}

/** Rejects browsers of other sites and rebound host names (DNS rebinding), even with a token. */
function assertKnownOrigin(env: Env, { host, headers: { origin } }: Message): void {
  if (!isOurs(env, `http://${host}`))
    throw new Fail("forbidden", { detail: "The host name does not belong to this service." });
  if (origin !== undefined && !isOurs(env, origin))
    throw new Fail("forbidden", { detail: "This origin may not call the tools." });
}

function isOurs(env: Env, address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { host, hostname } = new URL(address);
  const own = [env.BASE_URL, env.APP_URL].map((one) => new URL(one).host);
  return own.includes(host) || (!env.production && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname));
}

/**
 * The header fields that the library needs, without the token. It wants both of its types by name; a client that accepts all, or names none,
 * accepts both (RFC 9110, section 12.5.1).
 */
function forwardedHeaders({ accept, ...headers }: IncomingHttpHeaders): Headers {
  const known = Object.entries(headers).filter(([name]) => /^(content-type|last-event-id|mcp-.*)$/.test(name));
  const accepted = (accept || "*/*").replace("*/*", "application/json, text/event-stream");
  return new Headers([...known.map(([name, value]): [string, string] => [name, String(value)]), ["accept", accepted]]);
}

async function view(response: Response): Promise<View> {
  const headers = Object.fromEntries(
    [...response.headers].filter(([name]) => !/^(content-(type|length)|connection|keep-alive)$/.test(name)),
  );
  const type = response.headers.get("content-type") ?? "";
  return {
    type,
    status: response.status,
    body: await response.text(),
    headers: { ...headers, "Cache-Control": "no-store" },
  };
}

/** Tells a client where the metadata of this resource is (RFC 9728). */
function challenge({ env }: Runtime, parameters: Record<string, string>): Record<string, string> {
  const path = metadata.replace(":handle", encodeURIComponent(parameters.handle ?? ""));
  return { resource_metadata: `${env.BASE_URL}${path}`, scope: scopes.join(" ") };
}

/** Protected-resource metadata (RFC 9728), the same for every handle, known or not. */
async function describeResource({ env }: Runtime, input: { handle: string }): Promise<Record<string, unknown>> {
  const { AUTH_ISSUER, LOGIN_BUILTIN, BASE_URL } = env;
  // Clients take the first one. A signer is named only if it issues tokens for this service.
  const named = [LOGIN_BUILTIN ? BASE_URL : "", AUTH_ISSUER ?? ""].filter((server) => URL.canParse(server));
  const servers = named.length > 0 ? { authorization_servers: named } : {};
  return {
    resource: toolsResource(env, input.handle),
    resource_name: `Tools of ${input.handle}`,
    ...servers,
    scopes_supported: scopes,
    bearer_methods_supported: ["header"],
  };
}
