import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client";
// @ts-types="../node_modules/@modelcontextprotocol/sdk/dist/esm/client/streamableHttp.d.ts"
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import t, { type Test } from "tap";
import { keys } from "../core/store/keys.ts";
import { freePort } from "../fixtures/ports.ts";
import { keyNames } from "../fixtures/redis.ts";
import { type Service, startService } from "../fixtures/service.ts";

const endpoint = "/mcp/acme/mcp";
const callback = "http://127.0.0.1:33418/callback";
const info = { name: "test", version: "1" };

/** A service whose own sign-in is the authorization server, with the handle `acme`. */
async function open(t: Test, env: Record<string, string> = {}): Promise<Service> {
  const port = await freePort();
  const own = { BASE_URL: `http://127.0.0.1:${port}`, LOGIN_BUILTIN: "1" };
  const service = await startService(t, { port, env: { ...own, ...env } });
  await service.handle("acme");
  return service;
}

/** A browser that is signed in as a user, or isn't. */
class Browser {
  readonly #headers: Record<string, string>;
  /** The text of the last page. */
  text = "";

  constructor(token?: string) {
    this.#headers = token ? { cookie: `session=${token}` } : {};
  }

  /** Opens a page of consent; where it leads if it leads on. */
  async open(address: string | URL): Promise<Response> {
    const page = await fetch(address, { headers: this.#headers, redirect: "manual" });
    this.text = await page.text();
    return page;
  }

  /** Sends the form of the page that is open; `changed` are fields that another hand has written. */
  async decide(service: Service, decision: "allow" | "deny", changed: Record<string, string> = {}): Promise<Response> {
    const fields = [...this.text.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)];
    const form = Object.fromEntries(fields.map(([, name = "", value = ""]) => [name, unescaped(value)]));
    const body = new URLSearchParams({ ...form, decision, ...changed });
    return fetch(`${service.url}/oauth/authorize`, {
      method: "POST",
      headers: this.#headers,
      body,
      redirect: "manual",
    });
  }
}

function unescaped(html: string): string {
  const signs: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };
  return html.replace(/&([#\w]+);/g, (_, name: string) => signs[name] as string);
}

interface Tokens {
  access_token: string;
  token_type: string;
  refresh_token?: string;
}

/** An application's state while its user signs in. */
class Provider {
  readonly redirectUrl = callback;
  readonly clientMetadata = { client_name: "Agent <b>One</b>", redirect_uris: [callback] };
  asked: URL | undefined;
  /** Where the document of the application stands, where it has one. */
  clientMetadataUrl?: string;
  #client: { client_id: string } | undefined;
  #tokens: Tokens | undefined;
  #verifier = "";

  clientInformation() {
    return this.#client;
  }
  saveClientInformation(client: { client_id: string }) {
    this.#client = client;
  }
  tokens() {
    return this.#tokens;
  }
  saveTokens(tokens: Tokens) {
    this.#tokens = tokens;
  }
  redirectToAuthorization(url: URL) {
    this.asked = url;
  }
  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier;
  }
  codeVerifier() {
    return this.#verifier;
  }
  state() {
    return "a state of the client";
  }
}

interface Transport {
  finishAuth(parameters: URLSearchParams): Promise<void>;
}
interface AnyClient {
  connect(transport: unknown): Promise<void>;
  callTool(call: { name: string; arguments: object }): Promise<{ [name: string]: unknown }>;
  listTools(): Promise<{ tools: { name: string }[] }>;
  close(): Promise<void>;
}
type Make = (url: URL, authProvider: Provider) => { client: AnyClient; transport: Transport };

const clients: Record<string, Make> = {
  "the current client": (url, authProvider) => ({
    client: new Client(info) as unknown as AnyClient,
    transport: new StreamableHTTPClientTransport(url, { authProvider }),
  }),
  "the client of version 1": (url, authProvider) => {
    const transport = new OldTransport(url, { authProvider } as ConstructorParameters<typeof OldTransport>[1]);
    return {
      client: new OldClient(info) as unknown as AnyClient,
      transport: Object.assign(transport, {
        finishAuth: (back: URLSearchParams) =>
          OldTransport.prototype.finishAuth.call(transport, back.get("code") ?? ""),
      }) as unknown as Transport,
    };
  },
};

for (const [name, make] of Object.entries(clients)) {
  t.test(`${name} signs in with the address of the tools alone`, async (t) => {
    const service = await open(t);
    const [url, provider] = [new URL(service.url + endpoint), new Provider()];
    const first = make(url, provider);
    await t.rejects(first.client.connect(first.transport), { name: /Unauthorized|Error/ });
    const browser = new Browser(await service.token("user_acme", { email: "ada@example.com" }));
    const settings = { displayName: "Räder & Rost" };
    await (await service.handle("acme")).put("/v2/handles/acme/settings").send(settings).expect(200);
    t.equal((await browser.open(provider.asked as URL)).status, 200);
    const said = unescaped(browser.text.replace(/<[^>]+>/g, "\n")).split("\n");
    const named = ["Agent <b>One</b>", " (name given by the app)", settings.displayName, "acme"];
    for (const fact of [...named, "127.0.0.1:33418", "ada@example.com"]) t.ok(said.includes(fact), fact);
    const back = new URL((await browser.decide(service, "allow")).headers.get("location") ?? "");
    t.equal(back.origin + back.pathname, callback);
    t.match(Object.fromEntries(back.searchParams), { state: "a state of the client", iss: service.url });
    await first.transport.finishAuth(back.searchParams);

    const { client, transport } = make(url, provider);
    await client.connect(transport);
    t.equal((await client.listTools()).tools.length, 5);
    t.notOk((await client.callTool({ name: "pages_list", arguments: {} })).isError);
    await client.close();

    const issued = provider.tokens() as Tokens;
    provider.saveTokens({ ...issued, access_token: "over" });
    const later = make(url, provider);
    await later.client.connect(later.transport);
    await later.client.close();
    const { access_token: token, refresh_token } = provider.tokens() as Tokens;
    t.not(refresh_token, issued.refresh_token, "a refresh token is replaced when it is used");
    const sent = (path: string) => service.visitor.get(path).set("Authorization", `Bearer ${token}`);
    t.match((await sent("/v2/account/sessions").expect(401)).body, { detail: /another resource/ });
    t.match((await sent("/v2/handles/acme/pages").expect(401)).body, { code: "invalid_token" });
    await service.grant("acme", "user_acme", "OWNER");
    const owner = await service.as("user_acme");
    const { sessions } = (await owner.get("/v2/account/sessions").expect(200)).body;
    const session = sessions.find(({ kind }: { kind: string }) => kind === "mcp");
    t.match(session, { device: "Agent <b>One</b>", current: false });
    await owner.delete(`/v2/account/sessions/${session.sessionId}`).expect(204);
    const again = make(url, provider);
    await t.rejects(again.client.connect(again.transport), "a revoked session is over at once");
  });

  t.test(`${name} is known by the document at its address`, async (t) => {
    const documents = await serveDocuments(t);
    const service = await open(t, { OUTBOUND_ALLOW_HOSTS: documents.host });
    const clientId = "https://agent.example/oauth/client.json";
    documents.serve({ client_id: clientId, client_name: "Agent One", redirect_uris: [callback] });
    const { outbound } = service.runtime;
    const request = outbound.request.bind(outbound);
    outbound.request = (url, call) => request(url.replace("https://agent.example", documents.url), call);
    const [url, provider] = [new URL(service.url + endpoint), new Provider()];
    provider.clientMetadataUrl = clientId;
    const first = make(url, provider);
    await t.rejects(first.client.connect(first.transport), { name: /Unauthorized|Error/ });
    t.match(provider.clientInformation(), { client_id: clientId });
    t.equal((await new Browser().open(provider.asked as URL)).status, 303);
    t.equal(documents.asked, 0, "nobody has documents fetched without signing in");
    const browser = new Browser(await service.token("user_acme"));
    t.equal((await browser.open(provider.asked as URL)).status, 200);
    t.match(browser.text, "agent.example");
    const back = new URL((await browser.decide(service, "allow")).headers.get("location") ?? "");
    await first.transport.finishAuth(back.searchParams);
    const { client, transport } = make(url, provider);
    await client.connect(transport);
    t.equal((await client.listTools()).tools.length, 5);
    await client.close();
    t.equal(documents.asked, 1, "a document is believed for a while");
  });
}

/** A server of one client document, or of whatever a test has it answer. */
async function serveDocuments(t: Test) {
  let [asked, answer] = [0, (response: ServerResponse): unknown => response.writeHead(404).end()];
  const server = createServer((_request, response) => {
    asked++;
    answer(response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ host, url: `http://${host}` },
    get asked() {
      return asked;
    },
    answer(how: typeof answer) {
      answer = how;
    },
    serve(document: unknown) {
      answer = (response) => response.end(JSON.stringify(document));
    },
  };
}

t.test("a client with a document can't hide its host behind a long name", async (t) => {
  const documents = await serveDocuments(t);
  const service = await open(t, { OUTBOUND_ALLOW_HOSTS: documents.host });
  const browser = new Browser(await service.token("user_acme"));
  const client_id = `${documents.url}/client.json`;
  documents.serve({
    client_id,
    client_name: `Agent (agent.example) ${"of yours ".repeat(20)}`,
    redirect_uris: [callback],
  });
  await browser.open(address(service, { client_id }));
  t.match(browser.text, ` – ${documents.host}</strong> (name given by the app)`);
});

t.test("a client document that lies, hides, or never ends is refused", async (t) => {
  const documents = await serveDocuments(t);
  const service = await open(t, { OUTBOUND_ALLOW_HOSTS: documents.host });
  const browser = new Browser(await service.token("user_acme"));
  const status = async (client_id: string) => (await browser.open(address(service, { client_id }))).status;
  const good = (client_id: string) => ({ client_id, client_name: "Agent", redirect_uris: [callback] });
  let count = 0;
  const served = async (document: (client_id: string) => unknown) => {
    const client_id = `${documents.url}/${count++}.json`;
    documents.serve(document(client_id));
    return status(client_id);
  };
  t.equal(await served(good), 200);
  for (const wrong of [
    (id: string) => ({ ...good(id), client_id: `${id}x` }),
    (id: string) => ({ ...good(id), redirect_uris: ["https://other.example/cb"] }),
    (id: string) => ({ ...good(id), redirect_uris: [callback, "javascript:alert(1)"] }),
    (id: string) => ({ ...good(id), redirect_uris: callback }),
    (id: string) => ({ ...good(id), token_endpoint_auth_method: "client_secret_basic" }),
    (id: string) => ({ ...good(id), client_secret: "x" }),
    (id: string) => ({ ...good(id), more: "x".repeat(6000) }),
    () => null,
    () => [],
    () => "text",
  ])
    t.equal(await served(wrong), 400, String(wrong));
  const answers: ((response: ServerResponse) => unknown)[] = [
    (response) => response.end("{"),
    (response) => response.writeHead(302, { location: `${documents.url}/0.json` }).end(),
    (response) => response.writeHead(404).end(JSON.stringify(good(`${documents.url}/404.json`))),
    (response) => response.writeHead(200).write("{"),
  ];
  for (const [at, answer] of answers.entries()) {
    documents.answer(answer);
    const before = Date.now();
    t.equal(await status(`${documents.url}/answer${at}.json`), 400);
    t.ok(Date.now() - before < 10_000);
  }
  const before = documents.asked;
  for (const id of [
    `${documents.url}/`,
    `${documents.url}/a/../b.json`,
    `${documents.url}/a.json#b`,
    `http://u:p@${documents.host}/a.json`,
    `${documents.url}/${"x".repeat(600)}`,
    "http://agent.example/client.json",
    "https://",
  ])
    t.equal(await status(id), 400, id.slice(0, 60));
  t.equal(documents.asked, before, "an address that can't be one is not fetched");
  t.equal(await status("https://10.0.0.1/client.json"), 400, "nor is one that isn't public");
});

t.test("a refresh token works for its client, once; one that was replaced ends the session", async (t) => {
  const service = await open(t);
  const { client_id = "" } = await register(service, [callback]);
  const browser = new Browser(await service.token("user_acme"));
  const post = async (form: Record<string, string>) => {
    const body = new URLSearchParams({ client_id, ...form });
    const answer = await fetch(`${service.url}/oauth/token`, { method: "POST", body });
    return { status: answer.status, body: (await answer.json()) as Record<string, string> };
  };
  const signIn = async (more: Record<string, string> = {}) => {
    await browser.open(address(service, { client_id, ...more }));
    const back = new URL((await browser.decide(service, "allow")).headers.get("location") ?? "");
    const code = back.searchParams.get("code") ?? "";
    const form = { grant_type: "authorization_code", code, redirect_uri: callback, code_verifier: verifier };
    return (await post(form)).body;
  };
  const refresh = (refresh_token = "", more: Record<string, string> = {}) =>
    post({ grant_type: "refresh_token", refresh_token, ...more });
  const works = async (token = "") => {
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    const asked = service.visitor.post(endpoint).set("Accept", "application/json, text/event-stream");
    return (await asked.set("Authorization", `Bearer ${token}`).send(list)).status;
  };
  const refused = { status: 400, body: { error: "invalid_grant" } };

  const first = await signIn();
  t.match(first, { expires_in: 3600, scope: "agent.pages.read" });
  const { client_id: another = "" } = await register(service, ["https://app.example/cb"]);
  t.match(await refresh(first.refresh_token, { client_id: another }), refused);
  t.match(await refresh(first.refresh_token, { resource: `${service.url}/mcp/other/mcp` }), refused);
  t.match(await refresh(""), { status: 400, body: { error: "invalid_request" } });
  for (const forged of ["x", `${first.refresh_token}x`, `${first.refresh_token}.x`, "W10.x"])
    t.match(await refresh(forged), refused, forged);
  const answers = await Promise.all([refresh(first.refresh_token), refresh(first.refresh_token)]);
  t.same(
    answers.map(({ status }) => status),
    [200, 200],
    "an answer may be lost",
  );
  const [second, same] = answers.map(({ body }) => body);
  t.equal(second?.refresh_token, same?.refresh_token, "and there is one next token");
  t.match(second, { token_type: "Bearer", scope: "agent.pages.read" });
  t.equal(await works(second?.access_token), 200);
  const third = (await refresh(second?.refresh_token)).body;
  t.equal(await works(third.access_token), 200);
  t.match(await refresh(first.refresh_token), refused, "a thief has the first");
  t.same(await Promise.all([works(third.access_token), works(first.access_token)]), [401, 401]);
  t.match(await refresh(third.refresh_token), refused);

  const two = await signIn({ scope: "agent.pages.read agent.bookings.read" });
  const fewer = (await refresh(two.refresh_token, { scope: "agent.pages.read offline_access" })).body;
  t.match(fewer, { scope: "agent.pages.read" }, "it may ask for less");
  t.equal(claimsOf(fewer).scope, "agent.pages.read", "and the token has less");
  const none = { scope: "agent.knowledge.read" };
  t.match(await refresh(fewer.refresh_token, none), { status: 400, body: { error: "invalid_scope" } });
  const whole = (await refresh(fewer.refresh_token)).body;
  t.match(whole, { scope: "agent.pages.read agent.bookings.read" }, "the refresh token keeps all");
  await (await service.as("user_acme")).delete(`/v2/account/sessions/${claimsOf(whole).sid}`).expect(204);
  t.match(await refresh(whole.refresh_token), refused);

  const late = await signIn();
  const { redis } = service.runtime;
  const { sid } = claimsOf(late);
  const daysLeft = async () => {
    const { expiresAt } = JSON.parse((await redis.hget(keys.sessions("user_acme"), sid)) ?? "");
    const ends = [expiresAt, await redis.pexpiretime(keys.oauthRefresh("user_acme", sid))];
    return ends.map((end) => Math.round((end - Date.now()) / 86_400_000));
  };
  t.same(await daysLeft(), [30, 30]);
  const soon = Date.now() + 3_600_000;
  await redis.hset(
    keys.sessions("user_acme"),
    sid,
    JSON.stringify({ kind: "mcp", device: "", createdAt: Date.now(), expiresAt: soon }),
  );
  await redis.pexpireat(keys.oauthRefresh("user_acme", sid), soon);
  const used = (await refresh(late.refresh_token)).body;
  t.same(await daysLeft(), [30, 30], "a refresh lets the session last 30 days from then");
  const moveBack = (ms: number) => redis.hincrby(keys.oauthRefresh("user_acme", sid), "at", -ms);
  await moveBack(5000);
  t.match(await refresh(late.refresh_token), { status: 200 }, "five seconds after its use");
  await moveBack(5001);
  t.match(await refresh(late.refresh_token), refused, "more than ten seconds after its use");
  t.equal(await works(used.access_token), 401, "the session has ended");

  const { refresh_token } = await signIn();
  const owner = await service.as("user_acme");
  const { sessions } = (await owner.get("/v2/account/sessions").expect(200)).body;
  const { sessionId } = sessions.find(({ kind }: { kind: string }) => kind === "mcp");
  await owner.delete(`/v2/account/sessions/${sessionId}`).expect(204);
  t.match(await refresh(refresh_token), refused, "a revoked session is not refreshed");
  t.same(await keyNames(service.runtime.redis, "oauth-refresh:*"), []);
});

t.test("a session that is refreshed all the time ends a year after its start", async (t) => {
  const service = await open(t);
  const { client_id = "" } = await register(service, [callback]);
  const browser = new Browser(await service.token("user_acme"));
  await browser.open(address(service, { client_id }));
  const back = new URL((await browser.decide(service, "allow")).headers.get("location") ?? "");
  const post = async (form: Record<string, string>) => {
    const body = new URLSearchParams({ client_id, ...form });
    return (await fetch(`${service.url}/oauth/token`, { method: "POST", body })).json() as Promise<
      Record<string, string>
    >;
  };
  const code = back.searchParams.get("code") ?? "";
  const first = await post({ grant_type: "authorization_code", code, redirect_uri: callback, code_verifier: verifier });
  const refresh = ({ refresh_token = "" }) => post({ grant_type: "refresh_token", refresh_token });
  const startedAgo = async (ms: number) => {
    const session = { kind: "mcp", device: "", createdAt: Date.now() - ms, expiresAt: Date.now() + 86_400_000 };
    await service.runtime.redis.hset(keys.sessions("user_acme"), claimsOf(first).sid, JSON.stringify(session));
  };
  const year = 365 * 86_400_000;
  await startedAgo(year - 3_000_000);
  const last = await refresh(first);
  t.ok(Math.abs(Number(last.expires_in) - 3000) < 60, "the last token ends with it");
  await startedAgo(year + 1);
  t.match(await refresh(last), { error: "invalid_grant" });
});

function claimsOf({ access_token = "" }: Record<string, string>): { scope: string; sid: string } {
  return JSON.parse(Buffer.from(access_token.split(".")[1] ?? "", "base64url").toString());
}

const verifier = randomBytes(32).toString("base64url");
const challenge = createHash("sha256").update(verifier).digest("base64url");

async function register({ visitor }: Service, redirects: unknown[], status = 201): Promise<Record<string, string>> {
  const body = { client_name: "Agent", redirect_uris: redirects, token_endpoint_auth_method: "none", more: 1 };
  return (await visitor.post("/oauth/register").send(body).expect(status)).body;
}

function address(service: Service, changed: Record<string, string>): URL {
  const request = {
    ...{ response_type: "code", redirect_uri: callback, code_challenge: challenge, code_challenge_method: "S256" },
    ...{ resource: `${service.url}${endpoint}`, state: "s", scope: "agent.pages.read" },
    ...changed,
  };
  return new URL(`${service.url}/oauth/authorize?${new URLSearchParams(request)}`);
}

t.test("redirect addresses are https, loopback or an app's own, and matched letter by letter", async (t) => {
  const service = await open(t);
  for (const good of [
    "https://app.example/cb?x=1",
    "http://localhost:1/cb",
    "http://[::1]/cb",
    "cursor://x/cb",
    "com.example:/cb",
  ])
    t.match(await register(service, [good]), { client_id: String, redirect_uris: [good] }, good);
  for (const bad of [
    "http://app.example/cb",
    "javascript:alert(1)",
    "data:text/html,x",
    "https://app.example/#x",
    "x",
    "https://u:p@app.example/",
  ])
    t.match(await register(service, [bad], 400), { error: "invalid_redirect_uri" }, bad);
  const long = Array.from({ length: 10 }, (_, at) => `https://app.example/${at}${"x".repeat(400)}`);
  t.match(await register(service, long, 400), { error: "invalid_client_metadata" });
  t.match(await register(service, [], 400), {
    error: "invalid_client_metadata",
    error_description: /^redirect_uris /,
  });
  const list = (await service.visitor.post("/oauth/register").send([]).expect(400)).body;
  t.equal(list.error_description, "must be an object");
  t.same(await keyNames(service.runtime.redis, "*oauth*"), [], "registrations are kept by nobody but their client");
  const { client_id = "" } = await register(service, [callback]);
  const browser = new Browser(await service.token("user_acme"));
  for (const redirect_uri of [`${callback}/`, "http://localhost:33418/callback", "https://evil.example/"]) {
    const page = await browser.open(address(service, { client_id, redirect_uri }));
    t.same([page.status, page.headers.get("location")], [400, null], redirect_uri);
  }
  const registered = [callback, "http://localhost/callback?x=1", "http://[::1]:1", "https://app.example/cb"];
  const { client_id: anyPort = "" } = await register(service, registered);
  for (const [redirect_uri, status] of [
    [callback, 200],
    ["http://127.0.0.1:33419/callback", 200],
    ["http://127.0.0.1/callback", 200],
    ["http://localhost:33418/callback?x=1", 200],
    ["http://[::1]:33418", 200],
    ["http://[::1]?x=1", 400],
    ["http://127.0.0.1:99999/callback", 400],
    ["http://localhost:33418/callback", 400],
    ["http://127.0.0.1:33418/other", 400],
    ["http://127.0.0.1:1@evil.example/callback", 400],
    ["https://app.example:444/cb", 400],
  ] as const)
    t.equal((await browser.open(address(service, { client_id: anyPort, redirect_uri }))).status, status, redirect_uri);
  const { client_id: native = "" } = await register(service, ["httpagent://app.example/cb"]);
  await browser.open(address(service, { client_id: native, redirect_uri: "httpagent://app.example/cb" }));
  t.match(browser.text, "httpagent: on this device");
  t.notMatch(browser.text.replace(/<[^>]+>/g, ""), "app.example", "an app's address names no host");
  const forged = `${Buffer.from(JSON.stringify({ name: "x", redirectUris: [callback] })).toString("base64url")}.${"A".repeat(43)}`;
  t.equal((await browser.open(address(service, { client_id: forged }))).status, 400);
});

t.test("a browser that isn't signed in signs in first, and strangers get no access", async (t) => {
  const service = await open(t);
  const { client_id = "" } = await register(service, [callback]);
  const asked = address(service, { client_id });
  const away = await new Browser().open(asked);
  t.equal(away.status, 303);
  const login = new URL(away.headers.get("location") ?? "");
  t.equal(login.origin + login.pathname, `${service.url}/login`);
  t.equal(new URL(login.searchParams.get("returnTo") ?? "").search, asked.search.replaceAll("%20", "+"));
  t.equal((await new Browser().open(login)).status, 200);
  const stranger = new Browser(await service.token("user_stranger"));
  t.equal((await stranger.open(asked)).status, 403);
  t.match(unescaped(stranger.text), /Signed in as .*user_stranger.*href="([^"]+)">Use another account/s);
  const [, other = ""] = /href="([^"]+)">Use another account/.exec(unescaped(stranger.text)) ?? [];
  t.equal(other, login.href);
  const owner = new Browser(await service.token("user_acme"));
  await owner.open(asked);
  t.ok(unescaped(owner.text).includes(`href="${other}">Use another account`), "the account can be changed before, too");
  t.match(owner.text, /unused for 30 days/);
});

