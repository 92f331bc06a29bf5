import { setImmediate } from "node:timers";
import type { Redis } from "ioredis";
import { perObject } from "../platform/lazy.ts";

const readsOf = perObject(() => new Map<string, Promise<unknown>>());

/**
 * Shares one read among all callers of the same name in one tick of the event loop. The connection sends the commands of a tick after it,
 * so every caller still sees a state later than its call.
 */
export function coalesce<T>(redis: Redis, name: string, read: () => Promise<T>): Promise<T> {
  const reads = readsOf(redis);
  const known = reads.get(name) as Promise<T> | undefined;
  if (known) return known;
  // Before the read: the connection sends it in a later callback of the same kind.
  setImmediate(() => reads.delete(name));
  const reading = read();
  reads.set(name, reading);
  return reading;
}
