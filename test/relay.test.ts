import { PassThrough } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { Context } from "koa";
import t from "tap";
import { sendStream } from "../api/stream.ts";
import { Relay } from "../core/engines/relay/relay.ts";
import { cancelRun, createRun, type RunTimes, readRun, runEnding, runTimes } from "../core/engines/relay/runs.ts";
import { readEnv } from "../core/platform/env.ts";
import type { RunChunk, RunPublisher, RunSubscription, SubscribeOptions } from "../core/platform/runtime.ts";
import { keys } from "../core/store/keys.ts";
import { connect as connectTo } from "../core/store/redis.ts";
import { keyNames, startRedis } from "../fixtures/redis.ts";

const server = await startRedis();
const opened: (() => unknown)[] = [];
t.teardown(async () => {
  for (const close of opened.reverse()) await close();
  await server.stop();
});

/** The documented times, so that no stall of a busy machine ends a run; a worker only looks more often. */
const usual: RunTimes = { ...runTimes, checkIntervalMs: 20 };
/** For tests that wait for one of these times. */
const quick: RunTimes = { ...usual, lostMs: 1500, leaseMs: 1500, graceMs: 1500 };
const silent = { warn: () => undefined };

function connect(to = server): Redis {
  const redis = connectTo(readEnv(to.env), "blocking");
  redis.on("error", () => undefined);
  opened.push(() => redis.disconnect());
  return redis;
}

interface Process {
  redis: Redis;
  relay: Relay;
  times: RunTimes;
  /** Every connection that it has opened. */
  connections: Redis[];
}

/** The parts of one process: a command connection and a relay. */
function start(given: Partial<RunTimes> = {}, on = server): Process {
  const times = { ...usual, ...given };
  const connections = [connect(on)];
  const another = (): Redis => connections[connections.push(connect(on)) - 1]!;
  const relay = new Relay({ redis: connections[0]!, connect: another, log: silent, times });
  opened.push(() => relay.close().catch(() => undefined));
  return { redis: connections[0]!, relay, times, connections };
}

/** The process is gone without a word, as after SIGKILL. */
function kill({ connections }: Process): void {
  for (const connection of connections) connection.disconnect();
}

async function begin(
  web: Process,
  options: SubscribeOptions = {},
): Promise<{ runId: string; reader: RunSubscription }> {
  const runId = crypto.randomUUID();
  await createRun(web.redis, runId, { question: "How much is it?" }, web.times);
  return { runId, reader: web.relay.follow(runId, options) };
}

async function claim(worker: Process, runId: string, generation = 1): Promise<RunPublisher> {
  const run = await worker.relay.claim(runId, generation);
  if (typeof run === "string") throw new Error(`not claimed: ${run}`);
  return run;
}

function write(run: RunPublisher, from: number, to: number): void {
  for (let number = from; number <= to; number++) run.write(`"${number}"`);
}

/** The state of a run; one without a heartbeat for too long has failed. */
async function runState(redis: Redis, runId: string): Promise<string> {
  const ending = await runEnding(redis, runId);
  if (typeof ending === "object") return ending.end === "lost" ? "failed" : ending.end;
  if (ending === "running" && !(await redis.exists(keys.runAlive(runId)))) return "failed";
  const [claim] = await redis.xrange(keys.runChunks(runId), "1", "+", "COUNT", 1);
  return ending === "running" && claim === undefined ? "waiting" : ending;
}

async function all(reader: AsyncIterable<RunChunk>): Promise<RunChunk[]> {
  const found: RunChunk[] = [];
  for await (const chunk of reader) found.push(chunk);
  return found;
}

async function take(reader: RunSubscription, count: number): Promise<RunChunk[]> {
  const found: RunChunk[] = [];
  while (found.length < count) found.push((await reader.next()).value);
  return found;
}

const expected = (from: number, to: number): RunChunk[] =>
  Array.from({ length: to - from + 1 }, (_, index) => ({ id: from + index, chunk: `"${from + index}"` }));

