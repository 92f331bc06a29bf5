import { Client, type ClientOptions, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client";
// @ts-types="../node_modules/@modelcontextprotocol/sdk/dist/esm/client/streamableHttp.d.ts"
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import t, { type Test } from "tap";
import { Metrics } from "../api/metrics.ts";
import { rows } from "../api/rows.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { keys } from "../core/store/keys.ts";
import { openStage } from "../fixtures/scheduling/owner.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";

const endpoint = "/mcp/acme/mcp";
const all = ["agent.strategy.read", "agent.pages.read", "agent.knowledge.read", "agent.bookings.read"];
const modern: ClientOptions = { versionNegotiation: { mode: { pin: "2026-07-28" } } };

/** The calls that the tests need of a client of any release. */
interface AnyClient {
  listTools(): Promise<{ tools: { name: string; inputSchema: object; outputSchema?: object | undefined }[] }>;
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<{ [name: string]: unknown }>;
  close(): Promise<void>;
}

type Connect = (service: Service, token: string) => Promise<AnyClient>;

const info = { name: "test", version: "1" };
const headersOf = (token: string) => ({ requestInit: { headers: { Authorization: `Bearer ${token}` } } });

const current =
  (options: ClientOptions): Connect =>
  async ({ url }, token) => {
    const client = new Client(info, options);
    await client.connect(new StreamableHTTPClientTransport(new URL(url + endpoint), headersOf(token)));
    return client as unknown as AnyClient;
  };

const old: Connect = async ({ url }, token) => {
  const client = new OldClient(info);
  // The package's own types disagree about an optional property under exactOptionalPropertyTypes.
  await client.connect(
    new OldTransport(new URL(url + endpoint), headersOf(token)) as unknown as Parameters<OldClient["connect"]>[0],
  );
  return client as unknown as AnyClient;
};

const clients: Record<string, Connect> = {
  "the 2026-07-28 client": current(modern),
  "a client that negotiates": current({ versionNegotiation: { mode: "auto" } }),
  "the 2025 mode of the current client": current({}),
  "the client of version 1": old,
};

/** `acme` with a strategy document, a page and a booking. */
async function startWithKnowledge(t: Test): Promise<Service> {
  const { service, owner, event, book } = await openStage(t);
  await event({ slug: "intro", locations: [{ type: "phone", label: "Phone" }] });
  await book("intro", "2026-10-05T09:30:00Z", 30, { tracking: { source: "page" } }).expect(201);
  const document = {
    title: "Pricing page that worked",
    content: "A pricing page with three plans raised trials by a third.",
    containerTags: ["strategy", "worked_examples"],
  };
  await owner.post("/v2/handles/acme/knowledge/documents").send(document).expect(202);
  await owner
    .post("/v2/handles/acme/pages")
    .send({
      pageSlug: "pricing",
      title: "Pricing",
      content: "<main><p>Three plans.</p></main>",
      accessMode: "PAID",
      status: "PUBLISHED",
      price: { amountMinor: 900, currency: "eur" },
      assistant: { title: "Ask", suggestedQuestions: ["What does it cost?"] },
    })
    .expect(201);
  return service;
}

async function tokenFor(service: Service, scopes: string[], userId = "user_acme"): Promise<string> {
  const asked = (await service.as(userId)).post("/v2/account/tokens").send({ name: "Agent", scopes });
  return (await asked.expect(201)).body.token.secret;
}

/** A raw message, as a client of 2025 sends it. */
function send(service: Service, message: object, token?: string) {
  const asked = service.visitor
    .post(endpoint)
    .set("Accept", "application/json, text/event-stream")
    .set("Host", "service.test");
  return (token ? asked.set("Authorization", `Bearer ${token}`) : asked).send({ jsonrpc: "2.0", id: 1, ...message });
}

const call = (name: string, input: object = {}) => ({ method: "tools/call", params: { name, arguments: input } });
const initialize = {
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: info },
};

