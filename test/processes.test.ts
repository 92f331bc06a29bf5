import { spawn } from "node:child_process";
import { once } from "node:events";
import { openSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { type AddressInfo, connect, createServer } from "node:net";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { createServer as createTlsServer } from "node:tls";
import { pino } from "pino";
import tlsOptions from "smtp-server/lib/tls-options.js";
import t, { type Test as TapTest } from "tap";
import { openRuntime } from "../core/open.ts";
import { readEnv } from "../core/platform/env.ts";
import { freePort } from "../fixtures/ports.ts";
import { spawnProgram, spawnService } from "../fixtures/processes.ts";
import { startRedis } from "../fixtures/redis.ts";
import { eventually } from "../fixtures/service.ts";

const document = { title: "Prices", content: "The small plan costs 12 EUR.", containerTags: ["public-page-agent"] };

/** The answer of a running service to a request with a token. */
async function ask(
  url: string,
  path: string,
  token: string,
  body?: unknown,
): Promise<{ status: number; body: Answer }> {
  const answer = await fetch(url + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Answer };
}

interface Answer {
  code?: string;
  document?: { documentId: string; status: string };
  documents?: { documentId: string; status: string }[];
  keys?: { kid: string }[];
}

/** Makes a handle by the admin command and returns its owner's token. */
async function ownerOf(t: TapTest, env: Record<string, string>): Promise<string> {
  const admin = async (...words: string[]) => {
    const ran = spawnProgram(t, "scripts/admin.ts", env, words);
    t.same(await ran.ended, { code: 0, signal: null }, ran.stderr);
    return JSON.parse(ran.stdout) as { token: string };
  };
  await admin("create-handle", "--handle", "acme", "--account", "acct_acme", "--owner", "user_1");
  return (await admin("token", "--user", "user_1")).token;
}

/** Requests of a client that reads no answer, from now on: the server gives it two minutes at most, while the other tests run. */
const unread = (async () => {
  const redis = await startRedis({ own: true });
  t.teardown(() => redis.stop());
  const port = await freePort();
  await spawnProgram(t, "api/server.ts", { ...redis.env, PORT: String(port) }).says("web.ready");
  const { length } = await (await fetch(`http://127.0.0.1:${port}/openapi.json`)).text();
  const client = connect(port, "127.0.0.1").on("error", () => undefined);
  client.pause().write("GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(40));
  return { client, requested: 40 * length, over: sleep(130_000) };
})();

t.test("web and worker end in order on SIGTERM, and a request under way is answered", async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const { url, web, worker, env } = await spawnService(t, redis);
  const token = await ownerOf(t, env);
  const slow = await slowPost(`${url}/v2/handles/acme/knowledge/documents`, token, JSON.stringify(document));
  const ended = Promise.all([web.end(), worker.end()]);
  await web.says("web.stopping");
  const readiness = await fetch(`${url}/readyz`);
  t.equal(readiness.status, 503, "balancers turn away from a process that goes");
  t.match(await readiness.json(), { status: "stopping", redis: "ok" });
  t.equal(await slow.finish(), 202);
  t.same(await ended, [graceful, graceful]);
  for (const { stdout, stderr } of [web, worker]) {
    t.equal(stderr, "");
    t.ok(stdout.trim().split("\n").every(isLogLine), "every line of the log is JSON");
  }
});

t.test("bad settings end a start with one line that names all of them", async (t) => {
  const env = { NODE_ENV: "production", PORT: "x", LOGIN_BUILTIN: "perhaps", TEST_CLOCK: "2026-01-01T00:00:00Z" };
  for (const program of ["api/server.ts", "workers/main.ts"] as const) {
    const started = spawnProgram(t, program, env);
    t.same(await started.ended, { code: 1, signal: null });
    t.equal(started.stdout, "");
    t.equal(started.stderr.trim().split("\n").length, 1, started.stderr);
    for (const name of ["PORT", "LOGIN_BUILTIN", "TEST_CLOCK", "REDIS_URL", "SECRET_KEY", "BASE_URL"])
      t.match(started.stderr, name);
  }
});

t.test("in production a web process warns when it would count all visitors behind a proxy as one", async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const said = async (more: Record<string, string>) => {
    const base = { NODE_ENV: "production", SECRET_KEY: "a".repeat(43), BASE_URL: "http://service.test" };
    const web = spawnProgram(t, "api/server.ts", { ...redis.env, ...base, PORT: String(await freePort()), ...more });
    await web.says("web.ready");
    await web.end("SIGINT");
    return web.stdout;
  };
  t.match(await said({}), /"level":"warn".*Set TRUST_PROXY=1.*web\.proxy_untrusted/);
  t.notMatch(await said({ TRUST_PROXY: "1" }), /proxy_untrusted/);
});

