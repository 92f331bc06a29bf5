import type { Redis } from "ioredis";
import { sha256 } from "./digest.ts";
import type { Env } from "./env.ts";

/** Units of time in ms. */
export const second = 1000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

/** From an instant on until before another one, in ms since 1970. */
export interface Interval {
  from: number;
  to: number;
}

/**
 * Domain time. Without TEST_CLOCK it is the system time. With it, time starts at that instant when the first process of an installation
 * starts and runs TEST_CLOCK_RATE times as fast, the same in all processes: `originKey` stores the origin.
 */
export async function openClock(redis: Redis, env: Env, originKey: string): Promise<() => number> {
  const { TEST_CLOCK: start, TEST_CLOCK_RATE: rate = 1 } = env;
  if (start === undefined) return Date.now;
  await redis.set(originKey, Date.now(), "NX");
  const origin = Number(await redis.get(originKey));
  return () => Math.floor(start + (Date.now() - origin) * rate);
}

/** Real ms from now until a domain instant, for the delay of a job; at least 0. */
export function delayUntil({ env, now }: Clock, instant: number): number {
  return Math.max(0, Math.ceil((instant - now()) / rateOf(env)));
}

/** The domain instant after this many real ms. */
export function instantIn({ env, now }: Clock, ms: number): number {
  return now() + ms * rateOf(env);
}

/** The domain instant, in ISO 8601, at real ms. */
export function instantAt(clock: Clock, realMs: number): string {
  return new Date(instantIn(clock, realMs - Date.now())).toISOString();
}

/** The next turn of a name after an instant, in ms: it has one per interval, and other names have theirs at other instants. */
export function nextTurn(name: string, { intervalMs, after }: { intervalMs: number; after: number }): number {
  const offset = sha256(name).readUInt32BE() % intervalMs;
  return (Math.floor((after - offset) / intervalMs) + 1) * intervalMs + offset;
}

/** The result of work; undefined if it takes longer than this many real ms, after which it goes on. */
export async function waitAtMost<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, ms), undefined);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

interface Clock {
  env: Env;
  now(): number;
}

function rateOf({ TEST_CLOCK: start, TEST_CLOCK_RATE: rate = 1 }: Env): number {
  return start === undefined ? 1 : rate;
}
