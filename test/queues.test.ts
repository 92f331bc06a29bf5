import { getEventListeners, once } from "node:events";
import { type AddressInfo, connect as connectTo, createServer, type Socket } from "node:net";
import { UnrecoverableError, Worker } from "bullmq";
import t, { type Test as TapTest } from "tap";
import { stats } from "../core/operations/health.ts";
import { Fail } from "../core/platform/errors.ts";
import { keys } from "../core/store/keys.ts";
import { job, Queues } from "../core/store/outbox.ts";
import { connect } from "../core/store/redis.ts";
import { type RedisServer, startRedis, storedText } from "../fixtures/redis.ts";
import { eventually, published, startService } from "../fixtures/service.ts";
import { type JobName, jobs } from "../schemas/jobs.ts";
import { perform, type WorkerRow } from "../workers/job.ts";
import { JobGroups } from "../workers/job-groups.ts";
import { workerRows } from "../workers/rows.ts";

const indexing = (id: string) => job("knowledge.index", id, { handle: "acme", documentId: "doc_1" });

t.test("a change and its jobs are written together, and the jobs are enqueued", async (t) => {
  const { runtime } = await startService(t);
  await runtime.queues.commit("acme", [indexing("a")], (transaction) => transaction.set("change:{acme}", "1"));
  t.equal(await runtime.redis.get("change:{acme}"), "1");
  const queued = await eventually(() => runtime.queues.queue("knowledge").getJob("a"));
  t.same(queued.data, { handle: "acme", documentId: "doc_1" });
  await published(runtime, "acme");
});

t.test("an outbox that a crash left is swept once, and leaves the sweeper's list", async (t) => {
  const { runtime } = await startService(t);
  await runtime.queues.register("acme");
  await runtime.redis.hset(keys.outbox("acme"), "b", JSON.stringify(indexing("b")));
  t.equal(await runtime.queues.sweep(60_000), 0, "not before its time");
  t.equal(await runtime.queues.sweep(0), 1);
  t.equal(await runtime.queues.sweep(0), 0);
  t.ok(await runtime.queues.queue("knowledge").getJob("b"));
  const marks = await Promise.all(
    Array.from({ length: 16 }, (_, shard) => runtime.redis.zcard(keys.pendingOutboxes(shard))),
  );
  t.equal(
    marks.reduce((sum, count) => sum + count),
    0,
  );
});

t.test(
  "jobs of a process that paused longer than its registration lasts are found, and no others are disturbed",
  async (t) => {
    const service = await startService(t);
    const { queues, redis } = service.runtime;
    await service.handle("acme");
    await service.handle("quiet");
    await queues.sweep(-1000);
    // The step of a process that paused: its registration is gone by now.
    await redis.hset(keys.outbox("acme"), "paused", JSON.stringify(indexing("paused")));
    t.equal(await queues.sweep(-1000), 0);
    await queues.registerLeft();
    const shards = Array.from({ length: 16 }, (_, shard) => redis.zrange(keys.pendingOutboxes(shard), 0, "-1"));
    t.same((await Promise.all(shards)).flat(), ["acme"]);
    t.equal(await queues.sweep(-1000), 1);
    t.ok(await queues.queue("knowledge").getJob("paused"));
  },
);

t.test("an outbox that can't be emptied keeps its age, by which operators hear of it", async (t) => {
  const service = await startService(t);
  const { queues, redis, log } = service.runtime;
  await service.handle("acme");
  await redis.hset(keys.outbox("acme"), "new", JSON.stringify({ ...indexing("new"), name: "knowledge.invented" }));
  await queues.register("acme");
  const shards = Array.from({ length: 16 }, (_, shard) => keys.pendingOutboxes(shard));
  for (const shard of shards) await redis.zadd(shard, "XX", Date.now() - 300_000, "acme");
  await queues.sweep();
  await new Queues({ redis, bull: redis, log }).registerLeft();
  t.ok((await stats(service.runtime)).outboxAgeSeconds >= 300);
});

