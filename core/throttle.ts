import { Fail } from "./errors.ts";
import { keys, script } from "./redis.ts";
import type { Runtime } from "./runtime.ts";

/** A token bucket: `rate` tokens a second, `burst` at most, one bucket for each tag. */
export interface Bucket {
  name: string;
  tag: string;
  rate: number;
  burst: number;
}

/** Takes one token of a bucket shared by all processes; `rate_limited` with the wait when it is empty. */
export async function takeToken({ redis }: Pick<Runtime, "redis">, { name, tag, rate, burst }: Bucket): Promise<void> {
  const wait = await script<number>(redis, "takeToken", [keys.throttle(name, tag)], [rate, burst]);
  if (wait > 0) throw new Fail("rate_limited", { retryAfter: Math.ceil(wait / 1000) });
}
