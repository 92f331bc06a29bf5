import type { Job } from "bullmq";
import { queueNames } from "../../schemas/jobs.ts";
import { Fail } from "../platform/errors.ts";
import type { Store } from "../platform/runtime.ts";

/** A job that has exhausted its attempts: its name, its handle, its last failure and the time of that; nothing else of its data. */
type FailedJob = ReturnType<typeof toFailedJob>;

/** Most failed jobs listed per queue; they are retained for seven days. */
const MAX_JOBS_OF_QUEUE = 1000;

/** The failed jobs of all queues, newest first. */
export async function failedJobs({ queues }: Store): Promise<FailedJob[]> {
  const found = await Promise.all(queueNames.map((name) => queues.queue(name).getFailed(0, MAX_JOBS_OF_QUEUE - 1)));
  const jobs = found.flatMap((list, at) => list.map((one) => toFailedJob(queueNames[at] as string, one)));
  return jobs.sort((one, other) => (one.at < other.at ? 1 : -1));
}

/** Gives a failed job all its attempts again. Throws `job_not_found`, or `job_not_failed` if it waits, runs or has succeeded. */
export async function retryJob({ queues }: Store, id: string): Promise<FailedJob> {
  for (const name of queueNames) {
    const found: Job | undefined = await queues.queue(name).getJob(id);
    if (found === undefined) continue;
    if (!(await found.isFailed())) throw new Fail("job_not_failed");
    const job = toFailedJob(name, found);
    await found.retry("failed", { resetAttemptsMade: true });
    return job;
  }
  throw new Fail("job_not_found");
}

function toFailedJob(queue: string, { id = "", name, data, attemptsMade, failedReason, finishedOn = 0 }: Job) {
  const { handle } = data as { handle?: string };
  return { id, queue, name, handle, attempts: attemptsMade, failedReason, at: new Date(finishedOn).toISOString() };
}