t.test("an outbox in constant use is swept too, and its mark stays", async (t) => {
  const service = await startService(t);
  const { queues, redis } = service.runtime;
  const shards = Array.from({ length: 16 }, (_, shard) => keys.pendingOutboxes(shard));
  await queues.register("acme");
  await redis.hset(keys.outbox("acme"), "left", JSON.stringify(indexing("left")));
  // Other processes register the tag again and again.
  const using = setInterval(() => {
    for (const shard of shards) void redis.zadd(shard, "XX", Date.now(), "acme");
  }, 50);
  t.teardown(() => clearInterval(using));
  await service.startWorkers(["knowledge"]);
  await eventually(async () => (await redis.hlen(keys.outbox("acme"))) === 0);
  t.ok(await queues.queue("knowledge").getJob("left"));
  t.same((await Promise.all(shards.map((shard) => redis.zcard(shard)))).filter(Boolean), [1]);
});

t.test("a job that only a newer deploy knows stays in its outbox, and delays no other", async (t) => {
  const { runtime } = await startService(t);
  const { queues, redis } = runtime;
  const unknown = JSON.stringify({ ...indexing("new"), name: "knowledge.invented" });
  await redis.hset(keys.outbox("acme"), { new: unknown, known: JSON.stringify(indexing("known")) });
  await queues.register("acme");
  // Enough handles for every shard of the sweeper.
  const others = Array.from({ length: 64 }, (_, at) => `other-${at}`);
  for (const tag of others) {
    await redis.hset(keys.outbox(tag), tag, JSON.stringify(indexing(tag)));
    await queues.register(tag);
  }
  await queues.sweep(-1000);
  for (const id of ["known", ...others]) t.ok(await queues.queue("knowledge").getJob(id), id);
  t.same(await redis.hkeys(keys.outbox("acme")), ["new"]);
  t.equal(await queues.sweep(-1000), 0);
  await redis.hset(keys.outbox("acme"), "new", JSON.stringify(indexing("new")));
  t.equal(await queues.sweep(-1000), 1, "the newer deploy enqueues it");
});

t.test("outboxes that can't be emptied keep the sweeper from no other, however many they are", async (t) => {
  const { runtime } = await startService(t);
  const { queues, redis } = runtime;
  const unknown = JSON.stringify({ ...indexing("new"), name: "knowledge.invented" });
  const shards = Array.from({ length: 16 }, (_, shard) => keys.pendingOutboxes(shard));
  for (const shard of shards)
    for (let at = 0; at < 101; at++) {
      await redis.hset(keys.outbox(`${shard}-${at}`), "new", unknown);
      await redis.zadd(shard, at, `${shard}-${at}`);
    }
  await redis.hset(keys.outbox("acme"), "known", JSON.stringify(indexing("known")));
  await queues.register("acme");
  t.equal(await queues.sweep(-1000), 1);
  t.ok(await queues.queue("knowledge").getJob("known"));
  t.equal(await redis.zcard(shards[0] as string), 101, "the others are tried again");
});

t.test("a mark that was set again is not swept away", async (t) => {
  const { runtime } = await startService(t);
  await runtime.queues.register("acme");
  const other = new Queues({ redis: runtime.redis, bull: runtime.redis, log: runtime.log });
  const read = runtime.redis.zrangebyscore.bind(runtime.redis);
  // Another process marks between the sweeper's look and its clearing.
  runtime.redis.zrangebyscore = (async (...args: Parameters<typeof read>) => {
    const marks = await read(...args);
    if (marks.length > 0) await runtime.redis.zadd(args[0] as string, Number(marks[1]) + 5, marks[0] as string);
    return marks;
  }) as typeof read;
  await other.sweep(-10_000);
  runtime.redis.zrangebyscore = read as typeof runtime.redis.zrangebyscore;
  const marks = await Promise.all(
    Array.from({ length: 16 }, (_, shard) => runtime.redis.zcard(keys.pendingOutboxes(shard))),
  );
  t.equal(
    marks.reduce((sum, count) => sum + count),
    1,
  );
});

t.test("a step that changes nothing enqueues nothing", async (t) => {
  const { runtime } = await startService(t);
  await runtime.queues.step("acme", [indexing("c")], async () => "refused");
  await runtime.queues.close();
  t.equal(
    await new Queues({ redis: runtime.redis, bull: runtime.redis, log: runtime.log }).queue("knowledge").getJob("c"),
    undefined,
  );
});

t.test("the same job id is one job, however often it is added", async (t) => {
  const { runtime } = await startService(t);
  for (let times = 0; times < 3; times++) await runtime.queues.later(indexing("d"));
  t.equal(await runtime.queues.queue("knowledge").getWaitingCount(), 1);
});