async function aborted(run: RunPublisher): Promise<Error> {
  while (!run.signal.aborted) await pause(5);
  return run.signal.reason;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(5);
}

async function hasReader(runId: string): Promise<boolean> {
  return (await web.redis.zcount(keys.runReaders(runId), `(${Date.now()}`, "+inf")) > 0;
}

const web = start();
const worker = start();
const quickWeb = start(quick);
const quickWorker = start(quick);

t.test("many answers from two workers arrive whole and in order, over one blocking connection", async (t) => {
  const runs = await Promise.all(Array.from({ length: 80 }, () => begin(web)));
  const workers = [worker, start()];
  const answer = async (runId: string, index: number): Promise<void> => {
    const run = await claim(workers[index % 2]!, runId);
    for (let number = 1; number <= 40; number += 2) {
      write(run, number, number + 1);
      await pause(index % 4);
    }
    await run.end();
  };
  const readings = runs.map(({ reader }) => all(reader));
  await Promise.all(runs.map(({ runId }, index) => answer(runId, index)));
  for (const reading of readings) t.same(await reading, expected(1, 40));
  t.same(
    runs.map(({ reader }) => reader.outcome),
    runs.map(() => "done"),
  );
  t.equal(web.connections.length, 2);
  t.equal(worker.connections.length, 1);
});

t.test("an ended answer is replayed from its start or after a chunk, by any process", async (t) => {
  const { runId, reader } = await begin(web);
  const run = await claim(worker, runId);
  write(run, 1, 5);
  await run.end();
  await all(reader);
  const other = start();
  t.same(await all(other.relay.follow(runId)), expected(1, 5));
  t.same(await all(web.relay.follow(runId, { after: 3 })), expected(4, 5));
  t.same(await all(web.relay.follow(runId, { after: 5 })), []);
  t.same(await all(web.relay.follow(runId, { after: 99 })), []);
  t.equal(await runState(web.redis, runId), "done");
});

t.test("readers that join in the middle read the same as the first", async (t) => {
  const { runId, reader } = await begin(web);
  const run = await claim(worker, runId);
  write(run, 1, 10);
  t.same(await take(reader, 10), expected(1, 10));
  const joined = [web.relay.follow(runId), web.relay.follow(runId, { after: 4 }), start().relay.follow(runId)];
  const readings = joined.map(all);
  for (let number = 11; number <= 30; number++) {
    write(run, number, number);
    await pause(5);
  }
  await run.end();
  t.same(await all(reader), expected(11, 30));
  t.same(await Promise.all(readings), [expected(1, 30), expected(5, 30), expected(1, 30)]);
});

t.test("a slow reader gets everything, and delays nobody", async (t) => {
  const { runId, reader } = await begin(web);
  const slow = web.relay.follow(runId);
  const run = await claim(worker, runId);
  const fast = all(reader);
  t.same(await take(slow, 0), []);
  for (let number = 1; number <= 3000; number += 10) {
    write(run, number, number + 9);
    if (number % 100 === 1) await pause(1);
  }
  t.same(await take(slow, 1), expected(1, 1));
  await run.end();
  t.same(await fast, expected(1, 3000));
  await pause(50);
  t.same(await all(slow), expected(2, 3000));
  t.equal(slow.outcome, "done");
});

t.test("a reader that takes nothing for 30 s is closed, and counts as gone", async (t) => {
  const { setTimeout } = globalThis;
  const soon = (work: () => void, ms?: number) => setTimeout(work, ms === 30_000 ? 1000 : ms);
  t.intercept(globalThis, "setTimeout", { value: soon });
  const { runId, reader } = await begin(web);
  const run = await claim(worker, runId);
  write(run, 1, 3);
  const unread = Object.assign(new PassThrough({ highWaterMark: 1 }), { writeHead: () => undefined });
  await sendStream({ res: unread } as unknown as Context, reader);
  t.ok(unread.destroyed);
  t.match(await aborted(run), { name: "RunCancelled" });
  t.equal(await runState(web.redis, runId), "cancelled");
});