t.test("the consent is that of one browser for one request, and its code works once", async (t) => {
  const service = await open(t);
  const { client_id = "" } = await register(service, [callback]);
  const browser = new Browser(await service.token("user_acme"));
  await browser.open(address(service, { client_id }));
  t.match(browser.text, /Read pages/);
  t.notMatch(browser.text, /Read bookings/);
  const other = new Browser(await service.token("user_acme"));
  other.text = browser.text;
  t.equal((await other.decide(service, "allow")).status, 403, "the form of another session");
  t.equal((await browser.decide(service, "allow", { scope: "" })).status, 403, "another request");
  const refused = await browser.decide(service, "deny");
  t.match(refused.headers.get("location"), `${callback}?error=access_denied&state=s`);

  const allowed = async () =>
    new URL((await browser.decide(service, "allow")).headers.get("location") ?? "").searchParams.get("code") ?? "";
  const redeem = async (changed: Record<string, string>) => {
    const form = { grant_type: "authorization_code", client_id, redirect_uri: callback, code_verifier: verifier };
    const body = new URLSearchParams({ ...form, ...changed });
    const answer = await fetch(`${service.url}/oauth/token`, { method: "POST", body });
    const [cache, pragma] = ["cache-control", "pragma"].map((name) => answer.headers.get(name));
    return { status: answer.status, body: await answer.json(), cache, pragma };
  };
  const { client_id: another = "" } = await register(service, ["https://app.example/cb"]);
  for (const changed of [
    { code_verifier: randomBytes(32).toString("base64url") },
    { client_id: another },
    { redirect_uri: "https://app.example/cb" },
    { resource: `${service.url}/mcp/other/mcp` },
  ] as Record<string, string>[])
    t.match(await redeem({ code: await allowed(), ...changed }), { status: 400, body: { error: "invalid_grant" } });
  t.match(await redeem({ code: "oac_none" }), { status: 400, body: { error: "invalid_grant" } });
  t.match(await redeem({ grant_type: "password" }), { status: 400, body: { error: "unsupported_grant_type" } });
  for (const parameter of ["grant_type", "code", "code_verifier"])
    t.match(await redeem({ code: "oac_none", [parameter]: "" }), {
      status: 400,
      body: { error: "invalid_request", error_description: `${parameter} is required` },
    });
  for (const unknown of ["", "nobody", `${client_id}x`])
    t.match(
      await redeem({ client_id: unknown }),
      { status: 400, body: { error: "invalid_client" } },
      "registers again",
    );
  const basic = service.visitor.post("/oauth/token").auth("nobody", "secret").type("form");
  const denied = await basic.send({ grant_type: "authorization_code", code: "oac_none" }).expect(401);
  t.match(denied, { headers: { "www-authenticate": /^Basic / }, body: { error: "invalid_client" } }, "RFC 6749, 5.2");
  const code = await allowed();
  const answers = await Promise.all([redeem({ code }), redeem({ code })]);
  t.same(answers.map(({ status }) => status).sort(), [200, 400]);
  const issued = await redeem({ code: await allowed() });
  t.match(issued, { cache: "no-store", pragma: "no-cache", body: { token_type: "Bearer", scope: "agent.pages.read" } });
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  const tools = await service.visitor
    .post(endpoint)
    .set({ Accept: "application/json, text/event-stream", Authorization: `Bearer ${issued?.body.access_token}` })
    .send(list);
  t.match(tools.text, /pages_list/);
  t.notMatch(tools.text, /bookings_list/, "it may do what was allowed");
  await service.handle("other", { owner: "user_acme" });
  const elsewhere = service.visitor.post("/mcp/other/mcp").set("Authorization", `Bearer ${issued?.body.access_token}`);
  t.match((await elsewhere.send(list).expect(401)).body, { code: "invalid_token" }, "a token is good for one handle");
});