for (const [name, connect] of Object.entries(clients)) {
  t.test(`${name} lists and calls the tools with a token`, async (t) => {
    const service = await startWithKnowledge(t);
    const client = await connect(service, await tokenFor(service, all));
    const { tools } = await client.listTools();
    const names = tools.map((tool) => tool.name);
    for (const expected of ["strategy_query", "pages_list", "pages_read", "knowledge_query", "bookings_list"])
      t.ok(names.includes(expected), expected);
    const strategy = tools.find((tool) => tool.name === "strategy_query");
    t.match(strategy, {
      inputSchema: {
        type: "object",
        required: ["query"],
        properties: { query: { type: "string" }, limit: { type: "integer" } },
      },
      outputSchema: { type: "object", properties: { contextId: {}, worked_examples: { type: "object" } } },
    });
    t.notMatch(strategy?.inputSchema, { properties: { handle: {} } });
    const answer = await client.callTool({ name: "strategy_query", arguments: { query: "pricing page" } });
    t.match(answer.structuredContent, {
      status: "complete",
      worked_examples: { matchCount: 1, items: [{ title: "Pricing page that worked" }] },
    });
    t.match(await client.callTool({ name: "pages_list", arguments: {} }), {
      structuredContent: { pages: [{ pageSlug: "pricing" }] },
    });
    t.match(await client.callTool({ name: "pages_read", arguments: { pageSlug: "pricing" } }), {
      structuredContent: { page: { title: "Pricing" } },
    });
    t.match(await client.callTool({ name: "knowledge_query", arguments: { query: "plans", limit: 1 } }), {
      structuredContent: { results: [{ title: "Pricing page that worked" }] },
    });
    t.match(await client.callTool({ name: "bookings_list", arguments: { status: "ACCEPTED", limit: 5 } }), {
      structuredContent: { bookings: [{ eventSlug: "intro", attendee: { name: "Ada Lovelace" } }] },
    });
    const missing = await client.callTool({ name: "pages_read", arguments: { pageSlug: "nowhere" } });
    t.match(missing, { isError: true, content: [{ text: /page_not_found/ }] });
    t.match(await client.callTool({ name: "strategy_query", arguments: { query: "" } }), {
      isError: true,
      content: [{ text: /invalid_request/ }],
    });
    t.match(await client.callTool({ name: "strategy_query", arguments: { query: "x", handle: "other", more: 1 } }), {
      isError: true,
    });
    await t.rejects(client.callTool({ name: "no_such_tool", arguments: {} }));
    await client.close();
  });

  t.test(`${name} is refused with a wrong scope and with no good token`, async (t) => {
    const service = await startWithKnowledge(t);
    const client = await connect(service, await tokenFor(service, ["agent.pages.read"]));
    t.same(
      (await client.listTools()).tools.map((tool) => tool.name),
      ["pages_list", "pages_read"],
    );
    t.match(await client.callTool({ name: "pages_list", arguments: {} }), {
      structuredContent: { pages: [{ pageSlug: "pricing" }] },
    });
    await t.rejects(client.callTool({ name: "strategy_query", arguments: { query: "x" } }), /insufficient.scope|403/i);
    await client.close();
    await t.rejects(connect(service, "garbage"), /invalid_token|401|Unauthorized/);
    await t.rejects(connect(service, await service.token("user_stranger")), /forbidden|403/);
  });
}

t.test("a session may use every tool, and tools find only data of their own handle", async (t) => {
  const service = await startWithKnowledge(t);
  await service.handle("other");
  const answer = await send(service, call("pages_list"), await service.token("user_acme")).expect(200);
  t.match(answer.text, /"pageSlug":"pricing"/);
  t.match((await send(service, call("pages_list"), await service.token("user_other")).expect(403)).body, {
    code: "forbidden",
  });
  t.match((await send(service, call("pages_list"), await tokenFor(service, all, "user_other")).expect(403)).body, {
    code: "forbidden",
  });
});

t.test("tools only read, so calls are not in the audit stream", async (t) => {
  const tools = rows(new Metrics({} as Runtime)).filter(({ tool }) => tool !== undefined);
  for (const { method, path, isReadOnly: reads } of tools) t.ok(method === "GET" || reads, `${method} ${path}`);
  const service = await startService(t);
  const owner = await service.handle("acme");
  const token = await tokenFor(service, ["agent.knowledge.read"]);
  await send(service, initialize, token).expect(200);
  await send(service, call("knowledge_query", { query: "plans" }), token).expect(200);
  await send(service, call("strategy_query", { query: "plans" }), token).expect(403);
  await owner.post("/v2/handles/acme/knowledge/query").send({ query: "plans" }).expect(200);
  await owner.post("/v2/handles/acme/pages").send({ pageSlug: "a", title: "A" }).expect(201);
  const entries = await eventually(async () => {
    const found = await service.runtime.redis.xrange(keys.audit("acme"), "-", "+");
    return found.length > 0 && found;
  });
  t.match(entries, [[String, ["who", "user_acme", "route", "POST /v2/handles/:handle/pages"]]]);
  t.equal(entries.length, 1);
});