t.test("jobs of a burst that may run together become one job with one id", async (t) => {
  const { runtime } = await startService(t);
  const event = (n: number) => job("webhooks.dispatch", `dispatch-evt_${n}`, { handle: "acme", eventId: `evt_${n}` });
  const publish = async (numbers: number[]) => {
    for (const one of numbers.map(event)) await runtime.redis.hset(keys.outbox("acme"), one.id, JSON.stringify(one));
    t.equal(await runtime.queues.publish("acme"), numbers.length);
  };
  const first = Array.from({ length: 21 }, (_, n) => n);
  await publish(first);
  await publish(first);
  const waiting = await runtime.queues.queue("webhooks").getWaiting();
  t.equal(waiting.length, 2, "the same burst again is known");
  const named = waiting.flatMap(({ data }) => data.eventIds ?? [data.eventId]);
  t.same(named.sort(), first.map((n) => `evt_${n}`).sort());
  await publish([0, 99]);
  t.equal(await runtime.queues.queue("webhooks").getWaitingCount(), 3, "another burst that begins alike is not");
  t.equal(await runtime.redis.hlen(keys.outbox("acme")), 0);
});

t.test("a failure that can't get better is tried once, another one is tried again", async (t) => {
  const { runtime } = await startService(t);
  const tries = { permanent: 0, passing: 0 };
  const run = async (_runtime: unknown, data: { documentId: string }) => {
    tries[data.documentId as keyof typeof tries] += 1;
    if (data.documentId === "permanent") throw new Fail("document_not_found");
    throw new Error("passing");
  };
  const shared = connect(runtime.env, "blocking");
  const row = { name: "knowledge.index" as const, run: run as never };
  const settings = { backoffStrategy: () => 1 };
  const worker = new Worker("knowledge", (bull) => perform(runtime, row, bull, new AbortController().signal), {
    connection: shared,
    prefix: keys.queuePrefix("knowledge"),
    settings,
  });
  t.teardown(async () => {
    await worker.close();
    shared.disconnect();
  });
  const queue = runtime.queues.queue("knowledge");
  for (const documentId of Object.keys(tries))
    await queue.add(
      "knowledge.index",
      { handle: "acme", documentId },
      { jobId: documentId, attempts: 3, backoff: { type: "own" } },
    );
  await eventually(async () => (await queue.getFailedCount()) === 2);
  t.same(tries, { permanent: 1, passing: 3 });
});

t.test("a queued job that only a newer deploy can read waits a week for it, and then fails", async (t) => {
  const service = await startService(t);
  const queue = service.runtime.queues.queue("knowledge");
  const data = { handle: "acme", documentId: "doc_1" };
  const unreadable: Record<string, [name: string, data: object]> = {
    unknown: ["knowledge.invented", data],
    "with a newer field": ["knowledge.index", { ...data, hurry: true }],
    "of another form": ["knowledge.index", { handle: 5 }],
  };
  const overdue = { delay: 50, timestamp: Date.now() - 8 * 86_400_000 };
  for (const [id, [name, given]] of Object.entries(unreadable)) {
    await queue.add(name, given, { jobId: id, attempts: 1 });
    await queue.add(name, given, { jobId: `${id} since long`, attempts: 9, ...overdue });
  }
  await service.startWorkers(["knowledge"]);
  for (const id of Object.keys(unreadable)) {
    const waiting = await eventually(async () => {
      const one = await queue.getJob(id);
      return one && one.attemptsStarted > 1 && one.delay > 0 && one;
    });
    t.equal(waiting.attemptsMade, 0, `${id}: no attempt is lost`);
    t.ok(waiting.delay <= 60_000, `${id}: a newer worker finds it within a minute`);
    t.ok(await (await queue.getJob(`${id} since long`))?.isFailed());
  }
});

t.test("a job that waits for a newer deploy is logged ever more rarely", async (t) => {
  const service = await startService(t);
  const logged: string[] = [];
  t.intercept(service.runtime.log, "warn", { value: (_fields: object, event: string) => void logged.push(event) });
  const queue = service.runtime.queues.queue("knowledge");
  await queue.add("knowledge.invented", { handle: "acme" }, { jobId: "new" });
  await service.startWorkers(["knowledge"]);
  for (let starts = 1; starts <= 9; starts++) {
    const waiting = await eventually(async () => {
      const one = await queue.getJob("new");
      return one?.attemptsStarted === starts && (await one.isDelayed()) && one;
    });
    await waiting.promote();
  }
  t.equal(logged.filter((event) => event === "queue.job.failed").length, 4, "at the 1st, 2nd, 4th and 8th try");
});