t.test("a code that is redeemed again ends the session that it has started", async (t) => {
  const service = await open(t);
  const { client_id = "" } = await register(service, [callback]);
  const browser = new Browser(await service.token("user_acme"));
  const token = async (form: Record<string, string>) => {
    const body = new URLSearchParams({ client_id, ...form });
    const answer = await fetch(`${service.url}/oauth/token`, { method: "POST", body });
    return { status: answer.status, body: (await answer.json()) as Record<string, string> };
  };
  await browser.open(address(service, { client_id }));
  const back = new URL((await browser.decide(service, "allow")).headers.get("location") ?? "");
  const form = { grant_type: "authorization_code", code: back.searchParams.get("code") ?? "", code_verifier: verifier };
  const [code = ""] = await keyNames(service.runtime.redis, "oauth-grant:*");
  const lifetime = await service.runtime.redis.ttl(code);
  t.ok(lifetime > 50 && lifetime <= 60, "a code is good for a minute");
  // A client of OAuth 2.1 sends no redirect address here.
  const { status, body: issued } = await token({ ...form, resource: "" });
  t.equal(status, 200);
  const works = async () => {
    const asked = service.visitor.post(endpoint).set("Accept", "application/json, text/event-stream");
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    return (await asked.set("Authorization", `Bearer ${issued.access_token}`).send(list)).status;
  };
  t.equal(await works(), 200);
  t.match(await token(form), { status: 400, body: { error: "invalid_grant" } });
  t.equal(await works(), 401);
  const refresh = { grant_type: "refresh_token", refresh_token: issued.refresh_token ?? "" };
  t.match(await token(refresh), { status: 400, body: { error: "invalid_grant" } });
});

