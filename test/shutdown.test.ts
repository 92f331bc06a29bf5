import t, { type Test as TapTest } from "tap";
import { createHandle } from "../core/account/handles.ts";
import { makeSending, startMailing } from "../fixtures/email.ts";
import { startModelServer } from "../fixtures/model-server.ts";
import { publishPage } from "../fixtures/pages.ts";
import { freePort } from "../fixtures/ports.ts";
import { type Group, spawnGroup, spawnProgram } from "../fixtures/processes.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";
import { startMailServer } from "../fixtures/smtp.ts";

const withinMs = 25_000;
const model = { PUBLIC_PAGE_AGENT_MODEL_ID: "scripted:chat", EMBEDDING_MODEL_ID: "scripted:embed" };

/** Signals a whole group every 100 ms until its program has stopped in order; returns the ms that this took. */
async function stopped(group: Group, name: "web" | "worker"): Promise<number> {
  const began = Date.now();
  group.signal("SIGTERM");
  let count = 0;
  const again = setInterval(() => group.isOver || group.signal(count++ % 2 ? "SIGTERM" : "SIGINT"), 100);
  await group.says(`${name}.stopped`).finally(() => clearInterval(again));
  // npm may end by the last of the signals, which came when its program had gone.
  await group.ended;
  return Date.now() - began;
}

/** A published page of the handle `acme`. */
async function furnish({ runtime }: Service): Promise<void> {
  await createHandle(runtime, { handle: "acme", account: "acct_acme", owner: "user_acme", assistant: true });
  const page = { handle: "acme", pageSlug: "bikes", title: "Bikes" };
  await publishPage(runtime, { ...page, content: "<p>A cargo bike costs 39 EUR a day.</p>" });
}

/** A model server, and a service whose processes ask it. */
async function startAsking(t: TapTest) {
  const server = await startModelServer({ reply: () => "A cargo bike costs 39 EUR a day. ".repeat(9000), everyMs: 15 });
  t.teardown(() => server.close());
  const service = await startService(t, { env: { OLLAMA_HOST: server.url, ...model } });
  await furnish(service);
  const env = { ...service.redis.env, ...model, OLLAMA_HOST: server.url, PUBLIC_PAGE_AGENT_ENABLED: "1" };
  return { server, service, env };
}

t.test("repeated signals to the group of `npm run start:web` let its streams end with an error chunk", async (t) => {
  const { env } = await startAsking(t);
  const port = await freePort();
  const web = spawnGroup(t, "api/server.ts", { ...env, PORT: String(port) });
  await web.says("web.ready");
  await spawnProgram(t, "workers/main.ts", env).says("worker.ready");
  const question = [{ type: "text", text: "What does a cargo bike cost?" }];
  const answer = await fetch(`http://127.0.0.1:${port}/v2/public/pages/acme/bikes/agentic-chat`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ messages: [{ id: "1", role: "user", parts: question }] }),
  });
  const [stream, ms] = await Promise.all([answer.text(), stopped(web, "web")]);
  t.match(stream, /"type":"text-delta"[\s\S]*"type":"error"[^\n]*\n\ndata: \[DONE\]\n\n$/);
  t.ok(ms > 2000 && ms < withinMs, `${ms} ms`);
});

t.test("repeated signals to the group of `npm run start:worker` make it hand its jobs back", async (t) => {
  const { server, service, env } = await startAsking(t);
  const worker = spawnGroup(t, "workers/main.ts", env);
  await worker.says("worker.ready");
  server.script.failure = "hang";
  const owner = await service.as("user_acme");
  const document = {
    title: "Bikes",
    content: "A cargo bike costs 39 EUR a day.",
    containerTags: ["public-page-agent"],
  };
  await owner.post("/v2/handles/acme/knowledge/documents").send(document).expect(202);
  await eventually(() => server.requests.some(({ path }) => path === "/api/embed"));
  const ms = await stopped(worker, "worker");
  t.ok(ms < withinMs, `${ms} ms`);
  const queue = service.runtime.queues.queue("knowledge");
  t.match(
    await queue.getJobCounts("active", "delayed", "waiting"),
    { active: 0 },
    "no job waits for a dead worker's lock",
  );
  server.script.failure = undefined;
  await service.startWorkers(["knowledge"]);
  await eventually(async () => {
    const { documents } = (await owner.get("/v2/handles/acme/knowledge/documents").expect(200)).body;
    return documents[0].status === "READY";
  }, 8000);
});

t.test("a signal to the group of `npm run start:worker` in the middle of a mail makes no copy of it", async (t) => {
  const server = await startMailServer(t);
  server.delay = 2000;
  const service = await startMailing(t, server.url);
  const acme = await makeSending(service);
  const env = { ...service.redis.env, SMTP_URL: server.url, BASE_URL: "http://service.test" };
  const worker = spawnGroup(t, "workers/main.ts", env);
  await worker.says("worker.ready");
  const messageId = await acme.send(["ann@far.example"]);
  await eventually(() => server.named.length > 0);
  worker.signal("SIGTERM");
  t.same(await worker.ended, { code: 0, signal: null });
  t.equal((await acme.read(messageId)).message.status, "SENT");
  t.equal(server.mails.length, 1);
});
