import { setTimeout as sleep } from "node:timers/promises";
import type { Job } from "bullmq";
import type { Redis } from "ioredis";
import { queueNames } from "../../schemas/jobs.ts";
import { domainsOf, mustExist, setHandleActive } from "../account/face.ts";
import type { Runtime } from "../platform/runtime.ts";
import { disconnectAll } from "../scheduling/face.ts";
import { keys, OUTBOX_SHARDS } from "../store/keys.ts";
import { removeKeys } from "./handle-keys.ts";

/** Ms within which a step in progress has finished its writes. */
const SETTLE_MS = 500;
/** Jobs of each state per round trip. */
const BATCH_SIZE = 1000;

/**
 * Removes everything that belongs to a handle: its keys, jobs, memberships and its entries in its account. Grants of other services are
 * revoked if those respond, unless the handle has moved and uses them elsewhere (`keepGrants`). The handle is deactivated first and its
 * record is removed last, so that an interrupted run can be repeated. Runs of answers have their own tag and expire within ten minutes.
 * Returns the number of removed keys, and the services that did not revoke their grants.
 */
export async function eraseHandle(
  runtime: Runtime,
  handle: string,
  { keepGrants = false } = {},
): Promise<{ handle: string; keys: number; grantsLeft: string[] }> {
  const { redis } = runtime;
  await mustExist(redis, handle);
  await setHandleActive(redis, handle, false);
  const grantsLeft = keepGrants ? [] : await disconnectAll(runtime, handle);
  let removed = 0;
  // Steps that were running at the deactivation may still write: repeat until two passes find nothing.
  for (let emptyPasses = 0; emptyPasses < 2; await sleep(SETTLE_MS)) {
    const names = await removeKeys(redis, handle);
    const others = (await removeJobs(runtime, handle)) + (await leaveQueues(redis, handle));
    emptyPasses = names + others === 0 ? emptyPasses + 1 : 0;
    removed += names;
  }
  await unlink(redis, handle);
  return { handle, keys: removed + (await redis.del(keys.handle(handle))), grantsLeft };
}

/**
 * Removes the jobs of a handle from all queues, finished ones included, and the queues' references to removed jobs. Returns the number
 * found, including running jobs, which can't be removed. Jobs that move up while others are removed are found by the next pass.
 */
async function removeJobs({ queues, redis }: Runtime, handle: string): Promise<number> {
  let found = 0;
  for (const name of queueNames) {
    const queue = queues.queue(name);
    for (let [from, isLast] = [0, false]; !isLast; from += BATCH_SIZE) {
      const jobs: (Job | undefined)[] = await queue.getJobs(undefined, from, from + BATCH_SIZE - 1);
      const own = jobs.filter((job) => job?.data?.handle === handle);
      await Promise.all(own.map((job) => queue.remove(job?.id as string)));
      found += own.length;
      isLast = jobs.length === 0;
    }
    // BullMQ's event stream contains job names; nothing reads it here.
    await redis.xtrim(queue.toKey("events"), "MAXLEN", 0);
  }
  return found;
}

/** Removes the handle from the fair queues and from the sweeper's list. */
async function leaveQueues(redis: Redis, handle: string): Promise<number> {
  const shards = Array.from({ length: OUTBOX_SHARDS }, (_, shard) => keys.pendingOutboxes(shard));
  const lists = [keys.emailLanes("normal"), keys.emailLanes("urgent"), keys.delayedSendPolls, ...shards];
  const removed = await Promise.all(lists.map((list) => redis.zrem(list, handle)));
  return removed.reduce((sum, count) => sum + count, 0);
}

/** Removes the handle from records outside its tag: its users' lists, its account's list and domains, and the list of all handles. */
async function unlink(redis: Redis, handle: string): Promise<void> {
  const { account = "", ...fields } = await redis.hgetall(keys.handle(handle));
  const users = Object.keys(fields).flatMap((field) => (field.startsWith("role:") ? [field.slice(5)] : []));
  for (const user of users) await redis.srem(keys.userHandles(user), handle);
  const attached = (await domainsOf(redis, account)).filter((domain) => domain.handle === handle);
  for (const { domain } of attached) await redis.hset(keys.domain(domain), { handle: "", [`claim:${account}`]: "" });
  await redis.srem(keys.accountHandles(account), handle);
  await redis.srem(keys.handles, handle);
}
