const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

/** Ms between attempts, the first wait first (docs/reference.md, "Webhook delivery"); after the last one the delivery has failed. */
export const RETRY_DELAYS_MS = [5 * second, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 10 * hour];

/** Longest wait that a receiver may request, in ms. */
const MAX_REQUESTED_DELAY_MS = 24 * hour;

/** Ms of uninterrupted failures after which an endpoint is disabled (docs/reference.md, "Webhook delivery"). */
export const DISABLE_AFTER_MS = 5 * 24 * hour;

/** Ms until the next attempt after `made` failed ones; undefined after the last. Includes up to a fifth of jitter. */
export function waitAfter(made: number, retryAfter: number, chance = Math.random()): number | undefined {
  const wait = RETRY_DELAYS_MS[made - 1];
  return wait === undefined ? undefined : Math.max(Math.round(wait * (1 + chance / 5)), retryAfter);
}

/** Ms that a `Retry-After` requests, in seconds or as a date (RFC 9110, section 10.2.3), at most a day; 0 if it requests none. */
export function askedWait(value: string | undefined, now: number): number {
  if (value === undefined || value === "") return 0;
  const wait = /^\d+$/.test(value) ? Number(value) * second : Date.parse(value) - now;
  return Number.isNaN(wait) ? 0 : Math.min(Math.max(wait, 0), MAX_REQUESTED_DELAY_MS);
}
