import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import t from "tap";
import { createHandle } from "../core/account/handles.ts";
import { openRuntime } from "../core/open.ts";
import { readEnv } from "../core/platform/env.ts";
import { type ModelServer, startModelServer } from "../fixtures/model-server.ts";
import { publishPage } from "../fixtures/pages.ts";
import { type SpawnedService, spawnService } from "../fixtures/processes.ts";
import { type RedisServer, startRedis } from "../fixtures/redis.ts";

const question = "How much is a cargo bike, Mr. Canary-42?";

/** Web and worker as processes of their own, a slow model, and a published page. */
async function running(
  t: Parameters<typeof spawnService>[0],
  more: Record<string, string> = {},
): Promise<SpawnedService & { redis: RedisServer; model: ModelServer }> {
  const redis = await startRedis({ own: true });
  const model = await startModelServer({
    reply: () => "A cargo bike costs 39 EUR a day. ".repeat(2000),
    everyMs: 15,
  });
  t.teardown(async () => {
    await model.close();
    await redis.stop();
  });
  const runtime = await openRuntime(readEnv({ ...redis.env, LOG_LEVEL: "silent" }));
  await createHandle(runtime, { handle: "acme", account: "acct_acme", owner: "user_acme", assistant: true });
  const content = "<h1>Bikes</h1><p>A cargo bike costs 39 EUR a day.</p>";
  await publishPage(runtime, { handle: "acme", pageSlug: "bikes", title: "Bikes", content });
  await runtime.close();
  const env = { PUBLIC_PAGE_AGENT_ENABLED: "1", OLLAMA_HOST: model.url, PUBLIC_PAGE_AGENT_MODEL_ID: "scripted:chat" };
  return { ...(await spawnService(t, redis, { ...env, ...more })), redis, model };
}

async function ask({ url }: SpawnedService): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const answer = await fetch(`${url}/v2/public/pages/acme/bikes/agentic-chat`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ messages: [{ id: "1", role: "user", parts: [{ type: "text", text: question }] }] }),
  });
  return (answer.body as ReadableStream<Uint8Array>).getReader();
}

/** Reads on until these words have come, or to the end. */
async function readTo(reader: ReadableStreamDefaultReader<Uint8Array>, words: string | undefined): Promise<string> {
  let text = "";
  while (words === undefined || !text.includes(words)) {
    const { done, value } = await reader.read();
    if (done) break;
    text += new TextDecoder().decode(value);
  }
  return text;
}

t.test("a worker that is killed in the middle of an answer ends the stream with an error chunk", async (t) => {
  const service = await running(t);
  const reader = await ask(service);
  t.match(await readTo(reader, "text-delta"), /39 EUR/);
  await service.worker.end("SIGKILL");
  const rest = await readTo(reader, undefined);
  t.match(rest, /data: \{"type":"error","errorText":"[^"]+"\}\n\ndata: \[DONE\]\n\n$/);
});

t.test("if the worker is killed, the question fails with a request to retry", async (t) => {
  const service = await running(t);
  const asked = fetch(`${service.url}/v2/public/pages/acme/bikes/agentic-question`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ question }),
  });
  await readTo(await ask(service), "text-delta");
  await service.worker.end("SIGKILL");
  const answer = await asked;
  t.match(
    { status: answer.status, ...((await answer.json()) as object) },
    { status: 503, code: "service_unavailable" },
  );
  t.ok(Number(answer.headers.get("retry-after")) > 0);
  t.notMatch(service.web.stdout, "request.failed");
});

t.test(
  "a stopping web process ends its streams with an error chunk, and its logs contain no part of the question",
  async (t) => {
    const service = await running(t);
    const reader = await ask(service);
    await readTo(reader, "text-delta");
    const ended = service.web.end("SIGTERM");
    t.match(await readTo(reader, undefined), /"type":"error"/);
    t.match(await ended, { code: 0 });
    t.match(await service.worker.end("SIGTERM"), { code: 0 });
    for (const said of [service.web.stdout, service.web.stderr, service.worker.stdout, service.worker.stderr])
      t.notMatch(said, /Canary|cargo/i);
  },
);

t.test("a failed answer is logged by name only", async (t) => {
  const service = await running(t);
  const reader = await ask(service);
  await readTo(reader, "text-delta");
  await service.model.close();
  t.match(await readTo(reader, undefined), /"type":"error"/);
  await service.worker.says("assistant.answer.failed");
  await service.redis.kill();
  const answer = await fetch(`${service.url}/v2/public/pages/acme/bikes/agentic-question`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-request-id": "known-to-the-visitor" },
    body: JSON.stringify({ question }),
  });
  t.equal(answer.status, 503);
  await service.web.says("assistant.request.unavailable");
  const fields = (said: string, name: string) =>
    Object.keys(JSON.parse(said.split("\n").find((line) => line.includes(`"${name}"`)) ?? "{}")).sort();
  t.same(fields(service.worker.stdout, "assistant.answer.failed"), ["level", "modelId", "msg", "time"]);
  t.same(fields(service.web.stdout, "assistant.request.unavailable"), ["level", "msg", "time"]);
  t.notMatch(service.web.stdout, "known-to-the-visitor");
});

t.test("a model that fails before its first word is logged, and none of its words is", async (t) => {
  let status = 200;
  const broken = createServer((_, res) => void res.writeHead(status).end('{"message":{"content":"Mr. Canary-42\n'));
  await once(broken.listen(0, "127.0.0.1"), "listening");
  t.teardown(() => broken.close());
  const { url, worker } = await running(t, {
    OLLAMA_HOST: `http://127.0.0.1:${(broken.address() as AddressInfo).port}`,
  });
  for (status of [200, 429]) {
    const answer = await fetch(`${url}/v2/public/pages/acme/bikes/agentic-question`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ question }),
    });
    t.match(await answer.json(), { degraded: true, answerMarkdown: /39 EUR/ });
  }
  await worker.end("SIGTERM");
  t.equal(worker.stdout.split('"assistant.answer.failed"').length - 1, 2);
  t.equal(worker.stderr, "");
  for (const line of worker.stdout.trim().split("\n")) t.match(line, /^\{"level".*\}$/);
});

t.test("the worker's log line of an answer has the agreed fields and no others", async (t) => {
  const service = await running(t);
  const reader = await ask(service);
  await readTo(reader, "text-delta");
  await reader.cancel();
  const answer = await fetch(`${service.url}/v2/public/pages/acme/bikes/agentic-question`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ question: "What is the admin password?" }),
  });
  t.equal(answer.status, 200);
  await service.worker.end("SIGTERM");
  const lines = service.worker.stdout.split("\n").filter((line) => line.includes("assistant.answered"));
  t.equal(lines.length, 1);
  const names = [
    "level",
    "time",
    "handle",
    "pageSlug",
    "modelId",
    "retrievalMode",
    "degraded",
    "snippetCount",
    "tookMs",
    "msg",
  ];
  t.same(Object.keys(JSON.parse(lines[0] ?? "{}")).sort(), names.sort());
});
