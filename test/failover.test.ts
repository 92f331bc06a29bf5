import { rm } from "node:fs/promises";
import process from "node:process";
import type { Redis } from "ioredis";
import { pino } from "pino";
import t, { type Test as TapTest } from "tap";
import { asFail } from "../api/problem.ts";
import { Relay } from "../core/engines/relay/relay.ts";
import { createRun } from "../core/engines/relay/runs.ts";
import { readEnv } from "../core/platform/env.ts";
import { connect, transact } from "../core/store/redis.ts";
import { live, openTown } from "../fixtures/mixed-life.ts";
import { type RedisPair, startPair, tell } from "../fixtures/redis-pair.ts";
import { eventually, startService } from "../fixtures/service.ts";
import { startReceiver } from "../fixtures/webhook-receiver.ts";

const withinMs = 5000;

async function openPair(t: TapTest): Promise<{ pair: RedisPair; redis: Redis }> {
  const pair = await startPair();
  const redis = connect(readEnv(pair.env)).on("error", () => undefined);
  t.teardown(async () => {
    redis.disconnect();
    await pair.stop();
  });
  await redis.set("a", "1");
  return { pair, redis };
}

/** Tries a write until it succeeds; returns the ms that this took. Each failure must be one that clients see as 503. */
async function writesAgain(t: TapTest, write: () => Promise<unknown>): Promise<number> {
  const began = Date.now();
  for (;;) {
    const failure = await write().then(
      () => undefined,
      (error: unknown) => asFail(error).code,
    );
    if (failure === undefined) return Date.now() - began;
    if (failure !== "service_unavailable") t.fail(`a write failed as ${failure}`);
    if (Date.now() - began > 3 * withinMs) throw new Error("No write succeeded.");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const setByScript = "return redis.call('SET', KEYS[1], '1')";
const writeByScript = (redis: Redis): Promise<unknown> => redis.eval(setByScript, 1, "a");
const writes: Record<string, (redis: Redis) => Promise<unknown>> = {
  command: (redis) => redis.set("a", "2"),
  script: writeByScript,
  transaction: (redis) => transact(redis, (transaction) => void transaction.set("a", "2").set("b", "2")),
  "transaction of scripts": (redis) => transact(redis, (transaction) => void transaction.eval(setByScript, 1, "a")),
  pipeline: async (redis) => {
    const results = await redis.pipeline().set("a", "2").get("a").exec();
    for (const [error] of results ?? []) if (error) throw error;
  },
};

/** Keeps the event loop from everything else, as a process does that gets no processor time. */
function holdUp(ms: number): void {
  const until = Date.now() + ms;
  while (Date.now() < until);
}

for (const [kind, write] of Object.entries(writes))
  t.test(`the reply to a ${kind} counts although the process was held up longer than it may take`, async (t) => {
    const { redis } = await openPair(t);
    const writing = write(redis);
    await new Promise(setImmediate);
    holdUp(2100);
    await t.resolves(writing);
    t.equal(await redis.get("a"), kind.includes("script") ? "1" : "2");
  });

t.test("a late reply counts although the process is held up once more when it arrives", async (t) => {
  const { pair, redis } = await openPair(t);
  await tell(pair.master, (server) => server.client("PAUSE", 2200, "ALL"));
  const reading = redis.get("a");
  await new Promise(setImmediate);
  for (const ms of [2100, 300, 300]) {
    holdUp(ms);
    await new Promise(setImmediate);
  }
  t.equal(await reading, "1");
});

t.test("a process that is held up while it connects waits for its connection", async (t) => {
  const { pair } = await openPair(t);
  const redis = connect(readEnv(pair.env));
  t.teardown(() => redis.disconnect());
  const reading = redis.get("a");
  for (let turns = 0; turns < 4; turns++) {
    await new Promise(setImmediate);
    holdUp(900);
  }
  t.equal(await reading, "1");
});

for (const [kind, write] of Object.entries(writes))
  t.test(`after a failover that closes no connection a ${kind} is written again within 5 s`, async (t) => {
    const { pair, redis } = await openPair(t);
    let closed = 0;
    redis.on("close", () => closed++);
    await pair.failOver();
    t.equal(closed, 0, "the connection is open");
    const ms = await writesAgain(t, () => write(redis));
    t.ok(ms < withinMs, `${ms} ms`);
    t.equal(await tell(pair.master, (server) => server.exists("a")), 1);
  });

/** Ways in which a master stops to serve while its connections stay open, by the code of its replies. */
const troubles: Record<string, (pair: RedisPair) => Promise<unknown>> = {
  READONLY: ({ master, other }) => tell(master, (redis) => redis.replicaof("127.0.0.1", other.port)),
  NOREPLICAS: ({ master }) => tell(master, (redis) => redis.config("SET", "min-replicas-to-write", "1")),
  MASTERDOWN: ({ master }) =>
    tell(master, async (redis) => {
      await redis.config("SET", "replica-serve-stale-data", "no");
      await redis.replicaof("127.0.0.1", 1);
    }),
  MISCONF: ({ master }) =>
    tell(master, async (redis) => {
      await redis.config("SET", "save", "3600 1");
      await rm(master.dir, { recursive: true });
      await redis.bgsave();
      await eventually(async () => /rdb_last_bgsave_status:err/.test(await redis.info("persistence")));
    }),
  LOADING: ({ master, other }) =>
    tell(master, async (redis) => {
      // The backlog is too small for these writes, so that all data has to be sent.
      await tell(other, (source) => source.config("SET", "repl-backlog-size", "16384"));
      const populate = "for i = 1, 50000 do redis.call('SET', 'key' .. i, i) end";
      await tell(other, (source) => source.eval(populate, 0));
      await redis.config("SET", "key-load-delay", "500", "loading-process-events-interval-bytes", "1024");
      await redis.replicaof("127.0.0.1", other.port);
      await eventually(async () => /loading:1/.test(await redis.info("persistence")));
    }),
};

for (const [code, provoke] of Object.entries(troubles))
  t.test(`a connection leaves a server that answers ${code}`, async (t) => {
    const { pair, redis } = await openPair(t);
    await tell(pair.other, (server) => server.replicaof("NO", "ONE"));
    await provoke(pair);
    await t.rejects(writeByScript(redis), { message: new RegExp(`^${code} `) });
    pair.switchAddress();
    const ms = await writesAgain(t, () => redis.set("b", code));
    t.ok(ms < withinMs, `${ms} ms`);
    t.equal(await tell(pair.master, (server) => server.get("b")), code);
  });

t.test(
  "after a failover without a closed connection the service works within 5 s, in every noun and queue",
  async (t) => {
    const pair = await startPair();
    t.teardown(() => pair.stop());
    const town = await openTown(t, pair);
    await live(town, "before");
    const { visitor, as } = town.service;
    const owner = await as("user_before");
    const root = "/v2/handles/before";
    const document = { title: "More", content: "A bike costs 39 EUR.", containerTags: ["public-page-agent"] };
    const lead = { email: "late@before.test", pageSlug: "index", campaignId: "cmp_spring" };
    const asks: Record<string, () => ReturnType<typeof owner.post>> = {
      page: () => owner.post(`${root}/pages`).send({ pageSlug: "late", title: "Late", content: "<p>Late</p>" }),
      document: () => owner.post(`${root}/knowledge/documents`).send(document),
      lead: () => visitor.post("/v2/public/handles/before/leads").send(lead),
      question: () => visitor.post("/v2/public/pages/before/index/agentic-question").send({ question: "Refunds?" }),
    };
    await pair.failOver();
    const began = Date.now();
    for (const [name, ask] of Object.entries(asks))
      await eventually(async () => {
        const { status, headers } = await ask();
        if (status !== 503) return t.ok(status < 300, `${name}: ${status}`);
        return t.ok(Number(headers["retry-after"]) > 0, `${name}: later`) && false;
      });
    await eventually(async () => {
      const { documents } = (await owner.get(`${root}/knowledge/documents`).expect(200)).body;
      return documents.every(({ status }: { status: string }) => status === "READY");
    });
    t.ok(Date.now() - began < withinMs, `${Date.now() - began} ms`);
    const { answer, mailed, told } = await live(town, "after");
    t.match(answer, "within 30 days");
    t.equal(mailed.length, 2);
    t.equal(told.length, 2);
  },
);

t.test("a job that finishes after a failover is done, and doesn't run again", async (t) => {
  const pair = await startPair();
  t.teardown(() => pair.stop());
  const service = await startService(t, { redis: pair, workers: ["webhooks"] });
  const owner = await service.handle("acme");
  const held: (() => void)[] = [];
  const receiver = await startReceiver(t, (response) => void held.push(() => response.writeHead(204).end()));
  const hooks = "/v2/handles/acme/scheduling/webhooks";
  const { webhook } = (await owner.post(hooks).send({ url: receiver.url }).expect(201)).body;
  await owner.post(`${hooks}/${webhook.webhookId}/test`).expect(202);
  await eventually(() => held.length > 0);
  await pair.failOver();
  for (const answer of held) answer();
  const queue = service.runtime.queues.queue("webhooks");
  await eventually(async () => (await queue.getActiveCount()) === 0, withinMs);
  t.equal(receiver.received.length, 1);
  t.same(await queue.getFailed(), []);
});

t.test("many commands that a demoted server refuses at once close its connection once", async (t) => {
  const pair = await startPair();
  t.teardown(() => pair.stop());
  const redis = connect(readEnv(pair.env), "commands", { forJobs: true });
  t.teardown(() => redis.disconnect());
  await redis.set("a", "1");
  const warnings: string[] = [];
  const listen = ({ message }: Error): void => void warnings.push(message);
  process.on("warning", listen);
  t.teardown(() => process.removeListener("warning", listen));
  await pair.failOver();
  await Promise.all(Array.from({ length: 30 }, (_, at) => redis.set(`key-${at}`, "1")));
  t.same(warnings, []);
});

t.test("an answer streams on at once after a failover that leaves its reader at the old master", async (t) => {
  const { pair, redis } = await openPair(t);
  const env = readEnv(pair.env);
  const relay = new Relay({ redis, connect: () => connect(env, "blocking"), log: pino({ level: "silent" }) });
  t.teardown(() => relay.close());
  await createRun(redis, "run_1", { question: "How much is it?" });
  const reader = relay.follow("run_1");
  const run = await relay.claim("run_1", 1);
  if (typeof run === "string") throw new Error(`not claimed: ${run}`);
  run.write("1");
  t.match(await reader.next(), { value: { chunk: "1" } });
  t.equal(await redis.wait(1, 5000), 1);
  // The old master stays for its clients and never gets another write.
  await tell(pair.other, (server) => server.replicaof("NO", "ONE"));
  await tell(pair.master, (server) => server.replicaof("127.0.0.1", 1));
  await new Promise((resolve) => setTimeout(resolve, 500));
  pair.switchAddress();
  await writesAgain(t, () => redis.set("a", "2"));
  for (const number of [2, 3, 4]) {
    const written = Date.now();
    run.write(String(number));
    t.match(await reader.next(), { value: { chunk: String(number) } });
    t.ok(Date.now() - written < 2000, `${Date.now() - written} ms`);
  }
  await run.end();
});

t.test("a connection leaves a server that is silent", async (t) => {
  const { pair, redis } = await openPair(t);
  await tell(pair.other, (server) => server.replicaof("NO", "ONE"));
  process.kill(pair.master.pid, "SIGSTOP");
  t.teardown(() => process.kill(pair.other.pid, "SIGCONT"));
  pair.switchAddress();
  const ms = await writesAgain(t, () => redis.set("a", "2"));
  t.ok(ms < withinMs, `${ms} ms`);
});

t.test("a server that refuses writes for long still answers reads, at one reconnection a second", async (t) => {
  const { pair, redis } = await openPair(t);
  let closed = 0;
  redis.on("close", () => closed++);
  await tell(pair.master, (server) => server.config("SET", "min-replicas-to-write", "2"));
  const began = Date.now();
  while (Date.now() - began < 2500) {
    await t.rejects(redis.set("a", "2"), { message: /^NOREPLICAS / });
    t.equal(await redis.get("a"), "1");
  }
  const seconds = (Date.now() - began) / 1000;
  t.ok(closed >= 2 && closed <= Math.floor(seconds) + 1, `${closed} reconnections in ${seconds} s`);
});