t.test("a cancelled run ends at its worker and at all readers, and takes no more chunks", async (t) => {
  const { runId, reader } = await begin(web);
  const elsewhere = start().relay.follow(runId);
  const run = await claim(worker, runId);
  write(run, 1, 2);
  t.same(await take(reader, 2), expected(1, 2));
  t.equal(await cancelRun(start().redis, runId), true);
  t.match(await aborted(run), { name: "RunCancelled" });
  write(run, 3, 3);
  await run.end();
  t.same(await all(reader), []);
  t.equal(reader.outcome, "cancelled");
  t.same(await all(elsewhere), expected(1, 2));
  t.equal(elsewhere.outcome, "cancelled");
  t.same(await all(web.relay.follow(runId)), expected(1, 2));
  t.equal(await cancelRun(web.redis, runId), false);
  t.equal(await runState(web.redis, runId), "cancelled");
});

t.test("the last chunk of a run is stored with its end, so that nothing ends the run between them", async (t) => {
  for (let round = 0; round < 50; round++) {
    const { runId, reader } = await begin(web);
    const run = await claim(worker, runId);
    write(run, 1, 2);
    const ended = run.end("done", '"3"');
    t.same(await take(reader, 3), expected(1, 3));
    t.equal(await cancelRun(web.redis, runId), false);
    t.same(await reader.next(), { done: true, value: undefined });
    t.equal(reader.outcome, "done");
    await ended;
  }
});

t.test("a worker in the middle of its chunks learns of a cancellation too", async (t) => {
  const { runId } = await begin(web);
  const run = await claim(worker, runId);
  write(run, 1, 1);
  await until(async () => (await web.redis.xlen(keys.runChunks(runId))) === 3);
  await cancelRun(web.redis, runId);
  for (let number = 2; !run.signal.aborted; number++) {
    write(run, number, number);
    await pause(1);
  }
  t.match(run.signal.reason, { name: "RunCancelled" });
  t.same(await all(web.relay.follow(runId)), expected(1, 1));
});

t.test("when the last reader leaves, the run is cancelled", async (t) => {
  const { runId, reader } = await begin(web);
  const second = web.relay.follow(runId);
  const run = await claim(worker, runId);
  write(run, 1, 1);
  t.same(await take(reader, 1), expected(1, 1));
  await reader.return();
  write(run, 2, 2);
  t.same(await take(second, 2), expected(1, 2));
  t.equal(run.signal.aborted, false);
  await second.return();
  t.match(await aborted(run), { name: "RunCancelled" });
  t.equal(await runState(web.redis, runId), "cancelled");
});

t.test("a reader that leaves while it waits ends without an error", async (t) => {
  const { runId, reader } = await begin(web);
  const run = await claim(worker, runId);
  const reading = all(reader);
  write(run, 1, 1);
  await reader.return();
  await reading;
  t.match(await aborted(run), { name: "RunCancelled" });
});

t.test("a resumable run continues while its reader is away for a moment", async (t) => {
  const { runId, reader } = await begin(web, { resumable: true });
  const run = await claim(worker, runId);
  write(run, 1, 2);
  t.same(await take(reader, 2), expected(1, 2));
  await reader.return();
  write(run, 3, 4);
  const back = start().relay.follow(runId, { after: 2, resumable: true });
  t.same(await take(back, 2), expected(3, 4));
  write(run, 5, 5);
  await run.end();
  t.same(await all(back), expected(5, 5));
});

t.test("a resumable run is cancelled if no reader comes back", async (t) => {
  const { runId, reader } = await begin(quickWeb, { resumable: true });
  const run = await claim(quickWorker, runId);
  await reader.return();
  t.equal(await runState(web.redis, runId), "running");
  t.match(await aborted(run), { name: "RunCancelled" });
  t.equal(await runState(web.redis, runId), "cancelled");
});