t.test("a start without Redis ends with a line that says so", async (t) => {
  const port = await freePort();
  for (const program of ["api/server.ts", "workers/main.ts"] as const) {
    const started = spawnProgram(t, program, { REDIS_URL: `redis://127.0.0.1:${port}`, PORT: "0" });
    t.same(await started.ended, { code: 1, signal: null });
    t.equal(started.stderr, "");
    t.match(
      started.stdout.trim().split("\n").at(-1),
      /"level":"fatal".*Redis can't be used: .*ECONNREFUSED.*start_failed/,
    );
  }
});

t.test(
  "a start on a Redis with an unknown certificate says which settings help, and with them it is ready",
  async (t) => {
    const redis = await startRedis({ single: true });
    t.teardown(() => redis.stop());
    const encrypting = createTlsServer(tlsOptions(), (near) => {
      const far = connect(redis.port, "127.0.0.1");
      near
        .on("error", () => far.destroy())
        .pipe(far)
        .pipe(near);
    }).listen(0, "127.0.0.1");
    await once(encrypting, "listening");
    t.teardown(() => encrypting.close());
    const env = { REDIS_URL: `rediss://127.0.0.1:${(encrypting.address() as AddressInfo).port}` };
    const refused = spawnProgram(t, "workers/main.ts", env);
    t.same(await refused.ended, { code: 1, signal: null });
    const advice =
      /"level":"fatal".*Redis can't be used: .*certificate.*NODE_EXTRA_CA_CERTS.*REDIS_TLS_INSECURE=1.*start_failed/;
    t.match(refused.stdout.trim().split("\n").at(-1), advice);
    const worker = spawnProgram(t, "workers/main.ts", { ...env, REDIS_TLS_INSECURE: "1" });
    await worker.says("worker.ready");
    await worker.end();
  },
);

/** The warnings of a start about a Redis with these settings. */
async function saidOf(t: TapTest, appendonly: boolean, settings: string[]): Promise<string[]> {
  const redis = await startRedis({ appendonly, settings, single: true });
  t.teardown(() => redis.stop());
  const said: { level: number; msg: string }[] = [];
  const runtime = await openRuntime(
    readEnv(redis.env),
    pino({ level: "warn" }, { write: (line) => void said.push(JSON.parse(line)) }),
  );
  await runtime.close();
  return said.map(({ msg }) => msg);
}

t.test("the log warns at startup if Redis may lose accepted work, or if that is unknown", async (t) => {
  t.same(await saidOf(t, true, []), [], "each write is on the disk");
  t.same(await saidOf(t, true, ["--appendfsync", "everysec"]), ["redis.fsync_unsafe"]);
  t.same(
    await saidOf(t, true, ["--rename-command", "CONFIG", ""]),
    ["redis.fsync_unknown"],
    "an add-on forbids the question",
  );
  t.same(await saidOf(t, false, ["--maxmemory-policy", "allkeys-lru"]), [
    "redis.persistence_off",
    "redis.eviction_unsafe",
  ]);
});

t.test("a start on a database that Redis doesn't have ends with a line that says so", async (t) => {
  const redis = await startRedis({ single: true });
  t.teardown(() => redis.stop());
  const started = spawnProgram(t, "workers/main.ts", { REDIS_URL: `${redis.url}/99` });
  t.same(await started.ended, { code: 1, signal: null });
  t.match(started.stdout.trim().split("\n").at(-1), /DB index is out of range.*worker\.start_failed/);
});