t.test("of two redemptions of a code at the same time one wins, and its session ends", async (t) => {
  const service = await open(t);
  const { client_id = "" } = await register(service, [callback]);
  const browser = new Browser(await service.token("user_acme"));
  for (let round = 0; round < 10; round++) {
    await browser.open(address(service, { client_id }));
    const back = new URL((await browser.decide(service, "allow")).headers.get("location") ?? "");
    const code = back.searchParams.get("code") ?? "";
    const form = { grant_type: "authorization_code", client_id, code, code_verifier: verifier };
    const redeem = () => fetch(`${service.url}/oauth/token`, { method: "POST", body: new URLSearchParams(form) });
    const answers = await Promise.all([redeem(), redeem()]);
    t.same(answers.map(({ status }) => status).sort(), [200, 400]);
    const { access_token } = await (answers.find(({ ok }) => ok) as Response).json();
    const asked = service.visitor.post(endpoint).set("Accept", "application/json, text/event-stream");
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    t.equal((await asked.set("Authorization", `Bearer ${access_token}`).send(list)).status, 401);
  }
});

t.test("a use of a code without its verifier leaves a session alone that starts at the same time", async (t) => {
  const service = await open(t);
  const { client_id = "" } = await register(service, [callback]);
  const browser = new Browser(await service.token("user_acme"));
  for (let round = 0; round < 20; round++) {
    await browser.open(address(service, { client_id }));
    const back = new URL((await browser.decide(service, "allow")).headers.get("location") ?? "");
    const form = { grant_type: "authorization_code", client_id, code: back.searchParams.get("code") ?? "" };
    const redeem = (code_verifier: string) =>
      fetch(`${service.url}/oauth/token`, { method: "POST", body: new URLSearchParams({ ...form, code_verifier }) });
    const [own] = await Promise.all([verifier, ...Array(6).fill("x".repeat(43))].map(redeem));
    if (!own?.ok) continue;
    const { access_token } = await own.json();
    const asked = service.visitor.post(endpoint).set("Accept", "application/json, text/event-stream");
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    t.equal((await asked.set("Authorization", `Bearer ${access_token}`).send(list)).status, 200);
  }
});