t.test("the readers of a killed web process count as gone", async (t) => {
  const victim = start(quick);
  const { runId, reader } = await begin(victim);
  const run = await claim(quickWorker, runId);
  write(run, 1, 1);
  t.same(await take(reader, 1), expected(1, 1));
  kill(victim);
  t.match(await aborted(run), { name: "RunCancelled" });
});

t.test("a run without readers is not started", async (t) => {
  const { runId, reader } = await begin(quickWeb);
  t.equal(await runState(web.redis, runId), "waiting");
  await reader.return();
  await until(async () => (await runState(web.redis, runId)) === "cancelled");
  t.equal(await quickWorker.relay.claim(runId, 1), "ended");
  const resumable = await begin(quickWeb, { resumable: true });
  await resumable.reader.return();
  await until(async () => !(await hasReader(resumable.runId)));
  t.equal(await quickWorker.relay.claim(resumable.runId, 1), "unread");
  t.equal(await runState(web.redis, resumable.runId), "cancelled");
});

t.test("a worker that was thought dead can't add to the answer of the next", async (t) => {
  const { runId, reader } = await begin(web);
  const zombie = await claim(worker, runId, 1);
  const run = await claim(start(), runId, 2);
  zombie.write(`"from the grave"`);
  write(run, 1, 2);
  t.match(await aborted(zombie), { name: "RunLost" });
  await t.rejects(zombie.end(), { name: "RunLost" });
  await run.end();
  t.same(await all(reader), expected(1, 2));
  t.same(await all(web.relay.follow(runId)), expected(1, 2));
});

t.test("a run is taken once in each attempt, and never again once chunks are out", async (t) => {
  const { runId, reader } = await begin(web);
  const run = await claim(worker, runId, 2);
  t.equal(await worker.relay.claim(runId, 2), "superseded");
  t.equal(await worker.relay.claim(runId, 1), "superseded");
  write(run, 1, 1);
  t.same(await take(reader, 1), expected(1, 1));
  t.equal(await worker.relay.claim(runId, 3), "sent");
  await t.rejects(reader.next(), { name: "RunLost" });
  t.match(await aborted(run), { name: "RunLost" });
  t.equal(await runState(web.redis, runId), "failed");
  t.equal(await worker.relay.claim(runId, 4), "ended");
});

t.test("an attempt that fails before its first chunk leaves the run to the next", async (t) => {
  const { runId, reader } = await begin(web);
  (await claim(worker, runId, 1)).release();
  const run = await claim(worker, runId, 2);
  write(run, 1, 2);
  await run.end();
  t.same(await all(reader), expected(1, 2));
});

t.test("a dead worker is noticed: the reader gets its chunks, then RunLost", async (t) => {
  const victim = start(quick);
  const { runId, reader } = await begin(quickWeb);
  const run = await claim(victim, runId);
  write(run, 1, 2);
  t.same(await take(reader, 2), expected(1, 2));
  kill(victim);
  await t.rejects(reader.next(), { name: "RunLost" });
  t.same(await reader.next(), { value: undefined, done: true });
  t.equal(await runState(web.redis, runId), "failed");
  await t.rejects(all(quickWeb.relay.follow(runId)), { name: "RunLost" });
  t.match(await aborted(run), { name: "RunLost" });
});

t.test("a silent live worker does not count as dead", async (t) => {
  const { runId, reader } = await begin(quickWeb);
  const run = await claim(quickWorker, runId);
  await pause(2 * quick.lostMs);
  t.equal(await runState(web.redis, runId), "running");
  write(run, 1, 1);
  await run.end();
  t.same(await all(reader), expected(1, 1));
});

t.test("a run that no worker takes is lost, and no worker begins it afterwards", async (t) => {
  const { runId, reader } = await begin(quickWeb);
  await t.rejects(all(reader), { name: "RunLost" });
  t.equal(await runState(web.redis, runId), "failed");
  t.equal(await quickWorker.relay.claim(runId, 1), "ended");
});

