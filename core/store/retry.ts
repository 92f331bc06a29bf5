import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { Fail } from "../platform/errors.ts";
import { perConnection } from "./connections.ts";
import { isRedisAway } from "./redis.ts";

/** Ms after which a change is given up that others come before again and again. */
const TIMEOUT_MS = 5_000;
/** Longest random pause in ms after the first lost try of a turn; it doubles with each further one, up to the last figure. */
const pause = { first: 4, longest: 250 };

/** What is undefined where somebody came between. `alone` while nobody of this process is known to be at the same thing. */
type Attempt<R> = (alone: boolean) => Promise<R | undefined>;

/** The last of the writers that wait for each other, by key. */
const linesOf = perConnection(() => new Map<string, Promise<unknown>>());

/**
 * Retries a conditional write until it commits. Without contention it waits for nothing. Contending writers go
 * one after another in each process, so that a crowd costs two tries each; processes keep apart by random pauses that grow.
 * `service_unavailable` after 5 s.
 */
export async function retryOnConflict<R>(redis: Redis, key: string, attempt: Attempt<R>): Promise<R> {
  const until = Date.now() + TIMEOUT_MS;
  const written = linesOf(redis).has(key) ? undefined : await attempt(true);
  return written ?? queued(redis, key, () => retry(attempt, until));
}

/**
 * Does a piece of work after those of this process that came before it under the same key, whatever became of them; but where Redis
 * was away for one, those behind it fail with it, in the time of one.
 */
async function queued<R>(redis: Redis, key: string, work: () => Promise<R>): Promise<R> {
  const line = linesOf(redis);
  const turn = (line.get(key) ?? Promise.resolve()).then(work, (error) => {
    if (isRedisAway(error)) throw error;
    return work();
  });
  line.set(key, turn);
  try {
    return await turn;
  } finally {
    if (line.get(key) === turn) line.delete(key);
  }
}

async function retry<R>(attempt: Attempt<R>, until: number): Promise<R> {
  for (let most = pause.first; Date.now() < until; most = Math.min(most * 2, pause.longest)) {
    const written = await attempt(false);
    if (written !== undefined) return written;
    await sleep(Math.random() * most);
  }
  throw new Fail("service_unavailable", { retryAfter: 1, detail: "Too many concurrent changes; retry." });
}
