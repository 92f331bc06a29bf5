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
export const END_GENERATION = 4294967295;

/** Times of a run in ms. Tests pass shorter ones. */
export interface RunTimes {
  /** Without a heartbeat for this long a run counts as lost (docs/reference.md, "Chat stream"). */
  lost: number;
  /** A web process that is silent for this long has stopped reading. */
  lease: number;
  /** A resumable run continues for this long after its last reader left (docs/reference.md, "Chat stream"). */
  grace: number;
  /** A reader that takes nothing for this long while chunks wait is closed. */
  stall: number;
  /** The worker checks at least this often whether its run is still wanted. */
  check: number;
  /** The worker sends its readers a heartbeat at least this often. */
  heartbeat: number;
  /** All data of a run expires after this long: the question from its creation, the answer from its end. */
  keep: number;
}

/** The documented times. */
export const runTimes: RunTimes = {
  lost: 15_000,
  lease: 10_000,
  grace: 10_000,
  stall: 30_000,
  check: 250,
  heartbeat: 4_000,
  keep: 600_000,
};

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

/** Creates a run. Its fields, including the question, are stored nowhere else, until the run ends and for `times.keep` at most. */
export async function createRun(
  redis: Redis,
  runId: string,
  fields: Record<string, string>,
  times = runTimes,
): Promise<void> {
  await transact(redis, (transaction) => {
    transaction.hset(keys.run(runId), fields).pexpire(keys.run(runId), times.keep);
    transaction.xadd(keys.runChunks(runId), "0-1", "c", "").pexpire(keys.runChunks(runId), times.keep);
    transaction.set(keys.runAlive(runId), "0", "PX", times.lost);
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
  const { generation, last, chunks } = readEntry(entry);
  return generation === END_GENERATION ? { end: chunks[0] as RunEnd, last } : "running";
}

/** Cancels a run: its readers end now, its worker within `runTimes.check`. True if it was still running. */
export async function cancelRun(redis: Redis, runId: string): Promise<boolean> {
  return (await endRun(redis, runId, { end: "cancelled", condition: "anyway" })) === "ended";
}

/** How a run shall end, and the script's condition; for `written` the id of the newest entry. */
interface Ending {
  end: RunEnd;
  condition: "anyway" | "unread" | "silent" | "written";
  newest?: string;
}

/** Ends a run if the condition holds, and tells its readers. Returns the script's first reply. */
export async function endRun(
  redis: Redis,
  runId: string,
  { end, condition, newest }: Ending,
): Promise<"ended" | "already" | "refused" | "unknown"> {
  const input = { state: end, keepMs: runTimes.keep, condition, newest };
  const [word, number, ...inboxes] = await scripts.endRun(redis, runKeys(runId), input);
  const record = formatRecord({ generation: END_GENERATION, last: Number(number), chunks: [end] });
  if (word === "ended")
    await Promise.all(inboxes.map((inbox) => sendNow(redis, "xadd", toInbox(String(inbox), [runId, record]))));
  return word as "ended";
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

/** A record in transit: the chunks `last - chunks.length + 1` to `last`; none in a heartbeat, the kind of end in an end. */
export interface RunRecord {
  generation: number;
  last: number;
  chunks: string[];
}

/** A record as one value of an inbox. */
export function formatRecord({ generation, last, chunks }: RunRecord): string {
  return chunks.length === 0 ? `${generation}-${last}` : `${generation}-${last}\n${chunks.join("\n")}`;
}

/** The reverse of `formatRecord`. */
export function parseRecord(value: string): RunRecord {
  const [id = "", ...chunks] = value.split("\n");
  return { chunks, ...readEntryId(id) };
}

/** An entry of a run's stream as a record. A creation or a claim has no chunk. */
export function readEntry([id, [, text = ""]]: [string, string[]]): RunRecord {
  const { generation, last } = readEntryId(id);
  return { generation, last, chunks: last > 0 || generation === END_GENERATION ? text.split("\n") : [] };
}

/** Arguments of the XADD that sends records to a web process: only while its inbox exists, and bounded in length. */
export function toInbox(inbox: string, records: string[]): string[] {
  return [keys.inbox(inbox), "NOMKSTREAM", "MAXLEN", "~", "1000", "*", ...records];
}

/** The two halves of an entry's id: the generation, and the number of chunks up to it. */
export function readEntryId(id: string): { generation: number; last: number } {
  const dash = id.indexOf("-");
  const generation = Number(id.slice(0, dash));
  // Redis has no id 0-0, so the creation is 0-1, although it is no chunk.
  return { generation, last: generation === 0 ? 0 : Number(id.slice(dash + 1)) };
}