t.test("a run that was never there is lost at once", async (t) => {
  const runId = crypto.randomUUID();
  await t.rejects(all(web.relay.follow(runId)), { name: "RunLost" });
  t.equal(await runState(web.redis, runId), "unknown");
  t.equal(await readRun(web.redis, runId), undefined);
  t.equal(await worker.relay.claim(runId, 1), "unknown");
  t.equal(await cancelRun(web.redis, runId), false);
  t.same(await keyNames(web.redis, `*${runId}*`), []);
});

t.test("a reader whose connection breaks misses nothing", async (t) => {
  const unlucky = start();
  const { runId, reader } = await begin(unlucky);
  const run = await claim(worker, runId);
  const reading = all(reader);
  for (let number = 1; number <= 200; number++) {
    write(run, number, number);
    if (number % 20 === 0) unlucky.connections[1]!.disconnect(true);
    await pause(1);
  }
  await run.end();
  t.same(await reading, expected(1, 200));
});

t.test("chunks that are gone are a failure, never a gap", async (t) => {
  const { runId, reader } = await begin(web);
  const run = await claim(worker, runId);
  for (const number of [1, 2, 3]) {
    write(run, number, number);
    await take(reader, 1);
  }
  await run.end();
  await web.redis.xdel(keys.runChunks(runId), "1-2");
  await t.rejects(all(web.relay.follow(runId)), { name: "RunLost" });
  await t.rejects(all(web.relay.follow(runId, { after: 1 })), { name: "RunLost" });
  t.same(await all(web.relay.follow(runId, { after: 2 })), expected(3, 3));
});

t.test("a slow reader of an answer that expires learns so", async (t) => {
  const { runId, reader } = await begin(web);
  const slow = web.relay.follow(runId);
  const run = await claim(worker, runId);
  const fast = all(reader);
  for (let number = 1; number <= 600; number += 100) {
    write(run, number, number + 99);
    await pause(5);
  }
  await run.end();
  t.same(await fast, expected(1, 600));
  await web.redis.del(keys.runChunks(runId));
  await t.rejects(all(slow), { name: "RunLost" });
});

t.test("a reader that joins when its process can't be woken waits a second at most", async (t) => {
  const full = await startRedis({ own: true, single: true });
  const [reading, writing] = [start({}, full), start({}, full)];
  const first = await begin(reading);
  const run = await claim(writing, first.runId);
  write(run, 1, 1);
  t.same(await take(first.reader, 1), expected(1, 1));
  await reading.redis.acl("SETUSER", "default", "-xadd");
  const since = performance.now();
  t.same(await take(reading.relay.follow(first.runId), 1), expected(1, 1));
  t.ok(performance.now() - since < 3000);
  await reading.redis.acl("SETUSER", "default", "+xadd");
  for (const process of [reading, writing]) kill(process);
  await full.stop();
});

t.test("a run whose reply is lost with the connection is created once", async (t) => {
  const runId = crypto.randomUUID();
  // The client sends the transaction again.
  for (let sent = 0; sent < 2; sent++) await createRun(web.redis, runId, { question: "Why?" });
  t.same(await readRun(web.redis, runId), { question: "Why?" });
  t.equal(await runEnding(web.redis, runId), "running");
});

t.test("a process that can't read gives up its readers, although the worker lives", async (t) => {
  const gone = await startRedis({ own: true, single: true });
  await gone.stop();
  const relay = new Relay({ redis: web.redis, connect: () => connect(gone), log: silent, times: quick });
  opened.push(() => relay.close());
  const runId = crypto.randomUUID();
  await createRun(web.redis, runId, { question: "Why?" }, quick);
  const run = await claim(quickWorker, runId);
  await t.rejects(all(relay.follow(runId)), { name: "RunLost" });
  t.match(await aborted(run), { name: "RunCancelled" });
});

