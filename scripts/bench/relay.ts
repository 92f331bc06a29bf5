import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { Redis } from "ioredis";
import { createRun } from "../../core/engines/relay/runs.ts";
import { keys } from "../../core/store/keys.ts";
import { startRedis } from "../../fixtures/redis.ts";
import type { BenchRow } from "./figures.ts";
import { endProcess, messenger } from "./programs.ts";
import type { Delays, RelayLoad } from "./relay-process.ts";

/** Seconds of streaming per case; the first one is not counted. */
const seconds = 3;
/** Runs of each case; the best one counts, since other work on the machine only slows runs down. */
const rounds = Number(process.env.BENCH_ROUNDS ?? 2);

/**
 * Measures the relay with model, worker, web, client and Redis as separate processes on one host. "Added" is the difference to the client
 * that reads the model directly, in the same run.
 */
export async function bench(): Promise<BenchRow[]> {
  const redis = await startRedis();
  const children: ChildProcess[] = [];
  try {
    const stage = await openRelayStage(redis.url, children);
    await warmUp(stage);
    return [...(await loads(stage)), ...(await firstChunk(stage)), ...(await costs(redis.url))];
  } finally {
    await Promise.all(children.map((child) => endProcess(child)));
    await redis.stop();
  }
}

/** The processes of a measurement and their ports. */
interface RelayStage {
  client: ChildProcess;
  model: number;
  web: number;
}

/** Starts model, web, worker and client and adds them to `children`. */
async function openRelayStage(redisUrl: string, children: ChildProcess[]): Promise<RelayStage> {
  const start = (role: string, modelPort = 0): Promise<[ChildProcess, number]> => {
    const settings = { BENCH_REDIS: redisUrl, BENCH_MODEL: String(modelPort) };
    return messenger<number>(children, "relay-process.ts", settings, [role]);
  };
  const [, model] = await start("model");
  const [[, web], [client]] = await Promise.all([start("web", model), start("client"), start("worker", model)]);
  return { client, model, web };
}

/** Warms the processes up, so that their first second is not measured. */
async function warmUp({ client, model, web }: RelayStage): Promise<void> {
  for (const [path, port] of [
    ["/", model],
    ["/relay", web],
    ["/package", web],
  ] as const) {
    await measureRelay(client, { path, port, streams: 100, rate: 50, chunks: 60 });
  }
}

async function loads(stage: RelayStage): Promise<BenchRow[]> {
  const busy = { streams: 200, rate: 50, chunks: 50 * seconds };
  const wide = { streams: 500, rate: 10, chunks: 10 * seconds };
  return [...(await load(stage, busy, { p50: 2, p99: 25 })), ...(await load(stage, wide, { p99: 50 }))];
}

async function load(
  stage: RelayStage,
  size: Omit<RelayLoad, "path" | "port">,
  bars: { p50?: number; p99: number },
): Promise<BenchRow[]> {
  const [direct, relay, other] = await best(stage, size, ["/", "/relay", "/package"]);
  const what = `relay ${size.streams} x ${size.rate}/s`;
  const row = (quantile: "p50" | "p99"): BenchRow => ({
    name: `${what}, added ${quantile}`,
    value: relay[quantile] - direct[quantile],
    unit: "ms",
    ...(bars[quantile] === undefined ? {} : { bar: `<= ${bars[quantile]}` }),
    baseline: `direct ${direct[quantile].toFixed(2)}, relay ${relay[quantile].toFixed(2)}, resumable-stream ${other[quantile].toFixed(2)}`,
  });
  return [row("p50"), row("p99")];
}

async function firstChunk(stage: RelayStage): Promise<BenchRow[]> {
  const size = { streams: 60, rate: 100, chunks: 3, idle: true };
  const [direct, relay] = await best(stage, size, ["/", "/relay"]);
  const value = relay.firstP50 - direct.firstP50;
  const baseline = `direct ${direct.firstP50.toFixed(2)}, relay with its BullMQ job ${relay.firstP50.toFixed(2)}`;
  return [{ name: "first chunk when idle, added p50", value, unit: "ms", bar: "<= 15", baseline }];
}

/** Runs a load on each path in turn, several times, and returns the best delays of each. */
async function best<P extends string[]>(
  stage: RelayStage,
  size: Omit<RelayLoad, "path" | "port">,
  paths: readonly [...P],
): Promise<{ [K in keyof P]: Delays }> {
  const found = paths.map((): Delays => ({ p50: Infinity, p99: Infinity, firstP50: Infinity, count: 0 }));
  for (let round = 0; round < rounds; round++) {
    for (const [index, path] of paths.entries()) {
      const delays = await measureRelay(stage.client, { ...size, path, port: path === "/" ? stage.model : stage.web });
      found[index] = better(found[index]!, delays);
    }
  }
  return found as { [K in keyof P]: Delays };
}

function better(left: Delays, right: Delays): Delays {
  const least = (name: keyof Delays): number => Math.min(left[name] || Infinity, right[name] || Infinity);
  return { p50: least("p50"), p99: least("p99"), firstP50: least("firstP50"), count: left.count + right.count };
}

/** Delays of one load, from the model writing a chunk to the client reading it, in ms. */
async function measureRelay(client: ChildProcess, load: RelayLoad): Promise<Delays> {
  client.send(load);
  const [delays] = (await once(client, "message")) as [Delays];
  return delays;
}

/** Idle connections equal those at any load, since none belongs to a stream. */
async function costs(redisUrl: string): Promise<BenchRow[]> {
  const redis = new Redis(redisUrl);
  const names = [...String(await redis.client("LIST")).matchAll(/ name=(\S+)/g)].map(([, name]) => name!);
  const count = (process: string): number => names.filter((name) => ours(name, process)).length;
  const memory = await bytesOfAnswer(redis);
  redis.disconnect();
  return [
    { name: "Redis connections, web", value: count("web"), unit: "connections", bar: "<= 4" },
    { name: "Redis connections, worker with one queue", value: count("worker"), unit: "connections", bar: "<= 4" },
    {
      name: "Redis memory of an answer of 100 chunks",
      value: memory,
      unit: "bytes",
      baseline: "14400 where an entry has three fields",
    },
  ];
}

/** The worker's second connection is BullMQ's, which names it after the queue. */
function ours(name: string, process: string): boolean {
  return name === process || (process === "worker" && name.startsWith("queue:"));
}

async function bytesOfAnswer(redis: Redis): Promise<number> {
  const chunk = JSON.stringify({ type: "text-delta", id: "t", delta: "words " });
  await createRun(redis, "size", { question: "How much is it, and when could you begin?" });
  for (let number = 1; number <= 100; number++) await redis.xadd(keys.runChunks("size"), `1-${number}`, "c", chunk);
  const sizes = [keys.run("size"), keys.runChunks("size"), keys.runAlive("size")].map((key) =>
    redis.memory("USAGE", key),
  );
  return (await Promise.all(sizes)).reduce<number>((sum, size) => sum + (size ?? 0), 0);
}
