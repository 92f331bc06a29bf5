import { setImmediate } from "node:timers";
import type { Redis } from "ioredis";

const asked = new WeakMap<Redis, Map<string, Promise<unknown>>>();

/**
 * One read for all who ask for the same thing in one tick of the event loop. The connection sends what a tick has gathered after
 * it, so whoever joins still gets what is there later than the moment of asking: nobody sees an older state than by a read alone.
 */
export function sharedRead<T>(redis: Redis, name: string, read: () => Promise<T>): Promise<T> {
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
