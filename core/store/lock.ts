import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { Fail } from "../platform/errors.ts";
import { script } from "./scripts.ts";

/** Ms after which the lock of a process that says nothing more has ended, and ms between two of its signs of life. */
const lasts = 10_000;
const renewsEvery = 3_000;
/** Ms between two looks at a lock that another holds. */
const looksEvery = 50;

/** Does a piece of work while nobody else does one under the same key; waits for who is at it, `service_unavailable` after `patience` ms. */
export async function alone<T>(
  redis: Redis,
  { key, patience = 15_000 }: { key: string; patience?: number },
  work: () => Promise<T>,
): Promise<T> {
  const until = Date.now() + patience;
  for (;;) {
    const done = await ifFree(redis, key, work);
    if (done) return done.result;
    if (Date.now() > until)
      throw new Fail("service_unavailable", { retryAfter: 5, detail: "Another request is already in progress." });
    await sleep(looksEvery);
  }
}

/** Does a piece of work if nobody else does one under the same key just now; undefined where somebody does. */
export async function ifFree<T>(redis: Redis, key: string, work: () => Promise<T>): Promise<{ result: T } | undefined> {
  const self = randomUUID();
  if ((await redis.set(key, self, "PX", lasts, "NX")) === null) return undefined;
  const renewing = setInterval(() => void renew(redis, key, self).catch(() => undefined), renewsEvery);
  try {
    return { result: await work() };
  } finally {
    clearInterval(renewing);
    await script(redis, "releaseLock", [key], [self]);
  }
}

/** A lock that was lost meanwhile stays lost. */
async function renew(redis: Redis, key: string, self: string): Promise<void> {
  if ((await redis.get(key)) === self) await redis.pexpire(key, lasts);
}