t.test("a faulty request goes back to its client with the fault", async (t) => {
  const service = await open(t);
  const { client_id = "" } = await register(service, [callback]);
  const unknown = await new Browser().open(address(service, { client_id, response_type: "token" }));
  t.match(unknown.headers.get("location"), `${service.url}/login?`, "only once the browser is signed in");
  const browser = new Browser(await service.token("user_acme"));
  for (const [error, changed] of [
    ["unsupported_response_type", { response_type: "token" }],
    ["invalid_request", { response_type: "" }],
    ["invalid_request", { code_challenge_method: "plain" }],
    ["invalid_request", { code_challenge: "short" }],
    ["invalid_target", { resource: "https://other.example/mcp/acme/mcp" }],
    ["invalid_target", { resource: `${service.url}/v2/handles/acme` }],
    ["invalid_scope", { scope: "agent.pages.write agent" }],
  ] as [string, Record<string, string>][]) {
    const page = await browser.open(address(service, { client_id, ...changed }));
    const back = new URL(page.headers.get("location") ?? "http://none");
    t.equal(back.origin + back.pathname, callback);
    t.match(Object.fromEntries(back.searchParams), { error, state: "s", iss: service.url });
  }
});

t.test("the answer is added to a redirect address, whose own query stays as it was registered", async (t) => {
  const service = await open(t);
  const redirect = "https://app.example/cb?mode=a%20b&flag&path=%2F";
  const { client_id = "" } = await register(service, [redirect]);
  const browser = new Browser(await service.token("user_acme"));
  await browser.open(address(service, { client_id, redirect_uri: redirect }));
  const back = (await browser.decide(service, "deny")).headers.get("location") ?? "";
  t.match(back, `${redirect}&error=access_denied&state=s&iss=`);
});

