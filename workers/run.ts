import { setTimeout as sleep } from "node:timers/promises";
import { type Job as BullJob, DelayedError, type JobsOptions, Worker } from "bullmq";
import { heartbeat } from "../core/operations/face.ts";
import { keys } from "../core/store/keys.ts";
import { connect, isRedisAway } from "../core/store/redis.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { type JobName, jobs, type QueueName, queueNames } from "../schemas/jobs.ts";
import { perform, type WorkerRow } from "./job.ts";
import { Lanes } from "./lanes.ts";
import { workerLoops, workerRows } from "./rows.ts";

/** Ms between two passes of the outbox sweeper and between two signs of life. */
const SWEEP_INTERVAL_MS = 1000;
const HEARTBEAT_INTERVAL_MS = 10_000;

/** Ms for which a worker asks for no job after Redis has refused. */
const restMs = 1000;

/** For how long, in seconds, and how many of a queue's ended jobs stay: by its id a finished one is known when it is added again. */
const jobRetention = { removeOnComplete: { age: 3600, count: 1000 }, removeOnFail: { age: 7 * 86_400, count: 5000 } };

/** Ms for which a job belongs to a worker that says nothing, and between two looks for such jobs: what a crash left runs again after them. */
const held = { lockDuration: 15_000, stalledInterval: 5000, maxStalledCount: 5 };

/** Ms after which a job whose lane is full is looked at again. */
const LANE_RETRY_MS = 1000;

/** Workers of a process: stop them by `close`, which lets running jobs finish or gives them back. */
export interface Workers {
  /** `drainMs`: ms in which answers that are being made may end by themselves; all other jobs are given back at once. */
  close(drainMs?: number): Promise<void>;
}

/**
 * Jobs that one process runs at a time, where it isn't the usual number: endpoints, name servers and calendar servers take a place for
 * as long as they are slow, and a slow one must not hold up the others (`Lanes`); a burst of rules waits for Redis more than it works.
 */
const concurrencyOf: Partial<Record<QueueName, number>> = { webhooks: 500, scheduling: 256, email: 64, campaigns: 32 };
const usuallyAtOnce = 8;

function concurrency(runtime: Runtime, queue: QueueName): number {
  return queue === "generation" ? runtime.env.GENERATION_CONCURRENCY : (concurrencyOf[queue] ?? usuallyAtOnce);
}

/** Starts the workers of these queues, their signs of life and the outbox sweeper. */
export async function startWorkers(runtime: Runtime, wanted: readonly string[] = []): Promise<Workers> {
  const served = queueNames.filter((queue) => wanted.length === 0 || wanted.includes(queue));
  const shared = connect(runtime.env, "blocking", { forJobs: true });
  shared.on("error", (error: Error) => runtime.log.warn({ error: error.message }, "redis.error"));
  const [stopping, interrupting] = [new AbortController(), new AbortController()];
  // An answer that a visitor reads can't be given back once it has begun, and calls to other people's servers may end in time; the
  // others go on elsewhere as if nothing had been.
  const signalOf = ({ name, lane }: WorkerRow) =>
    (jobs[name].queue === "generation" || lane ? interrupting : stopping).signal;
  const workers = served.map((queue) => startWorker(runtime, queue, { shared, signalOf }));
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  await heartbeat(runtime, served);
  const loops = workerLoops.filter(({ queue }) => served.includes(queue));
  const { signal } = stopping;
  const running = [
    ...loops.map(({ run }) => run(runtime, signal)),
    every(runtime, { ms: HEARTBEAT_INTERVAL_MS, signal }, () => heartbeat(runtime, served)),
    every(runtime, { ms: SWEEP_INTERVAL_MS, signal }, () => runtime.queues.sweep()),
  ];
  return {
    async close(drainMs = 0) {
      const reason = new Error("The process stops.");
      stopping.abort(reason);
      const ended = Promise.allSettled([...running, ...workers.map((worker) => worker.close())]);
      if (drainMs > 0) await Promise.race([ended, sleep(drainMs, undefined, { ref: false })]);
      interrupting.abort(reason);
      await ended;
      shared.disconnect();
    },
  };
}

function startWorker(
  runtime: Runtime,
  queue: QueueName,
  { shared, signalOf }: { shared: ReturnType<typeof connect>; signalOf: (row: WorkerRow) => AbortSignal },
): Worker {
  const lanes = new Lanes();
  const rows = new Map(
    workerRows.filter(({ name }) => jobs[name].queue === queue).map((row) => [row.name as string, row]),
  );
  const run = async (bull: BullJob, token?: string): Promise<void> => {
    const row = rows.get(bull.name);
    Object.assign(bull.opts, retryPolicy(bull.name));
    if (row === undefined) throw new Error(`No worker row for ${bull.name}`);
    const lane = row.lane?.(bull.data as never);
    if (lane !== undefined && !lanes.enter(lane)) return putOff(bull, token);
    await perform(runtime, row, bull, signalOf(row)).finally(() => lane !== undefined && lanes.leave(lane));
  };
  const options = {
    connection: shared,
    prefix: keys.queuePrefix(queue),
    concurrency: concurrency(runtime, queue),
    skipVersionCheck: true,
  };
  const worker = new Worker(queue, run, { ...options, ...jobRetention, ...held });
  worker.on("error", (error) => {
    runtime.log.warn({ queue, error: error.message }, "worker.error");
    if (isRedisAway(error)) void rest(worker);
  });
  worker.on("failed", (bull, error) => {
    if (queue === "generation") return runtime.log.warn("assistant.attempt.failed");
    runtime.log.warn({ queue, job: bull?.name, attempt: bull?.attemptsMade, error: error.message }, "queue.job.failed");
  });
  return worker;
}

/** Stops asking for jobs for a while: where Redis refuses, as when it is full, BullMQ asks again at once and without end. */
async function rest(worker: Worker): Promise<void> {
  if (worker.isPaused() || worker.closing) return;
  await worker.pause(true);
  await sleep(restMs, undefined, { ref: false });
  if (!worker.closing) await worker.resume();
}

/** Gives a job back to its queue for a moment; this is no failed attempt. */
async function putOff(bull: BullJob, token: string | undefined): Promise<never> {
  await bull.moveToDelayed(Date.now() + LANE_RETRY_MS * (0.5 + Math.random()), token);
  throw new DelayedError();
}

/** How often a job is tried, as this deploy says it; one that only a newer deploy knows waits until its worker is there. */
function retryPolicy(name: string): Pick<JobsOptions, "attempts" | "backoff"> {
  const { attempts, backoff } = name in jobs ? jobs[name as JobName] : { attempts: 10, backoff: 2000 };
  return { attempts, backoff: { type: "exponential", delay: backoff, jitter: 0.3 } };
}

/** Does something again and again until the signal, a pause of some ms before each time; failures are logged. */
async function every(
  runtime: Runtime,
  { ms, signal }: { ms: number; signal: AbortSignal },
  work: () => Promise<unknown>,
): Promise<void> {
  const pause = (): Promise<unknown> => sleep(ms, undefined, { signal }).catch(() => undefined);
  for (await pause(); !signal.aborted; await pause())
    await work().catch((error: Error) => runtime.log.warn({ error: error.message }, "worker.timer.failed"));
}
