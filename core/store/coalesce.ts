import { setImmediate } from "node:timers";
import type { Redis } from "ioredis";

const asked = new WeakMap<Redis, Map<string, Promise<unknown>>>();

/**
 * One read for all who ask for the same thing in one tick of the event loop. The connection sends what a tick has gathered after
 * it, so callers that join still see a state later than their call: never an older one than by a read of their own.
 */
export function coalesce<T>(redis: Redis, name: string, read: () => Promise<T>): Promise<T> {
  const reads = asked.get(redis) ?? begin(redis);
  const known = reads.get(name) as Promise<T> | undefined;
  if (known) return known;
  const reading = read();
  reads.set(name, reading);
  return reading;
}

/** Forgets the tick's reads before the connection sends them: this was scheduled first. */
function begin(redis: Redis): Map<string, Promise<unknown>> {
  const reads = new Map<string, Promise<unknown>>();
  asked.set(redis, reads);
  setImmediate(() => asked.delete(redis));
  return reads;
}