t.test("a job listens to its process only while it runs, and hears that it stops", async (t) => {
  const { runtime } = await startService(t);
  const stopping = new AbortController();
  const heard: unknown[] = [];
  const listeners = () => getEventListeners(stopping.signal, "abort").length;
  const attempt = (run: WorkerRow["run"], group?: () => string) =>
    perform(runtime, { run, ...(group && { group }) }, bull as never, stopping.signal);
  const bull = { id: "a", name: "knowledge.index", queueName: "knowledge", data: indexing("a").data, opts: {} };
  const listening: WorkerRow["run"] = async (_runtime, _data, { signal }) => {
    signal.addEventListener("abort", () => heard.push("too late"));
    t.equal(listeners(), 1);
  };
  await attempt(listening);
  await attempt(listening, () => "group");
  await t.rejects(
    attempt(() => Promise.reject(new Error("failed"))),
    { message: "failed" },
  );
  t.equal(listeners(), 0);
  await attempt(async (_runtime, _data, { signal }) => {
    stopping.abort("stops");
    heard.push(signal.reason);
  });
  t.same(heard, ["stops"]);
});

/** Ms that the retries of a job last at least: jitter shortens a wait by up to 30 %. */
function retriesLast(name: JobName): number {
  const { attempts, backoff } = jobs[name];
  return 0.7 * backoff * (2 ** (attempts - 1) - 1);
}

t.test("a refund is retried for a day", (t) => {
  t.ok(retriesLast("payments.refund") > 24 * 3_600_000);
  t.end();
});

t.test("a mail of the service itself is retried until a mail server is back after a night", (t) => {
  const mails = [
    "leads.notify",
    "leads.digest",
    "scheduling.mail",
    "scheduling.digest",
    "payments.purchase-mail",
    "payments.access-mail",
  ] as const;
  for (const name of mails) t.ok(retriesLast(name) > 12 * 3_600_000, name);
  t.end();
});

t.test("a job runs in the queue that an earlier deploy gave it", async (t) => {
  const { runtime } = await startService(t, { workers: ["scheduling"] });
  const queue = runtime.queues.queue("scheduling");
  const data = { handle: "acme", bookingUid: "b1", kind: "reminder", sequence: 0 };
  await queue.add("scheduling.mail", data, { jobId: "old" });
  await eventually(async () => (await queue.getJob("old"))?.isCompleted());
  t.pass("a reminder of weeks ago");
});

t.test("a job that has ended six workers fails", async (t) => {
  const { runtime, startWorkers } = await startService(t);
  const { redis } = runtime;
  const queue = runtime.queues.queue("knowledge");
  const [shared, prefix] = [connect(runtime.env, "blocking"), keys.queuePrefix("knowledge")];
  const crashed = new Worker("knowledge", null, { connection: shared, prefix });
  t.teardown(async () => {
    await crashed.close();
    shared.disconnect();
  });
  await runtime.queues.later(indexing("poison"));
  const taken = await crashed.getNextJob("token");
  t.equal(taken?.id, "poison");
  await redis.hset(queue.toKey("poison"), "stc", 5);
  await redis.del(`${queue.toKey("poison")}:lock`);
  await startWorkers(["knowledge"]);
  const failed = await eventually(async () => (await queue.getFailed())[0]);
  t.match(failed, { id: "poison", failedReason: /stalled more than allowable limit/ });
});

t.test("a job that calls other people's servers runs again after one stall, and fails after two", async (t) => {
  const { runtime } = await startService(t);
  const ran: number[] = [];
  const after = (stalledCounter: number) => {
    const run = async () => void ran.push(stalledCounter);
    const { name, data } = indexing("a");
    const bull = { id: "a", name, queueName: "knowledge", data, opts: {}, stalledCounter };
    const row: WorkerRow = { run, group: () => "acme" };
    return perform(runtime, row, bull as never, new AbortController().signal);
  };
  await after(0);
  await after(1);
  await t.rejects(after(2), UnrecoverableError);
  t.same(ran, [0, 1]);
});

