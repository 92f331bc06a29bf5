/**
 * `npm run soak` runs a whole installation on loopback under an even mixed load for SOAK_MINUTES (20). After a warm-up, a quarter of the
 * time, memory and open handles of every process, connections of Redis, and Redis memory per stored record must be flat. Prints a table;
 * exit status 1 if something grows. Linux only: it reads /proc.
 */
import process from "node:process";
import { Load } from "./load.ts";
import { measure, type Sample } from "./measures.ts";
import { openChaosTown } from "./town.ts";

const minutes = Number(process.env.SOAK_MINUTES ?? 20);
/** Ms between two samples. */
const every = Math.max(2000, minutes * 500);
/** Minutes from which the memory of processes is judged: in a shorter run, caches that are still filling look like a leak. */
const memoryWarmsUp = 8;
/** Minutes from which temporary keys are judged: by then the first ones have expired, since the runs of answers live for ten. */
const passingCounts = 15;
const passesIn = 10;
/** Slower machines get less load: temporary keys are counted per thousand requests of the last ten minutes. */
const passing = "passing keys for 1000 requests";
/** Tolerated growth: a tenth, and an absolute part for running work. `live` is the heap after a garbage collection, in MB. */
const slack: Record<string, number> = { MB: 32, live: 6, handles: 12, connections: 4 };
const mostForARecord = 8192;

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

const town = await openChaosTown();
const load = new Load(town, { pause: 300, churn: true });
try {
  load.start();
  const samples: Sample[] = [];
  for (const end = Date.now() + minutes * 60_000; Date.now() < end; ) {
    await new Promise((resolve) => setTimeout(resolve, every));
    samples.push(await look(samples));
  }
  await load.stop();
  const warm = samples.slice(Math.ceil(samples.length / 4));
  const grown = failingMeasures(warm);
  print(warm, grown);
  const { requests, wrong, givenUp, chats } = load.ledger;
  const unended = chats.filter(({ how }) => how !== "finished").length;
  process.stdout.write(
    `${requests} requests, ${wrong.length} wrong, ${givenUp} given up; ${chats.length} chats, ${unended} not finished\n`,
  );
  for (const one of wrong.slice(0, 10)) process.stdout.write(`  ${one}\n`);
  process.exitCode = grown.size + wrong.length + givenUp === 0 ? 0 : 1;
} finally {
  await town.close();
}
process.exit();

/** One sample, with the requests so far. */
async function look(before: Sample[]): Promise<Sample> {
  const { "passing keys": keys = 0, ...sample } = await measure(town);
  const { requests } = load.ledger;
  const earlier = before.at(-Math.round((passesIn * 60_000) / every))?.requests ?? 0;
  return { ...sample, requests, [passing]: (1000 * keys) / Math.max(1, requests - earlier) };
}

/** Names of the growing figures, each with the reason. */
function failingMeasures(warm: Sample[]): Map<string, string> {
  const grown = new Map<string, string>();
  for (const name of Object.keys(warm[0] ?? {})) {
    const { first, last } = span(warm, name);
    const room = slack[name.split(" ").at(-1) ?? ""];
    const isPassing = name === passing && minutes >= passingCounts;
    const isMemory = /\b(?:MB|live)$/.test(name);
    const isJudged = isMemory ? name !== "Redis MB" && minutes >= memoryWarmsUp : room !== undefined || isPassing;
    const most = isJudged ? (room ?? first / 4) : undefined;
    if (most !== undefined && last - first > Math.max(most, first / 10)) grown.set(name, `more than ${most} more`);
  }
  const bytes = bytesOfARecord(warm);
  if (bytes > mostForARecord) grown.set("Redis MB", `${Math.round(bytes)} bytes for each kept key`);
  return grown;
}

/** Growth of Redis memory per permanent key. */
function bytesOfARecord(warm: Sample[]): number {
  const [memory, kept] = [span(warm, "Redis MB"), span(warm, "kept keys")];
  return ((memory.last - memory.first) * 1_048_576) / Math.max(1, kept.last - kept.first);
}

/** The first and the last third: the minimum for memory, since a heap goes up and down; else the median. */
function span(warm: Sample[], name: string): { first: number; last: number } {
  const third = Math.max(1, Math.floor(warm.length / 3));
  const typical = (list: Sample[]): number => {
    const values = list.map((sample) => sample[name] ?? 0).sort((one, other) => one - other);
    return values[name.endsWith(" MB") ? 0 : Math.floor(values.length / 2)] ?? 0;
  };
  return { first: typical(warm.slice(0, third)), last: typical(warm.slice(-third)) };
}

function print(warm: Sample[], grown: Map<string, string>): void {
  const rows = Object.keys(warm[0] ?? {}).map((name) => {
    const { first, last } = span(warm, name);
    const why = grown.get(name);
    return [name, first.toFixed(0), last.toFixed(0), why === undefined ? "" : `GROWS: ${why}`];
  });
  for (const [name = "", first = "", last = "", word = ""] of [
    ["after warm-up", "first third", "last third", ""],
    ...rows,
  ])
    process.stdout.write(`${name.padEnd(32)} ${first.padStart(12)} ${last.padStart(12)}  ${word}\n`);
  process.stdout.write(`${Math.round(bytesOfARecord(warm))} bytes of Redis for each key that stays\n`);
}
