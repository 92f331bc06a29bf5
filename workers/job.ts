import { type Job as BullJob, UnrecoverableError } from "bullmq";
import { type Redis, ReplyError } from "ioredis";
import { checkData } from "./data.ts";
import { Fail } from "../core/platform/errors.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { keys } from "../core/store/keys.ts";
import { isRedisAway } from "../core/store/redis.ts";
import type { JobData, JobName, QueueName } from "../schemas/jobs.ts";

/** Seconds after which the holder of a job is forgotten. */
const HOLDER_LASTS = 86_400;

/** One run of a job, for functions that care which one it is. */
export interface Attempt {
  /** 1 for the first; counts runs that ended with their process too. */
  number: number;
  /** True when a failure now is the final one. */
  last: boolean;
  /** True if an earlier run hangs, and its process with it. */
  hung: boolean;
  /** Aborted when the process stops or gives the job back. */
  signal: AbortSignal;
}

/** One row of a worker: the job's name and the core function that does it. */
export interface WorkerRow {
  name: JobName;
  run: (runtime: Runtime, data: never, attempt: Attempt) => Promise<unknown>;
  /** The lane of a job that waits for other people's servers. Only few jobs of a lane run at a time. */
  lane?: (data: never) => string;
}

/** Work that goes on for as long as the process serves a queue; it ends soon after the signal. */
export interface WorkerLoop {
  queue: QueueName;
  run: (runtime: Runtime, signal: AbortSignal) => Promise<void>;
}

/** A row, its function typed by the job's data. */
export function job<N extends JobName>(
  name: N,
  run: (runtime: Runtime, data: JobData<N>, attempt: Attempt) => Promise<unknown>,
  lane?: (data: JobData<N>) => string,
): WorkerRow {
  return { name, run: run as WorkerRow["run"], ...(lane ? { lane: lane as NonNullable<WorkerRow["lane"]> } : {}) };
}

/** Runs a row for a job of the queue: data is validated again, and a failure that cannot get better is not retried. */
export async function perform(runtime: Runtime, row: WorkerRow, bull: BullJob, signal: AbortSignal): Promise<void> {
  try {
    checkData(row.name, bull.data);
    const attempt = { ...attemptOf(bull, signal), hung: false };
    if (row.lane) await performOutside(runtime, row, { bull, attempt });
    else await row.run(runtime, bull.data as never, attempt);
  } catch (error) {
    if (error instanceof Fail && error.permanent) throw new UnrecoverableError(error.message);
    throw error;
  }
}

function attemptOf(bull: BullJob, signal: AbortSignal): Omit<Attempt, "hung"> {
  return { number: bull.attemptsStarted, last: bull.attemptsMade + 1 >= (bull.opts.attempts ?? 1), signal };
}

/**
 * Runs a job that waits for other people's servers. A running process holds it by a key, so that the next one can tell a crash from a
 * hang. When the process stops, the job is left to another one.
 */
async function performOutside(
  runtime: Runtime,
  row: WorkerRow,
  { bull, attempt }: { bull: BullJob; attempt: Attempt },
): Promise<void> {
  const { redis } = runtime;
  const holder = keys.jobHolder(bull.queueName, bull.id as string);
  const hung = bull.stalledCounter > 0 && (await isConnected(redis, await redis.get(holder)));
  await redis.set(holder, String((await askAboutClients(redis, "ID")) ?? ""), "EX", HOLDER_LASTS);
  try {
    await unlessStopped(row.run(runtime, bull.data as never, { ...attempt, hung }), attempt.signal);
  } finally {
    await redis.del(holder);
  }
}

/** True if a process is connected to Redis, or nobody can tell. A job of it that stalled has hung then: a crash disconnects. */
async function isConnected(redis: Redis, clientId: string | null): Promise<boolean> {
  return !clientId || (await askAboutClients(redis, "LIST", "ID", clientId)) !== "";
}

/** The reply to a CLIENT command; undefined where Redis refuses it, and on a cluster, whose nodes each know their own clients. */
async function askAboutClients(redis: Redis, ...words: string[]): Promise<unknown> {
  if (redis.isCluster) return undefined;
  try {
    return await redis.call("CLIENT", ...words);
  } catch (error) {
    if (error instanceof ReplyError && !isRedisAway(error)) return undefined;
    throw error;
  }
}

/** Waits for a run, but not when the process stops. */
async function unlessStopped(running: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const done = new AbortController();
  const stopped = new Promise<never>((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true, signal: done.signal });
  });
  await Promise.race([running, stopped]).finally(() => done.abort());
}
