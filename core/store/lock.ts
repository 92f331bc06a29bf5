import { randomUUID } from "node:crypto";
import { clearInterval, setInterval } from "node:timers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { Fail } from "../platform/errors.ts";
import { isRedisAway } from "./redis.ts";
import { scripts } from "./scripts.ts";

/** Ms for which a lock is held without being renewed, and between two renewals. */
const leaseMs = 10_000;
const renewMs = 2500;
/** Ms between two looks at a lock that another holds. */
const pollMs = 50;

/** Work under a lock. Its signal aborts, with `service_unavailable`, when the lock may end or has ended: somebody else may begin then. */
type LockedWork<T> = (lease: AbortSignal) => Promise<T>;

/** Runs work while nobody else runs any under the same key; waits for its turn, `service_unavailable` after `timeoutMs`. */
export async function withLock<T>(
  redis: Redis,
  { key, timeoutMs = 15_000 }: { key: string; timeoutMs?: number },
  work: LockedWork<T>,
): Promise<T> {
  const until = Date.now() + timeoutMs;
  for (;;) {
    const done = await tryLock(redis, key, work);
    if (done) return done.result;
    if (Date.now() > until)
      throw new Fail("service_unavailable", { retryAfter: 5, detail: "Another request is already in progress." });
    await sleep(pollMs);
  }
}

/** Runs work if nobody else runs any under the same key just now; undefined where somebody does. */
export async function tryLock<T>(redis: Redis, key: string, work: LockedWork<T>): Promise<{ result: T } | undefined> {
  const lock = { key, holder: randomUUID() };
  const since = Date.now();
  if ((await redis.set(key, lock.holder, "PX", leaseMs, "NX")) === null) return undefined;
  const lost = new AbortController();
  const renewing = keepRenewing(redis, lock, { since, lost });
  try {
    return { result: await work(lost.signal) };
  } finally {
    clearInterval(renewing);
    await release(redis, lock);
  }
}

interface Lock {
  key: string;
  holder: string;
}

/** Renews a lock until the timer is cleared; aborts as soon as the lock is another's, or one interval before it ends unrenewed. */
function keepRenewing(
  redis: Redis,
  { key, holder }: Lock,
  { since, lost }: { since: number; lost: AbortController },
): ReturnType<typeof setInterval> {
  let [renewedAt, failure] = [since, undefined as unknown];
  const end = (): void => lost.abort(new Fail("service_unavailable", { detail: "The lock was lost; retry." }, failure));
  const renew = async (): Promise<void> => {
    const asked = Date.now();
    if ((await scripts.renewLock(redis, { lock: key }, { holder, leaseMs })) === "lost") end();
    else renewedAt = asked;
  };
  return setInterval(() => {
    if (Date.now() - renewedAt >= leaseMs - renewMs) end();
    else
      renew().catch((error: unknown) => {
        failure = error;
      });
  }, renewMs);
}

/** Gives a lock back. Where Redis is away the lock ends by itself, and the work's own outcome stands. */
async function release(redis: Redis, { key, holder }: Lock): Promise<void> {
  try {
    await scripts.releaseLock(redis, { lock: key }, { holder });
  } catch (error) {
    if (!isRedisAway(error)) throw error;
  }
}