t.test("a start with another SECRET_KEY ends with a line that says which settings to change", async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  await (await openRuntime(readEnv({ ...redis.env, LOG_LEVEL: "silent" }))).close();
  const started = spawnProgram(t, "workers/main.ts", { ...redis.env, SECRET_KEY: `${"A".repeat(43)}=` });
  t.same(await started.ended, { code: 1, signal: null });
  const line = started.stdout.trim().split("\n").at(-1);
  t.match(line, /"level":"fatal".*set SECRET_KEY or SECRET_KEY_PREVIOUS to it\..*worker\.start_failed/);
});

t.test("a log on a full disk ends no process", { skip: "Deno" in globalThis }, async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const port = await freePort();
  const env = { PATH: process.env.PATH ?? "", ...redis.env, PORT: String(port) };
  const web = spawn(process.execPath, ["dist/api/server.js"], { env, stdio: ["ignore", openSync("/dev/full", "w")] });
  t.teardown(() => web.kill("SIGKILL"));
  await eventually(async () => (await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined))?.ok);
  await sleep(1000);
  t.equal((await fetch(`http://127.0.0.1:${port}/readyz`)).status, 200);
  web.kill("SIGTERM");
  t.same(await once(web, "exit"), [0, null]);
});

t.test("a start on a port that is taken ends with a line that says so", async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const taken = createServer();
  await once(taken.listen(0), "listening");
  t.teardown(() => taken.close());
  const { port } = taken.address() as AddressInfo;
  const started = spawnProgram(t, "api/server.ts", { ...redis.env, PORT: String(port) });
  t.same(await started.ended, { code: 1, signal: null });
  t.equal(started.stderr, "");
  const lines = started.stdout.trim().split("\n");
  t.ok(lines.every(isLogLine), started.stdout);
  t.match(lines.at(-1), /"level":"fatal".*EADDRINUSE.*"web.start_failed"/);
});

t.test("while Redis is away the answer is 503, and accepted work is complete when it is back", async (t) => {
  const place = { port: await freePort(), dir: t.testdir(), appendonly: true };
  const first = await startRedis(place);
  t.teardown(() => first.kill());
  const { url, worker, env } = await spawnService(t, first);
  const token = await ownerOf(t, env);
  // Without a worker the document's job waits in Redis.
  await worker.end();
  const accepted = await ask(url, "/v2/handles/acme/knowledge/documents", token, document);
  t.equal(accepted.status, 202);
  await first.kill();
  for (const path of ["/v2/handles/acme/knowledge/documents", "/p/acme/pricing", "/readyz"]) {
    const away = await fetch(url + path, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(5000),
    });
    t.equal(away.status, 503, path);
    t.ok(Number(away.headers.get("retry-after")) > 0, path);
    await away.body?.cancel();
  }
  t.equal((await fetch(`${url}/healthz`)).status, 200);
  t.equal(await healthAt(url, "www.unknown.test"), 200, "also at a host that Redis would have to know");
  const second = await startRedis(place);
  t.teardown(() => second.stop());
  await spawnProgram(t, "workers/main.ts", env).says("worker.ready");
  const kept = await eventually(async () => {
    const { status, body } = await ask(url, "/v2/handles/acme/knowledge/documents", token);
    return status === 200 && body.documents?.[0]?.status === "READY" && body.documents;
  });
  t.equal(kept[0]?.documentId, accepted.body.document?.documentId);
});

