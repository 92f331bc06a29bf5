import { setImmediate } from "node:timers";
import { setTimeout as sleep } from "node:timers/promises";
import { type Job as BullJob, DelayedError, type JobsOptions, UnrecoverableError, Worker } from "bullmq";
import { heartbeat } from "../core/operations/face.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { keys } from "../core/store/keys.ts";
import { connect, isRedisAway } from "../core/store/redis.ts";
import { type JobName, jobs, type QueueName, queueNames } from "../schemas/jobs.ts";
import { every, isReadable, perform, type WorkerRow } from "./job.ts";
import { JobGroups } from "./job-groups.ts";
import { workerLoops, workerRows } from "./rows.ts";

/** Ms between two sweeps of the outboxes, of those in constant use too, of those that nobody registered, and between two heartbeats. */
const SWEEP_INTERVAL_MS = 1000;
const FULL_SWEEP_INTERVAL_MS = 60_000;
const REGISTER_INTERVAL_MS = 900_000;
const HEARTBEAT_INTERVAL_MS = 10_000;
/** Ms between two removals of jobs whose retention is over. */
const CLEAN_INTERVAL_MS = 600_000;

/** Ms for which a worker fetches no job after a Redis error. */
const ERROR_PAUSE_MS = 1000;

/** Ms for which a job that only a newer deploy can read waits for its worker, and the shortest and longest pause between two tries. */
const NEWER_WAIT_MS = 7 * 86_400_000;
const NEWER_PAUSES_MS = [1000, 60_000] as const;

/** Retention of finished jobs, in seconds and by number. BullMQ deduplicates by id as long as it keeps a job. */
const jobRetention = { removeOnComplete: { age: 3600, count: 1000 }, removeOnFail: { age: 7 * 86_400, count: 5000 } };

/** Ms after which a job of a silent worker is stalled, and between two checks for stalled jobs, which then run again. */
const STALL_OPTIONS = { lockDuration: 15_000, stalledInterval: 5000, maxStalledCount: 5 };

/** Workers of a process. `close` lets running jobs finish or gives them back. */
export interface Workers {
  /** `drainMs`: ms within which running answers may finish; all other jobs are given back at once. */
  close(drainMs?: number): Promise<void>;
}

/**
 * Jobs of each queue that a process runs at once; GENERATION_CONCURRENCY sets it for answers. Slow servers must not block the others: calls
 * to endpoints and name servers occupy no slot (`slotless`), and those to calendar servers few of each handle (`JobGroups`). Rules wait for
 * Redis more than they compute.
 */
const concurrency = { knowledge: 8, campaigns: 32, email: 64, scheduling: 256, webhooks: 500 };

/**
 * Jobs that a worker fetches before it starts them. BullMQ fetches until all slots are taken, one job a round trip, and starts none
 * meanwhile: far from Redis, or on a slow processor, the locks of hundreds would expire first.
 */
const FETCH_AHEAD = 32;

