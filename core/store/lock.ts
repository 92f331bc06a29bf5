import { randomUUID } from "node:crypto";
import { clearInterval, setInterval } from "node:timers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { Fail } from "../platform/errors.ts";
import { isRedisAway } from "./redis.ts";
import { scripts } from "./scripts.ts";

/** Ms for which a lock is held without a renewal, and between two renewals. */
const LEASE_MS = 10_000;
const RENEW_INTERVAL_MS = 2500;
/** Ms for which a held lock is waited for, and between two polls of it. */
const TIMEOUT_MS = 15_000;
const POLL_INTERVAL_MS = 50;

/** Work under a lock. Its signal aborts, with `service_unavailable`, when the lock may be lost: another process may start then. */
type LockedWork<T> = (lease: AbortSignal) => Promise<T>;

/** Runs work exclusively under a key; waits for the lock, `service_unavailable` after 15 s. */
export async function withLock<T>(redis: Redis, key: string, work: LockedWork<T>): Promise<T> {
  const until = Date.now() + TIMEOUT_MS;
  for (;;) {
    const done = await tryLock(redis, key, work);
    if (done) return done.result;
    if (Date.now() > until)
      throw new Fail("service_unavailable", { retryAfter: 5, detail: "Another request is already in progress." });
    await sleep(POLL_INTERVAL_MS);
  }
}

/** Runs work if the lock is free; undefined if it isn't. */
export async function tryLock<T>(redis: Redis, key: string, work: LockedWork<T>): Promise<{ result: T } | undefined> {
  const lock = { key, holder: randomUUID() };
  const since = Date.now();
  const holder = await redis.set(key, lock.holder, "PX", LEASE_MS, "NX", "GET");
  // Ours if the connection was lost with the reply, and the command sent again.
  if (holder !== null && holder !== lock.holder) return undefined;
  const lost = new AbortController();
  const renewing = keepRenewing(redis, lock, { since, lost });
  try {
    return { result: await work(lost.signal) };
  } finally {
    clearInterval(renewing);
    await release(redis, lock);
  }
}

/** Renews a lock until the timer is cleared. Aborts as soon as the lock is lost, or one interval before it ends unrenewed. */
function keepRenewing(
  redis: Redis,
  { key, holder }: Record<"key" | "holder", string>,
  { since, lost }: { since: number; lost: AbortController },
): ReturnType<typeof setInterval> {
  let [renewedAt, failure] = [since, undefined as unknown];
  const end = (): void => lost.abort(new Fail("service_unavailable", { detail: "The lock was lost; retry." }, failure));
  const renew = async (): Promise<void> => {
    const requestedAt = Date.now();
    if ((await scripts.renewLock(redis, { lock: key }, { holder, leaseMs: LEASE_MS })) === "lost") end();
    else renewedAt = requestedAt;
  };
  return setInterval(() => {
    if (Date.now() - renewedAt >= LEASE_MS - RENEW_INTERVAL_MS) end();
    else
      renew().catch((error: unknown) => {
        failure = error;
      });
  }, RENEW_INTERVAL_MS);
}

/** Releases a lock. Without Redis the lock expires by itself, and the work's own outcome counts. */
async function release(redis: Redis, { key, holder }: Record<"key" | "holder", string>): Promise<void> {
  try {
    await scripts.renewLock(redis, { lock: key }, { holder, leaseMs: 0 });
  } catch (error) {
    if (!isRedisAway(error)) throw error;
  }
}