t.test("a reader learns of a lost Redis when the worker gives up, not later", async (t) => {
  const gone = await startRedis({ own: true, single: true });
  const commands = connectTo(readEnv(gone.env));
  commands.on("error", () => undefined);
  const times = { ...quick, lostMs: 6000 };
  const relay = new Relay({ redis: commands, connect: () => connect(gone), log: silent, times });
  opened.push(() => commands.disconnect());
  const runId = crypto.randomUUID();
  await createRun(commands, runId, { question: "Why?" }, times);
  const reading = all(relay.follow(runId));
  await until(async () => (await commands.zcard(keys.runReaders(runId))) === 1);
  const since = performance.now();
  await gone.stop();
  await t.rejects(reading, { name: "RunLost" });
  const took = performance.now() - since;
  t.ok(took > 0.8 * times.lostMs && took < 1.7 * times.lostMs, `after ${took} ms`);
  await relay.close();
});

t.test("a restart of Redis costs no chunk", async (t) => {
  const durable = await startRedis({ appendonly: true, single: true });
  const patient = { lostMs: 60_000, leaseMs: 60_000 };
  const processes = [start(patient, durable), start(patient, durable)];
  const [reading, writing] = processes as [Process, Process];
  const { runId, reader } = await begin(reading);
  const run = await claim(writing, runId);
  const found = all(reader);
  write(run, 1, 10);
  await pause(20);
  write(run, 11, 20);
  await durable.kill();
  write(run, 21, 30);
  await pause(100);
  write(run, 31, 40);
  const again = await startRedis({ appendonly: true, port: durable.port, dir: durable.dir });
  write(run, 41, 50);
  await run.end();
  t.same(await found, expected(1, 50));
  t.same(await all(reading.relay.follow(runId)), expected(1, 50));
  for (const process of processes) kill(process);
  await again.stop();
  await durable.stop();
});

t.test("a process that ends tells its readers, and resumable readers continue elsewhere", async (t) => {
  const ending = start();
  const { runId, reader } = await begin(ending, { resumable: true });
  const run = await claim(worker, runId);
  write(run, 1, 2);
  t.same(await take(reader, 2), expected(1, 2));
  await ending.relay.close();
  await t.rejects(reader.next(), { name: "RunLost" });
  t.throws(() => ending.relay.follow(runId), { name: "RunLost" });
  const elsewhere = web.relay.follow(runId, { after: 2 });
  write(run, 3, 3);
  await run.end();
  t.same(await all(elsewhere), expected(3, 3));
});

t.test("a chunk is one line", async (t) => {
  const { runId } = await begin(web);
  const run = await claim(worker, runId);
  t.throws(() => run.write(""), TypeError);
  t.throws(() => run.write("two\nlines"), TypeError);
  await t.rejects(run.end("done", "a\nb"), TypeError);
  await run.end("failed");
  t.equal(await runState(web.redis, runId), "failed");
});

t.test("everything expires, and the question expires with its run", async (t) => {
  const names = await keyNames(web.redis, "*");
  const lifetimes = await Promise.all(names.map((name) => web.redis.pttl(name)));
  t.ok(names.length > 0);
  t.same(
    names.filter((_, index) => lifetimes[index] === -1),
    [],
  );
  t.ok(lifetimes.every((lifetime) => lifetime <= runTimes.keepMs));
  const { runId } = await begin(web);
  t.same(await readRun(web.redis, runId), { question: "How much is it?" });
  const run = await claim(worker, runId);
  const dumps = await Promise.all((await keyNames(web.redis, "run-*")).map((name) => web.redis.dumpBuffer(name)));
  t.equal(dumps.filter((dump) => dump?.includes("How much is it?")).length, 0);
  await run.end();
  t.equal(await readRun(web.redis, runId), undefined, "it ends with its answer");
});

t.test("chunks are stored in the stream of their run alone", async (t) => {
  const { runId, reader } = await begin(web);
  const run = await claim(worker, runId);
  run.write(`"We open at nine."`);
  t.equal((await take(reader, 1))[0]?.chunk, `"We open at nine."`);
  const names = await keyNames(web.redis, "*");
  const dumps = await Promise.all(names.map((name) => web.redis.dumpBuffer(name)));
  t.same(
    names.filter((_, at) => dumps[at]?.includes("We open at nine.")),
    [keys.runChunks(runId)],
  );
  await run.end();
});
