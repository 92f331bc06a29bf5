import { sha256 } from "../platform/digest.ts";
import { Fail } from "../platform/errors.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";
import { sign } from "../platform/sealing.ts";
import { keys } from "./keys.ts";
import { scripts } from "./scripts.ts";

/** A kind of token buckets: `rate` tokens per second, at most `burst`. */
export interface Limit {
  name: string;
  rate: number;
  burst: number;
}

/** One bucket of a kind. */
interface Bucket extends Limit {
  /** A known handle, the host of a setting, or a result of `digestTag` or `sharedTag`; never a text that a visitor chose. */
  tag: string;
}

/** The tag of a bucket for visitors' data, such as a network and a mail address: a keyed digest (HMAC-SHA-256) of the parts. */
export function digestTag(env: Runtime["env"], ...parts: string[]): string {
  return sign(env, "throttle", JSON.stringify(parts));
}

/** One of the 256 bucket tags that all unknown names share, so that strangers can't create unlimited keys. */
export function sharedTag(name: string): string {
  return `~${sha256(name).toString("hex").slice(0, 2)}`;
}

/** Takes one token of a bucket shared by all processes; `rate_limited` with the wait if it is empty. */
export async function takeToken(store: Pick<Runtime, "redis">, bucket: Bucket): Promise<void> {
  const wait = await tokenWait(store, bucket);
  if (wait > 0) throw new Fail("rate_limited", { retryAfter: Math.ceil(wait / 1000) });
}

/** The same for the bucket of the caller's network. */
export function takeNetworkToken(
  runtime: Pick<Runtime, "redis" | "env">,
  { network = "" }: Pick<Caller, "network">,
  limit: Limit,
): Promise<void> {
  return takeToken(runtime, { ...limit, tag: digestTag(runtime.env, network) });
}

/** True if the bucket had a token, which is taken. */
export async function hasToken(store: Pick<Runtime, "redis">, bucket: Bucket): Promise<boolean> {
  return (await tokenWait(store, bucket)) === 0;
}

/** Takes a token: 0 if the bucket had one, else the ms until the next. */
export function tokenWait({ redis }: Pick<Runtime, "redis">, bucket: Bucket): Promise<number> {
  const { name, tag, rate, burst } = bucket;
  return scripts.takeToken(redis, { bucket: keys.throttle(name, tag) }, { interval: tokenInterval(rate), burst });
}

/** Whole real µs between two new tokens of a bucket, for its script; `rate` is in tokens per second. */
export function tokenInterval(rate: number): number {
  return Math.max(1, Math.round(1_000_000 / rate));
}
