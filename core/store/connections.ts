import type { Redis } from "ioredis";

/**
 * What a process keeps for each connection of its own: made when it is first asked for, gone with the connection. Tests and tools
 * open several in one process.
 */
export function perConnection<T>(make: () => T): (redis: Redis) => T {
  const made = new WeakMap<Redis, T>();
  return (redis) => {
    const known = made.get(redis) ?? make();
    made.set(redis, known);
    return known;
  };
}
