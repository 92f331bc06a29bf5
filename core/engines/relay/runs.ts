import { Command, type Redis } from "ioredis";
import type { RunEnd } from "../../platform/runtime.ts";
import { keys } from "../../store/keys.ts";
import { transact } from "../../store/redis.ts";
import { scripts } from "../../store/scripts.ts";

/**
 * A run is one answer in the making. Its truth is a stream: first an entry `0-1` at its creation, then `g-0` when a worker claims it as
 * generation g, then chunks, several per entry, with the id `g-<number of the entry's last chunk>`, and finally the end. Redis rejects ids
 * below the newest one. So a later generation excludes an earlier one, the end excludes all, and nothing is stored twice when a connection
 * breaks and commands are resent.
 */
const END_GENERATION = 4294967295;

/** The documented times of a run. Tests pass shorter ones. */
export const runTimes = {
  /** Without a heartbeat for this long a run counts as lost (docs/reference.md, "Chat stream"). */
  lostMs: 15_000,
  /** A web process that is silent for this long has stopped reading. */
  leaseMs: 10_000,
  /** A resumable run continues for this long after its last reader left (docs/reference.md, "Chat stream"). */
  graceMs: 10_000,
  /** The worker sends a heartbeat this often and learns whether its run is still wanted. */
  checkIntervalMs: 250,
  /** All data of a run expires after this long: the question from its creation, the answer from its end. */
  keepMs: 600_000,
};
export type RunTimes = typeof runTimes;

/** What writers and readers of a process share. `report` receives failures that are being repaired. */
export interface RelayTools {
  redis: Redis;
  times: RunTimes;
  report: (error: unknown) => void;
}

/** No worker claimed the run, its worker died, or its chunks are gone. Nothing more will come. */
export class RunLost extends Error {
  override readonly name = "RunLost";
}

/** The worker's reason to stop: nobody reads any more, or the run was cancelled. */
export class RunCancelled extends Error {
  override readonly name = "RunCancelled";
}

/** True for the error of an entry whose id its stream has, or a newer one. */
export function isKnownEntry(error: unknown): boolean {
  return error instanceof Error && error.message.includes("equal or smaller");
}

/**
 * Creates a run; repeatable. Its fields, including the question, are stored nowhere else, until the run ends and for `times.keepMs` at
 * most.
 */
export async function createRun(
  redis: Redis,
  runId: string,
  fields: Record<string, string>,
  times = runTimes,
): Promise<void> {
  await transact(redis, (transaction) => {
    transaction.hset(keys.run(runId), fields).pexpire(keys.run(runId), times.keepMs);
    transaction.xadd(keys.runChunks(runId), "0-1", "c", "").pexpire(keys.runChunks(runId), times.keepMs);
    transaction.set(keys.runAlive(runId), "0", "PX", times.lostMs);
  }).catch((error: unknown) => {
    if (!isKnownEntry(error)) throw error;
  });
}

/** The fields of a run; undefined if it has ended. */
export async function readRun(redis: Redis, runId: string): Promise<Record<string, string> | undefined> {
  const fields = await redis.hgetall(keys.run(runId));
  return Object.keys(fields).length > 0 ? fields : undefined;
}

/** How a run ended and the number of its last chunk; or that it runs, or that it never existed or has expired. */
export async function runEnding(
  redis: Redis,
  runId: string,
): Promise<{ end: RunEnd; last: number } | "running" | "unknown"> {
  const [entry] = await redis.xrevrange(keys.runChunks(runId), "+", "-", "COUNT", 1);
  if (entry === undefined) return "unknown";
  const { end, last } = readEntry(entry);
  return end === undefined ? "running" : { end, last };
}

/** Cancels a run: its readers end now, its worker within two of `runTimes.checkIntervalMs`. True if it was still running. */
export async function cancelRun(redis: Redis, runId: string): Promise<boolean> {
  return (await endRun(redis, runId, { state: "cancelled", condition: "anyway" })) === "ended";
}

/** Ends a run if the condition holds; `already` if it has ended. */
export function endRun(
  redis: Redis,
  runId: string,
  ending: Omit<Parameters<typeof scripts.endRun>[2], "keepMs">,
): ReturnType<typeof scripts.endRun> {
  return scripts.endRun(redis, runKeys(runId), { keepMs: runTimes.keepMs, ...ending });
}

/** The keys of a run: its stream, its readers, its worker's heartbeat and its fields. */
export function runKeys(runId: string): { chunks: string; readers: string; alive: string; fields: string } {
  return {
    chunks: keys.runChunks(runId),
    readers: keys.runReaders(runId),
    alive: keys.runAlive(runId),
    fields: keys.run(runId),
  };
}

/**
 * Sends a command at once. The connection's auto-pipelining waits for the next tick and for the replies to the previous batch, which would
 * delay every chunk.
 */
export function sendNow(redis: Redis, name: string, values: (string | number)[]): Promise<unknown> {
  return redis.sendCommand(new Command(name, values, { replyEncoding: "utf8" })) as Promise<unknown>;
}

/** An entry of a run's stream, as Redis returns it. */
export type StreamEntry = [id: string, fields: string[]];

/**
 * Parses an entry of a run's stream: the chunks `last - chunks.length + 1` to `last`, or none and perhaps the end. A creation or a claim
 * has no chunk.
 */
export function readEntry([id, [, text = ""]]: StreamEntry): { last: number; chunks: string[]; end?: RunEnd } {
  const [generation = 0, number = 0] = id.split("-").map(Number);
  if (generation === END_GENERATION) return { last: number, chunks: [], end: text as RunEnd };
  // Redis has no id 0-0, so the creation is 0-1, although it is no chunk.
  const last = generation === 0 ? 0 : number;
  return { last, chunks: last === 0 ? [] : text.split("\n") };
}