/** Starts the workers of these queues, their heartbeats and the outbox sweeper. */
export async function startWorkers(runtime: Runtime, wanted: readonly string[] = []): Promise<Workers> {
  const served = queueNames.filter((queue) => wanted.length === 0 || wanted.includes(queue));
  const shared = connect(runtime.env, "blocking", { forJobs: true });
  shared.on("error", (error: Error) => runtime.log.warn({ error: error.message }, "redis.connection_failed"));
  const [stopping, interrupting] = [new AbortController(), new AbortController()];
  // An answer that a visitor reads can't be given back once it has begun, and calls to other servers may finish in time. All other jobs
  // continue in another process.
  const signalOf = (name: JobName) =>
    (jobs[name].queue === "generation" || workerRows[name].group ? interrupting : stopping).signal;
  const workers = served.map((queue) => startWorker(runtime, queue, { shared, signalOf }));
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  await heartbeat(runtime, served);
  const loops = [
    ...workerLoops.filter(({ queue }) => served.includes(queue)).map(({ run }) => run),
    every(HEARTBEAT_INTERVAL_MS, () => heartbeat(runtime, served)),
    every(SWEEP_INTERVAL_MS, ({ queues }) => queues.sweep()),
    every(FULL_SWEEP_INTERVAL_MS, ({ queues }) => queues.sweep(undefined, true)),
    every(REGISTER_INTERVAL_MS, ({ queues }) => queues.registerLeft()),
    every(CLEAN_INTERVAL_MS, () => removeOldJobs(runtime, served)),
  ];
  const running = loops.map((run) => run(runtime, stopping.signal));
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

/** Removes the jobs of these queues whose retention is over. BullMQ does it only when another job of the queue ends in the same way. */
async function removeOldJobs({ queues, redis }: Runtime, names: readonly QueueName[]): Promise<void> {
  const { removeOnComplete, removeOnFail } = jobRetention;
  for (const name of names) {
    const queue = queues.queue(name);
    await queue.clean(removeOnComplete.age * 1000, 0, "completed");
    await queue.clean(removeOnFail.age * 1000, 0, "failed");
    // Its entries name jobs, and repeat why they failed.
    await redis.xtrim(queue.toKey("events"), "MINID", Date.now() - removeOnFail.age * 1000);
  }
}

function startWorker(
  runtime: Runtime,
  queue: QueueName,
  { shared, signalOf }: { shared: ReturnType<typeof connect>; signalOf: (name: JobName) => AbortSignal },
): Worker {
  const groups = new JobGroups();
  const slots = { ...concurrency, generation: runtime.env.GENERATION_CONCURRENCY }[queue];
  const running = { all: 0, slotless: 0 };
  const count = (by: 1 | -1, { slotless }: WorkerRow): void => {
    running.all += by;
    if (slotless) running.slotless += by;
    worker.concurrency = Math.min(running.all + FETCH_AHEAD, slots + running.slotless);
  };
  const run = async (bull: BullJob, token?: string): Promise<void> => {
    if (!isReadable(bull)) return waitForNewer(runtime, bull, token);
    const name = bull.name as JobName;
    Object.assign(bull.opts, retryPolicy(name));
    // A job may wait in the queue that an earlier deploy gave it.
    const row: WorkerRow = workerRows[name];
    const group = row.group?.(bull.data as never);
    if (group !== undefined && !groups.enter(group)) return delayJob(bull, groups.retryAt(group), token);
    count(1, row);
    await perform(runtime, row, bull, signalOf(name)).finally(() => {
      // BullMQ looks for room for the next job first.
      setImmediate(count, -1, row);
      if (group !== undefined) groups.leave(group);
    });
  };
  const options = {
    connection: shared,
    prefix: keys.queuePrefix(queue),
    concurrency: Math.min(FETCH_AHEAD, slots),
    skipVersionCheck: true,
  };
  const worker = new Worker(queue, run, { ...options, ...jobRetention, ...STALL_OPTIONS });
  handleFailures(runtime, queue, worker);
  return worker;
}

/** Logs what fails, and pauses the worker after an error of Redis. */
function handleFailures({ log }: Runtime, queue: QueueName, worker: Worker): void {
  worker.on("error", (error) => {
    log.warn({ queue, error: error.message }, "worker.fetch_failed");
    if (isRedisAway(error)) void pauseAfterError(worker);
  });
  worker.on("failed", (bull, error) => {
    if (queue === "generation") return log.warn({}, "assistant.attempt.failed");
    const { name: job, attemptsMade: attempt, data } = bull ?? {};
    log.warn({ queue, job, handle: data?.handle, attempt, error: error.message }, "queue.job.failed");
  });
}

/** Pauses a worker after a Redis error, such as a full Redis; BullMQ would retry at once, without end. */
async function pauseAfterError(worker: Worker): Promise<void> {
  if (worker.isPaused() || worker.closing) return;
  await worker.pause(true);
  await sleep(ERROR_PAUSE_MS, undefined, { ref: false });
  if (!worker.closing) await worker.resume();
}

/** Gives a job back to its queue until real ms, without counting a failed attempt. */
async function delayJob(bull: BullJob, until: number, token: string | undefined): Promise<never> {
  await bull.moveToDelayed(until, token);
  throw new DelayedError();
}

/**
 * Delays a job that only a newer deploy can read, as long again as it has waited. Old and new workers share the queues during a deploy, and
 * after a rollback the newer one may be away for days.
 */
function waitForNewer({ log }: Runtime, bull: BullJob, token: string | undefined): Promise<never> {
  const { name: job, queueName: queue, attemptsMade: attempt, data } = bull;
  const error = `Only a newer deploy can read this job: ${job}`;
  const waitedMs = Date.now() - bull.timestamp - (bull.opts.delay ?? 0);
  if (waitedMs > NEWER_WAIT_MS) throw new UnrecoverableError(error);
  // A rollback may leave thousands of them, and each is tried every minute: their 1st, 2nd, 4th, 8th … try tells enough.
  if (Number.isInteger(Math.log2(bull.attemptsStarted)))
    log.warn({ queue, job, handle: data?.handle, attempt, error }, "queue.job.failed");
  const [shortest, longest] = NEWER_PAUSES_MS;
  return delayJob(bull, Date.now() + Math.min(Math.max(waitedMs, shortest), longest), token);
}

/** The retries of a job as this deploy defines them. */
function retryPolicy(name: JobName): Pick<JobsOptions, "attempts" | "backoff"> {
  const { attempts, backoff } = jobs[name];
  return { attempts, backoff: { type: "exponential", delay: backoff, jitter: 0.3 } };
}