t.test("each tool and each of its arguments has a description, and lists contain no content", async (t) => {
  const service = await startWithKnowledge(t);
  const client = await current(modern)(service, await tokenFor(service, all));
  type Described = { description?: string; inputSchema: { properties?: Record<string, { description?: string }> } };
  for (const { name, description, inputSchema } of (await client.listTools()).tools as (Described & {
    name: string;
  })[]) {
    t.match(description, /^[A-Z].{30,}\.$/s, name);
    for (const [argument, { description }] of Object.entries(inputSchema.properties ?? {}))
      t.match(description, /^[A-Z].{10,}\.$/s, `${name} ${argument}`);
  }
  const { structuredContent, content } = await client.callTool({ name: "pages_list", arguments: {} });
  t.match(structuredContent, { pages: [{ pageSlug: "pricing", title: "Pricing" }] });
  t.notMatch(JSON.stringify([structuredContent, content]), /Three plans/);
  await client.close();
});

t.test("a tool says of its answer what the OpenAPI document says of the same shape", async (t) => {
  const service = await startWithKnowledge(t);
  const client = await current(modern)(service, await tokenFor(service, all));
  const { tools } = await client.listTools();
  const { schemas } = (await service.visitor.get("/openapi.json").expect(200)).body.components;
  type Answering = { outputSchema: { properties: Record<string, unknown> } };
  const answers = { pages_read: ["page", "Page"], strategy_query: ["worked_examples", "StrategyGroup"] } as const;
  for (const [tool, [property, shape]] of Object.entries(answers)) {
    const { outputSchema } = tools.find(({ name }) => name === tool) as unknown as Answering;
    t.match(notesOf(outputSchema.properties[property]), notesOf(schemas[shape]), tool);
  }
  await client.close();
});

function notesOf(shape: unknown): Record<string, string | undefined> {
  const { properties } = shape as { properties: Record<string, { description?: string }> };
  return Object.fromEntries(Object.entries(properties).map(([name, { description }]) => [name, description]));
}

t.test("401 and 403 name the metadata and the missing scope", async (t) => {
  const service = await startWithKnowledge(t);
  const metadata = "http://service.test/.well-known/oauth-protected-resource/mcp/acme/mcp";
  const none = await send(service, initialize).expect(401);
  t.match(none.body, { code: "missing_bearer_token" });
  t.equal(none.headers["www-authenticate"], `Bearer resource_metadata="${metadata}", scope="${all.join(" ")}"`);
  const bad = await send(service, initialize, "pat_nonsense").expect(401);
  t.equal(
    bad.headers["www-authenticate"],
    `Bearer error="invalid_token", resource_metadata="${metadata}", scope="${all.join(" ")}"`,
  );
  const pages = await tokenFor(service, ["agent.pages.read"]);
  const refused = await send(service, call("strategy_query", { query: "x" }), pages).expect(403);
  t.match(refused.body, { code: "insufficient_scope" });
  t.equal(
    refused.headers["www-authenticate"],
    `Bearer error="insufficient_scope", resource_metadata="${metadata}", scope="agent.strategy.read"`,
  );
  const { body } = await service.visitor
    .get("/.well-known/oauth-protected-resource/mcp/acme/mcp")
    .expect(200)
    .expect("cache-control", "public, max-age=3600");
  t.same(body, {
    resource: "http://service.test/mcp/acme/mcp",
    resource_name: "Tools of acme",
    scopes_supported: all,
    bearer_methods_supported: ["header"],
  });
  await service.visitor.get("/.well-known/oauth-protected-resource/mcp/NOT%0d%0aA%22HANDLE/mcp").expect(400);
  const odd = await service.visitor.post("/mcp/a%22b%0d%0ac/mcp").send({}).expect(401);
  t.match(odd.headers["www-authenticate"], '/mcp/-/mcp"', "a malformed handle appears in no header");
});

t.test("an answer as an event stream is never compressed", async (t) => {
  const service = await startWithKnowledge(t);
  const token = await tokenFor(service, all);
  const list = send(service, { method: "tools/list" }, token).set("Accept-Encoding", "br, gzip");
  const { headers, text } = await list.expect(200);
  t.match(headers["content-type"], /^text\/event-stream/);
  t.equal(headers["content-encoding"], undefined);
  t.ok(text.length > 1024, "although it is long");
});

