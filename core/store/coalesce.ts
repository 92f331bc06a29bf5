import { setImmediate } from "node:timers";
import type { Redis } from "ioredis";

const asked = new WeakMap<Redis, Map<string, Promise<unknown>>>();

/**
 * Shares one read among all callers of the same name in one tick of the event loop. The connection sends the commands of a tick after it,
 * so every caller still sees a state later than its call.
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