t.test("metadata names the authorization server, for browsers too", async (t) => {
  const service = await open(t);
  // Only a browser itself opens it (RFC 9700, section 2.6).
  for (const origin of ["https://client.example", new URL(service.runtime.env.APP_URL).origin]) {
    const consent = await service.visitor.get("/oauth/authorize").set("Origin", origin).expect(400);
    t.equal(consent.headers["access-control-allow-origin"], undefined, origin);
  }
  const resource = `/.well-known/oauth-protected-resource${endpoint}`;
  const read = (one: Service, path: string) => one.visitor.get(path).set("Origin", "https://client.example");
  const named = await read(service, resource).expect(200).expect("access-control-allow-origin", "*");
  t.same(named.body.authorization_servers, [service.url]);
  const server = await read(service, "/.well-known/oauth-authorization-server").expect(200);
  t.equal(server.headers["access-control-allow-origin"], "*");
  t.match(server.body, { issuer: service.url, code_challenge_methods_supported: ["S256"] });
  const without = await startService(t);
  t.notOk((await read(without, resource).expect(200)).body.authorization_servers);
  await read(without, "/.well-known/oauth-authorization-server").expect(404);
  await without.visitor
    .post("/oauth/register")
    .send({ redirect_uris: [callback] })
    .expect(404);
  for (const path of ["/oauth/register", "/oauth/authorize", "/oauth/token"])
    await without.visitor.post(path).send({}).expect(404);
  await without.visitor.get("/oauth/authorize").expect(404);
  const outside = await startService(t, { env: { AUTH_ISSUER: "https://issuer.example" } });
  t.same((await read(outside, resource)).body.authorization_servers, ["https://issuer.example"]);
  await read(outside, "/.well-known/oauth-authorization-server").expect(404);
  const both = await open(t, { AUTH_ISSUER: "https://issuer.example" });
  t.same((await read(both, resource)).body.authorization_servers, [both.url, "https://issuer.example"]);
  await read(both, "/.well-known/oauth-authorization-server").expect(200);
});
