import type { Redis } from "ioredis";

/**
 * A cache per connection: created at first use, collected with the connection. Tests and tools open several connections in one process.
 */
export function perConnection<T>(make: (redis: Redis) => T): (redis: Redis) => T {
  const made = new WeakMap<Redis, T>();
  return (redis) => {
    const known = made.get(redis) ?? make(redis);
    made.set(redis, known);
    return known;
  };
}