t.test("a repeated job that stalled before it wrote the next one writes it as it is given up", async (t) => {
  const { runtime } = await startService(t);
  const repeated = [
    ["scheduling", "scheduling.pull", { handle: "acme" }],
    ["email", "email.check", { domain: "acme.example", account: "acct_acme" }],
  ] as const;
  for (const [queueName, name, data] of repeated) {
    const row: WorkerRow = workerRows[name];
    const stalledCounter = row.maxStalls === 0 ? 1 : 2;
    const bull = { id: "a", name, queueName, data, opts: {}, timestamp: Date.now(), stalledCounter };
    await t.rejects(perform(runtime, row, bull as never, new AbortController().signal), UnrecoverableError);
    t.match(await runtime.queues.queue(queueName).getDelayed(), [{ name, data }]);
  }
});

/** The address of a Redis that is so many ms away. */
async function farAway(t: TapTest, { port }: RedisServer, ms: number): Promise<string> {
  const server = createServer((near) => {
    const far = connectTo(port, "127.0.0.1");
    const pass = (from: Socket, to: Socket): Socket =>
      from
        .setNoDelay()
        .on("data", (part) => void setTimeout(() => to.write(part), ms))
        .on("error", () => undefined)
        .on("close", () => to.destroy());
    pass(near, far);
    pass(far, near);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

t.test("a worker that is far from Redis starts the first of many jobs before it has fetched the others", async (t) => {
  const redis = await startRedis({ single: true, own: true });
  t.teardown(() => redis.stop());
  const env = { REDIS_URL: await farAway(t, redis, 5) };
  const service = await startService(t, { redis: { ...redis, env } });
  const queue = service.runtime.queues.queue("webhooks");
  const events = Array.from({ length: 300 }, (_, at) =>
    job("webhooks.dispatch", `${at}`, { handle: "acme", eventId: `${at}` }),
  );
  await queue.addBulk(events.map(({ id, name, data }) => ({ name, data, opts: { jobId: `event-${id}` } })));
  await service.startWorkers(["webhooks"]);
  let most = 0;
  await eventually(async () => {
    const { active = 0, completed } = await queue.getJobCounts("active", "completed");
    most = Math.max(most, active);
    return completed === events.length;
  });
  t.ok(most < 100, `${most} jobs at once`);
});

t.test("many jobs that wait for room in their group are tried again one after the other", async (t) => {
  const groups = new JobGroups();
  for (let n = 0; n < 4; n++) t.ok(groups.enter("acme"));
  t.notOk(groups.enter("acme"));
  t.ok(groups.enter("other"));
  const before = Date.now();
  const times = Array.from({ length: 5000 }, () => groups.retryAt("acme"));
  t.ok((times[0] as number) < before + 2000, "the first of them soon");
  t.ok(times.every((at, n) => n === 0 || at >= (times[n - 1] as number) + 10));
  for (let n = 0; n < 4; n++) groups.leave("acme");
  t.ok(groups.enter("acme"));
  t.ok(groups.retryAt("acme") < Date.now() + 2000, "and all of them soon once the group has been empty");
});

t.test("a job is removed when its retention is over, even if its queue has no other", async (t) => {
  const service = await startService(t);
  const { redis, queues } = service.runtime;
  const queue = queues.queue("knowledge");
  await redis.xadd(queue.toKey("events"), "1-1", "event", "failed", "jobId", "old");
  const ended = { completed: [0, 2], failed: [1, 8 * 24] } as const;
  for (const [status, hours] of Object.entries(ended))
    for (const ago of hours) {
      const id = `${status}-${ago}`;
      const finishedOn = Date.now() - ago * 3_600_000;
      await queue.add("knowledge.index", {}, { jobId: id });
      await redis.lrem(queue.toKey("wait"), 0, id);
      await redis.zadd(queue.toKey(status), finishedOn, id);
      await redis.hset(queue.toKey(id), { finishedOn });
    }
  await service.startWorkers(["knowledge"]);
  const left = () => queue.getJobs(["completed", "failed"]);
  await eventually(async () => (await left()).length === 2);
  t.same((await left()).map(({ id }) => id).sort(), ["completed-0", "failed-1"]);
  await eventually(async () => !(await storedText(redis, queue.toKey("events"))).includes('"old"'));
});
