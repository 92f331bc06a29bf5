import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { Fail } from "../platform/errors.ts";
import { perObject } from "../platform/lazy.ts";
import { isRedisAway } from "./redis.ts";

/** Ms after which a change under constant contention is given up. */
const TIMEOUT_MS = 5_000;
/** Longest random pause in ms after the first lost attempt; it doubles with each further one, up to the last figure. */
const pause = { first: 4, longest: 250 };

/** Attempts of work that Redis is away for, and ms between two of them. */
const MAX_ATTEMPTS = 60;
const AWAY_PAUSE_MS = 500;

/** Work whose outcome must not be lost: while Redis is away it is tried again, for half a minute or longer. */
export async function retryWhileAway<R>(work: () => Promise<R>): Promise<R> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!isRedisAway(error) || tries === MAX_ATTEMPTS) throw error;
      await sleep(AWAY_PAUSE_MS);
    }
  }
}

/** Returns undefined after a conflict. `alone` while no other caller of this process is known to contend. */
type Attempt<R> = (alone: boolean) => Promise<R | undefined>;

/** The last of the writers that wait for each other, by key. */
const queuesOf = perObject(() => new Map<string, Promise<unknown>>());

/**
 * Retries a conditional write until it commits; without contention it never waits. Contending writers of a process are queued, so that a
 * crowd costs two attempts each; processes use growing random pauses. `service_unavailable` after 5 s.
 */
export async function retryOnConflict<R>(redis: Redis, key: string, attempt: Attempt<R>): Promise<R> {
  const until = Date.now() + TIMEOUT_MS;
  const written = queuesOf(redis).has(key) ? undefined : await attempt(true);
  return written ?? queued(redis, key, () => retry(attempt, until));
}

/**
 * Runs work after earlier work of this process under the same key, whatever its outcome. If Redis was away for one, those behind it fail
 * with it at once.
 */
async function queued<R>(redis: Redis, key: string, work: () => Promise<R>): Promise<R> {
  const queue = queuesOf(redis);
  const turn = (queue.get(key) ?? Promise.resolve()).then(work, (error) => {
    if (isRedisAway(error)) throw error;
    return work();
  });
  queue.set(key, turn);
  try {
    return await turn;
  } finally {
    if (queue.get(key) === turn) queue.delete(key);
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