t.test("a batch can't smuggle a call past the scope", async (t) => {
  const service = await startWithKnowledge(t);
  const pages = await tokenFor(service, ["agent.pages.read"]);
  const batch = [call("pages_list"), call("strategy_query", { query: "x" })].map((one, at) => ({
    jsonrpc: "2.0",
    id: at,
    ...one,
  }));
  const asked = service.visitor
    .post(endpoint)
    .set("Accept", "application/json, text/event-stream")
    .set("Authorization", `Bearer ${pages}`);
  t.match((await asked.send(batch)).body, { status: 403, code: "insufficient_scope" });
});

t.test("browsers of other sites and rebound names are refused, even with a good token", async (t) => {
  const service = await startService(t, { env: { APP_URL: "https://app.test" } });
  await service.handle("acme");
  const token = await service.token("user_acme");
  const from = (field: string, value: string) => send(service, initialize, token).set(field, value);
  for (const origin of ["https://evil.test", "null", "http://service.test.evil.test", "https://localhost.evil.test"]) {
    t.match((await from("Origin", origin).expect(403)).body, { code: "forbidden" }, origin);
  }
  for (const origin of ["https://app.test", "http://service.test", "http://localhost:6274"])
    await from("Origin", origin).expect(200);
  t.match((await from("Host", "evil.test").expect(403)).body, { code: "forbidden" });
  t.match((await from("X-Forwarded-Host", "evil.test").expect(200)).text, /serverInfo/);
});

t.test("in production the loopback address is no friend", async (t) => {
  const env = {
    NODE_ENV: "production",
    SECRET_KEY: Buffer.alloc(32, "k").toString("base64"),
    BASE_URL: "https://service.test",
  };
  const service = await startService(t, { env });
  await service.handle("acme");
  const token = await service.token("user_acme");
  await send(service, initialize, token).expect(200);
  await send(service, initialize, token).set("Host", "localhost").expect(403);
  await send(service, initialize, token).set("Origin", "http://localhost:6274").expect(403);
});

t.test("the endpoint accepts messages only, and anything else gets the protocol's error", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  t.match((await owner.get(endpoint).expect(405)).headers.allow, /POST/);
  await owner.delete(endpoint).expect(405);
  const post = (body: string, type = "application/json") =>
    owner.post(endpoint).set("Accept", "application/json, text/event-stream").set("Content-Type", type).send(body);
  t.match((await post("{ no json")).body, { error: { code: -32700 } });
  t.match((await post("{}")).status, 400);
  t.match((await post("<a/>", "application/xml")).status, 415);
  const further = { jsonrpc: "2.0", id: 1, method: "tools/list", params: { cursor: "none" } };
  t.match((await post(JSON.stringify(further))).text, /-32602/, "a cursor that no list gave");
  await post(JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })).expect(202);
  // `*/*` accepts every type, and so does a client that names none (RFC 9110, section 12.5.1).
  for (const [accepted, status] of [
    ["*/*", 200],
    ["", 200],
    ["application/json;q=0.9, */*;q=0.1", 200],
    ["application/json", 406],
    ["text/html", 406],
  ] as const) {
    const asked = owner.post(endpoint).set("Accept", accepted).send({ jsonrpc: "2.0", id: 1, method: "ping" });
    t.equal((await asked).status, status, accepted);
  }
  await owner.post(endpoint).set("Content-Type", "application/json").send("x".repeat(1_100_000)).expect(413);
});

t.test("there is nothing to subscribe to, and asking for it ends at once", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  const envelope = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": info,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const listen = {
    method: "subscriptions/listen",
    params: { _meta: envelope, notifications: { toolsListChanged: true } },
  };
  const asked = send(service, listen, await service.token("user_acme")).set("MCP-Protocol-Version", "2026-07-28");
  t.match((await asked.set("Mcp-Method", "subscriptions/listen")).body, { error: { code: -32603 } });
});

t.test("while Redis is away a call is 503", async (t) => {
  const service = await startService(t, { endsRedis: true });
  await service.handle("acme");
  const token = await service.token("user_acme");
  await service.redis.kill();
  t.match((await send(service, call("pages_list"), token).expect(503)).body, { code: "service_unavailable" });
});
