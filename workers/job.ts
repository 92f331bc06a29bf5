import { setTimeout } from "node:timers/promises";
import { Ajv2020 } from "ajv/dist/2020.js";
import { type Job as BullJob, UnrecoverableError } from "bullmq";
import type { Redis } from "ioredis";
import { Fail } from "../core/platform/errors.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { withSignal } from "../core/platform/signals.ts";
import { keys } from "../core/store/keys.ts";
import { mastersOf } from "../core/store/redis.ts";
import { type JobData, type JobName, jobs } from "../schemas/jobs.ts";

/** Lifetime of a job's holder key, in seconds. */
const HOLDER_TTL_SECONDS = 86_400;

/** One attempt of a job, for functions that need to know which. */
export interface Attempt {
  /** 1 for the first; attempts that crashed count too. */
  number: number;
  /** True if a failure now is final. */
  last: boolean;
  /** True if an earlier attempt still hangs in a live process. */
  hung: boolean;
  /** Aborted when the process stops or gives the job back. */
  signal: AbortSignal;
}

/** One row of a worker: a job's name and its core function. */
export interface WorkerRow {
  name: JobName;
  run: (runtime: Runtime, data: never, attempt: Attempt) => Promise<unknown>;
  /** The lane of a job that calls other people's servers. A process runs only a few jobs of one lane at a time. */
  lane?: ((data: never) => string) | undefined;
}

/** A row whose function is typed by the job's data. */
export function jobRow<N extends JobName>(
  name: N,
  run: (runtime: Runtime, data: JobData<N>, attempt: Attempt) => Promise<unknown>,
  lane?: (data: JobData<N>) => string,
): WorkerRow {
  return { name, run: run as WorkerRow["run"], lane: lane as WorkerRow["lane"] };
}

/** How a task is repeated: the pause in ms after each time, the signal that ends it, and the log event of a failure. */
interface Repetition {
  ms: number;
  signal: AbortSignal;
  failure: "worker.task_failed" | "email.identity.check_failed" | "campaign.promotion_failed";
}

/** Repeats a task until the signal; a failure is logged. */
export async function repeat(
  runtime: Runtime,
  task: (runtime: Runtime) => Promise<unknown>,
  { ms, signal, failure }: Repetition,
): Promise<void> {
  while (!signal.aborted) {
    await task(runtime).catch((error: Error) => runtime.log.warn({ error: error.message }, failure));
    await setTimeout(ms, undefined, { signal }).catch(() => undefined);
  }
}

/**
 * Runs a row for a queued job: validates the data again, and does not retry a permanent failure. The attempt's signal is its own, so that
 * nothing which listens to it outlives the job.
 */
export async function perform(runtime: Runtime, row: WorkerRow, bull: BullJob, stopping: AbortSignal): Promise<void> {
  try {
    checkData(row.name, bull.data);
    await withSignal([stopping], async (signal) => {
      const attempt = attemptOf(bull, signal);
      if (row.lane) await performOutside(runtime, row, { bull, attempt });
      else await row.run(runtime, bull.data as never, attempt);
    });
  } catch (error) {
    if (error instanceof Fail && error.permanent) throw new UnrecoverableError(error.message);
    throw error;
  }
}

const ajv = new Ajv2020();

/** Checks a job's data against its row; jobs outlive deploys. */
function checkData(name: JobName, data: unknown): void {
  // Compiled at its first use.
  const check = ajv.compile(jobs[name].data);
  if (!check(data)) throw new Fail("invalid_request", { detail: `Data of ${name}: ${ajv.errorsText(check.errors)}` });
}

function attemptOf(bull: BullJob, signal: AbortSignal): Attempt {
  const last = bull.attemptsMade + 1 >= (bull.opts.attempts ?? 1);
  return { number: bull.attemptsStarted, last, hung: false, signal };
}

/**
 * Runs a job that calls other people's servers. A key names the process that runs it, so that the next attempt can tell a crash from a
 * hang. When the process stops, another process takes the job.
 */
async function performOutside(
  runtime: Runtime,
  row: WorkerRow,
  { bull, attempt }: { bull: BullJob; attempt: Attempt },
): Promise<void> {
  const { redis } = runtime;
  const holder = keys.jobHolder(bull.queueName, bull.id as string);
  const hung = bull.stalledCounter > 0 && (await isConnected(redis, await redis.get(holder)));
  await redis.set(holder, await clientIds(redis), "EX", HOLDER_TTL_SECONDS);
  try {
    await unlessStopped(row.run(runtime, bull.data as never, { ...attempt, hung }), attempt.signal);
  } finally {
    await redis.del(holder);
  }
}

/**
 * The ids of this process's connections, `server=id`, separated by spaces: each node of a cluster counts its own. Without those of a server
 * that refuses to tell or is away.
 */
async function clientIds(redis: Redis): Promise<string> {
  const ids = await Promise.all(
    mastersOf(redis).map(async (server) => [nameOf(redis, server), await askAboutClients(server, "ID")]),
  );
  return ids.flatMap(([name, id]) => (id === undefined ? [] : `${name}=${id}`)).join(" ");
}

/**
 * True if a process with these connections is connected to Redis, or if that is unknown. A stalled job of a connected process hangs: a
 * crash would have disconnected it. Without a holder the attempt had not begun, or it had ended.
 */
async function isConnected(redis: Redis, clients: string | null): Promise<boolean> {
  if (clients === null) return false;
  const idOf = new Map(clients.split(" ").map((client) => client.split("=") as [string, string]));
  const asked = mastersOf(redis).flatMap((server) => {
    const id = idOf.get(nameOf(redis, server));
    return id === undefined ? [] : askAboutClients(server, "LIST", "ID", id);
  });
  const found = await Promise.all(asked);
  return found.length === 0 || found.some((lines) => lines !== "");
}

/** The reply to a CLIENT command; undefined if the server refuses it or is away. */
function askAboutClients(server: Redis, ...words: string[]): Promise<unknown> {
  return server.call("CLIENT", ...words).catch(() => undefined);
}

/** The address of a node; another word for a single server, whose address may change. */
function nameOf({ isCluster }: Redis, { options: { host, port } }: Redis): string {
  return isCluster ? `${host}:${port}` : "redis";
}

/** Waits for an attempt until the process stops. */
async function unlessStopped(running: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const stopped = new Promise<never>((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
  await Promise.race([running, stopped]);
}
