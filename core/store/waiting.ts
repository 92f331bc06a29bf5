import type { Redis } from "ioredis";
import { transact } from "./redis.ts";

/**
 * Adds a member to the work of one handle that waits under a key, for `maxWaitMs` at most, and returns how much waited before. As the
 * priority of its job this gives every handle its turn: much work of one doesn't delay another's.
 */
export async function addWaiting(
  redis: Redis,
  key: string,
  { member, maxWaitMs }: { member: string; maxWaitMs: number },
): Promise<number> {
  const now = Date.now();
  const [, waiting] = await transact(redis, (transaction) => {
    transaction.zremrangebyscore(key, "-inf", now - maxWaitMs).zcard(key);
    transaction.zadd(key, now, member).pexpire(key, maxWaitMs);
  });
  return Number(waiting);
}
