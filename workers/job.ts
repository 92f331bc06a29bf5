import { setTimeout } from "node:timers/promises";
import { Ajv2020 } from "ajv/dist/2020.js";
import { type Job as BullJob, UnrecoverableError } from "bullmq";
import { Fail } from "../core/platform/errors.ts";
import type { JobAttempt, Runtime } from "../core/platform/runtime.ts";
import { unlessAborted, withSignal } from "../core/platform/signals.ts";
import { type JobName, jobs } from "../schemas/jobs.ts";

/** How a worker runs a job: its core function, and its group if it calls other people's servers. */
export interface WorkerRow<D = never> {
  run: (runtime: Runtime, data: D, attempt: JobAttempt) => Promise<unknown>;
  /** A process runs only a few jobs of one group at a time. */
  group?: (data: D) => string;
  /** How often such a job may stall, default 1: no server may end one worker after the other. */
  maxStalls?: number;
  /** Runs when the job is given up after its stalls. */
  giveUp?: (runtime: Runtime, data: D, attempt: JobAttempt) => Promise<unknown>;
  /** True if it takes no slot of its queue: however many servers hang, they keep no other job waiting. */
  slotless?: boolean;
}

/** A row of a job that may wait for the mail server: few of one handle run at a time, so that sign-in codes and other handles find room. */
export function mailRow<D extends { handle: string }>(run: WorkerRow<D>["run"]): WorkerRow<D> {
  // Only the queue's own limit counts: a mail is not lost with the worker that sends it.
  return { run, group: ({ handle }) => handle, maxStalls: Number.POSITIVE_INFINITY };
}

/** Work until the signal. If it is repeated, "busy" means that another process was at it. */
export type Task = (runtime: Runtime, signal: AbortSignal) => Promise<unknown>;

/** Repeats a task, with a pause in ms. A failure is logged, unless it is the same as that of the last time that was not "busy". */
export function every(
  ms: number,
  task: Task,
  failure: "worker.task_failed" | "email.mailbox.read_failed" | "campaign.promotion_failed" = "worker.task_failed",
): Task {
  return async (runtime, signal) => {
    for (let last: string | undefined; !signal.aborted; ) {
      const error = await task(runtime, signal).then(
        (done) => (done === "busy" ? last : undefined),
        (error: Error) => error.message,
      );
      if (error !== undefined && error !== last && !signal.aborted) runtime.log.warn({ error }, failure);
      last = error;
      await setTimeout(ms, undefined, { signal }).catch(() => undefined);
    }
  };
}

/**
 * Runs a row for a queued job that is readable, and does not retry a permanent failure. The attempt's signal is its own, so that
 * nothing which listens to it outlives the job.
 */
export async function perform(runtime: Runtime, row: WorkerRow, bull: BullJob, stopping: AbortSignal): Promise<void> {
  try {
    const { group, maxStalls = 1 } = row;
    await withSignal([stopping], async (signal) => {
      const attempt = attemptOf(bull, signal);
      if (group && bull.stalledCounter > maxStalls) {
        await row.giveUp?.(runtime, bull.data as never, attempt);
        throw new UnrecoverableError("The job stalled too often.");
      }
      const running = row.run(runtime, bull.data as never, attempt);
      // Another process takes the job of a group when this one stops.
      await (group ? unlessAborted(running, signal) : running);
    });
  } catch (error) {
    if (error instanceof Fail && error.permanent) throw new UnrecoverableError(error.message);
    throw error;
  }
}

const ajv = new Ajv2020({ meta: false, validateSchema: false });

/** True if this deploy knows the job and all that its data may contain; jobs outlive deploys. */
export function isReadable({ name, data }: Pick<BullJob, "name" | "data">): boolean {
  // Compiled at its first use.
  return Object.hasOwn(jobs, name) && ajv.compile(jobs[name as JobName].data)(data);
}

function attemptOf(bull: BullJob, signal: AbortSignal): JobAttempt {
  const last = bull.attemptsMade + 1 >= (bull.opts.attempts ?? 1);
  return {
    number: bull.attemptsStarted,
    failures: bull.attemptsMade,
    last,
    due: bull.timestamp + (bull.opts.delay ?? 0),
    signal,
  };
}
