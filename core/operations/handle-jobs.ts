import type { Job, JobType, Queue } from "bullmq";
import { queueNames } from "../../schemas/jobs.ts";
import type { Runtime } from "../platform/runtime.ts";

type Store = Pick<Runtime, "queues" | "redis">;

/** Jobs per round trip. */
const BATCH_SIZE = 1000;
const atRest: JobType[] = ["waiting", "delayed", "prioritized", "failed", "completed"];

/**
 * Removes the jobs of a handle from all queues, finished ones included, and the queues' references to removed jobs. Returns the number
 * found, including running jobs, which can't be removed.
 */
export async function removeJobs({ queues, redis }: Store, handle: string): Promise<number> {
  let found = 0;
  for (const name of queueNames) {
    const queue = queues.queue(name);
    for (const state of atRest) found += await removeOfState(queue, state, handle);
    const active: Job[] = await queue.getActive();
    found += active.filter((job) => isOf(job, handle)).length;
    // BullMQ's event stream contains job names; nothing reads it here.
    await redis.xtrim(queue.toKey("events"), "MAXLEN", 0);
  }
  return found;
}

async function removeOfState(queue: Queue, state: JobType, handle: string): Promise<number> {
  let removed = 0;
  for (let from = 0; ; ) {
    const jobs: (Job | undefined)[] = await queue.getJobs([state], from, from + BATCH_SIZE - 1, true);
    const own = jobs.filter((job) => job !== undefined && isOf(job, handle));
    await Promise.all(own.map((job) => queue.remove(job?.id as string)));
    removed += own.length;
    if (jobs.length < BATCH_SIZE) return removed;
    // The remaining jobs have moved up by the removed ones.
    from += jobs.length - own.length;
  }
}

const isOf = ({ data }: Job, handle: string): boolean => data?.handle === handle;
