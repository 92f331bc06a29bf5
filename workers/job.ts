import { type Job as BullJob, UnrecoverableError } from "bullmq";
import { checkData } from "./data.ts";
import { Fail } from "../core/platform/errors.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import type { JobData, JobName, QueueName } from "../schemas/jobs.ts";

/** One run of a job, for functions that care which one it is. */
export interface Attempt {
  /** 1 for the first; counts runs that ended with their process too. */
  number: number;
  /** True when a failure now is the final one. */
  last: boolean;
  /** Aborted when the process stops or gives the job back. */
  signal: AbortSignal;
}

/** One row of a worker: the job's name and the core function that does it. */
export interface WorkerRow {
  name: JobName;
  run: (runtime: Runtime, data: never, attempt: Attempt) => Promise<unknown>;
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
): WorkerRow {
  return { name, run: run as WorkerRow["run"] };
}

/** Runs a row for a job of the queue: data is checked again, and a failure that can't get better is not tried again. */
export async function perform(runtime: Runtime, row: WorkerRow, bull: BullJob, signal: AbortSignal): Promise<void> {
  try {
    checkData(row.name, bull.data);
    await row.run(runtime, bull.data as never, attemptOf(bull, signal));
  } catch (error) {
    if (error instanceof Fail && error.permanent) throw new UnrecoverableError(error.message);
    throw error;
  }
}

function attemptOf(bull: BullJob, signal: AbortSignal): Attempt {
  return { number: bull.attemptsStarted, last: bull.attemptsMade + 1 >= (bull.opts.attempts ?? 1), signal };
}