t.test("a Redis that hangs is one that is away", async (t) => {
  const redis = await startRedis({ single: true });
  t.teardown(() => redis.stop());
  const { url, env } = await spawnService(t, redis);
  const token = await ownerOf(t, env);
  process.kill(redis.pid, "SIGSTOP");
  t.teardown(() => process.kill(redis.pid, "SIGCONT"));
  const refused = async (_: unknown, place: number): Promise<number> => {
    await new Promise((resolve) => setTimeout(resolve, 200 * place));
    const asked = { headers: { authorization: `Bearer ${token}` }, signal: AbortSignal.timeout(5000) };
    const { status, body } = await fetch(`${url}/v2/handles/acme/pages`, asked);
    await body?.cancel();
    return status;
  };
  const statuses = await Promise.all(Array.from({ length: 12 }, refused));
  t.ok(
    statuses.every((status) => status === 503),
    "also what came while others were waiting",
  );
  process.kill(redis.pid, "SIGCONT");
  await eventually(async () => (await ask(url, "/v2/handles/acme/pages", token)).status === 200);
});

t.test("processes that start at once share one signing key", async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const ports = await Promise.all([1, 2, 3].map(freePort));
  const webs = ports.map((port) => spawnProgram(t, "api/server.ts", { ...redis.env, PORT: String(port) }));
  await Promise.all(webs.map((web) => web.says("web.ready")));
  const sets = await Promise.all(
    ports.map((port) => ask(`http://127.0.0.1:${port}`, "/.well-known/jwks.json", "none")),
  );
  t.equal(new Set(sets.map(({ body }) => body.keys?.[0]?.kid)).size, 1);
  t.ok(sets[0]?.body.keys?.[0]?.kid);
});

t.test("lazily loaded parts work: board, MCP, documents, bounce mailbox", async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const mailbox = createServer((socket) => socket.end("* BYE closed for today\r\n"));
  await once(mailbox.listen(0, "127.0.0.1"), "listening");
  t.teardown(() => mailbox.close());
  const called = once(mailbox, "connection");
  const { port } = mailbox.address() as AddressInfo;
  const { url, worker, env } = await spawnService(t, redis, {
    METRICS_TOKEN: "operators-only",
    BOUNCE_IMAP_URL: `imap://bounces:secret@127.0.0.1:${port}/INBOX`,
  });
  const board = await fetch(`${url}/queues/`, { headers: { authorization: "Bearer operators-only" } });
  t.equal(board.status, 200);
  await board.body?.cancel();
  const token = await ownerOf(t, env);
  const call = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  const tools = await fetch(`${url}/mcp/acme/mcp`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body: JSON.stringify(call),
  });
  t.match(await tools.text(), "strategy_query");
  await ask(url, "/v2/handles/acme/knowledge/documents", token, document);
  await eventually(async () => {
    const { body } = await ask(url, "/v2/handles/acme/knowledge/documents", token);
    return body.documents?.[0]?.status === "READY";
  });
  await called;
  await worker.says("email.mailbox.read_failed");
});

/** A POST whose body has begun to arrive; `finish` sends the rest and gives the status of the answer. */
async function slowPost(url: string, token: string, body: string): Promise<{ finish(): Promise<number> }> {
  const headers = {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    "content-length": body.length,
  };
  const sent = request(url, { method: "POST", headers });
  const answered = new Promise<number>((resolve, reject) => {
    sent.once("error", reject);
    sent.once("response", (answer) => resolve(answer.resume().statusCode ?? 0));
  });
  await new Promise((resolve) => sent.write(body.slice(0, 10), resolve));
  // A later connection that is answered shows that this one was taken.
  await (await fetch(new URL("/healthz", url))).text();
  return {
    finish() {
      sent.end(body.slice(10));
      return answered;
    },
  };
}

/** The status of `/healthz` for a request that names another host. */
async function healthAt(url: string, host: string): Promise<number> {
  const sent = request(`${url}/healthz`, { headers: { host } }).end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  return answer.resume().statusCode ?? 0;
}

const graceful = { code: 0, signal: null };

function isLogLine(line: string): boolean {
  const said = JSON.parse(line) as { time?: string; level?: string; msg?: string };
  return Boolean(said.time && said.level && said.msg);
}

t.test("a client that doesn't read its answers loses its connection, and they are forgotten", async (t) => {
  const { client, requested, over } = await unread;
  await over;
  let read = 0;
  client.on("data", (part) => (read += part.length)).resume();
  await once(client, "close");
  t.ok(read < requested / 2, `only what the system holds is left: ${read} of ${requested} bytes`);
});
