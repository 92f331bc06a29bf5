import type { StoredBooking } from "../../schemas/scheduling.ts";
import { addressDigest } from "../platform/address.ts";
import { delayUntil } from "../platform/clock.ts";
import { Fail } from "../platform/errors.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";
import { day } from "../platform/zones.ts";
import { keys } from "../store/keys.ts";
import { digestTag, tokenInterval } from "../store/throttle.ts";

/** A visitor who changes a booking; a visitor without a network, as in internal calls, is not limited. */
export type Visitor = Pick<Caller, "network">;

/** Moves of one booking by its visitor within 24 hours of domain time. */
const MAX_MOVES_A_DAY = 5;
const SECONDS_AN_HOUR = 3600;

/** A transition, as far as the limits depend on it. */
interface Limited {
  handle: string;
  booking: StoredBooking;
  visitor?: Visitor | undefined;
}

/** The keys of visitors' limits: the bucket of a network, and the future bookings of an attendee. */
export function limitKeys({ env }: Pick<Runtime, "env">, transition: Limited): { bucket: string; attendee: string } {
  const { handle, visitor, booking } = transition;
  return {
    bucket: keys.bookingBucket(handle, visitor?.network === undefined ? "" : digestTag(env, visitor.network)),
    attendee: keys.attendeeBookings(handle, addressDigest(booking.attendee.email)),
  };
}

/** Rate and burst of the network's bucket, if it is limited, and the most future bookings of an attendee; 0 for no limit. */
export function visitorLimits({ env }: Pick<Runtime, "env">, { visitor }: Limited): VisitorLimits {
  const { PUBLIC_BOOKINGS_RATE: rate, PUBLIC_BOOKINGS_BURST: burst, PUBLIC_BOOKINGS_PER_ATTENDEE: maxFuture } = env;
  if (visitor === undefined) return { maxFuture: 0 };
  if (visitor.network === undefined || burst <= 0 || rate <= 0) return { maxFuture };
  return { maxFuture, networkLimit: { interval: tokenInterval(rate / SECONDS_AN_HOUR), burst } };
}

interface VisitorLimits {
  networkLimit?: { interval: number; burst: number };
  maxFuture: number;
}

/** `rate_limited` for a network whose bucket has no token for `wait` real ms. */
export function networkLimited(wait: number): Fail {
  const minutes = Math.ceil(wait / 60_000);
  const detail = `Too many bookings were made or changed from this network. Try again in ${minutes === 1 ? "a minute" : `${minutes} minutes`}.`;
  return new Fail("rate_limited", { retryAfter: Math.ceil(wait / 1000), detail, more: { limit: "network" } });
}

/** `rate_limited` for an attendee whose next booking begins in `wait` ms of domain time. */
export function attendeeLimited(runtime: Runtime, wait: number): Fail {
  const { PUBLIC_BOOKINGS_PER_ATTENDEE: most } = runtime.env;
  const detail = `This address already has ${most} future bookings. Cancel one of them, or wait until the next one has begun.`;
  const retryAfter = secondsUntil(runtime, runtime.now() + wait);
  return new Fail("rate_limited", { retryAfter, detail, more: { limit: "attendee" } });
}

/** The instants of a booking's moves in the last 24 hours, with one more now; `rate_limited` if that is too many. */
export function movesWithNext(runtime: Runtime, { moves = [] }: Pick<StoredBooking, "moves">): string[] {
  const now = runtime.now();
  const recent = moves.filter((at) => Date.parse(at) > now - day);
  const [first] = recent;
  if (first === undefined || recent.length < MAX_MOVES_A_DAY) return [...recent, new Date(now).toISOString()];
  const detail = `A booking can be moved ${MAX_MOVES_A_DAY} times a day. Move it tomorrow, or cancel it and book another time.`;
  const retryAfter = secondsUntil(runtime, Date.parse(first) + day);
  throw new Fail("rate_limited", { retryAfter, detail, more: { limit: "moves" } });
}

function secondsUntil(runtime: Runtime, instant: number): number {
  return Math.max(1, Math.ceil(delayUntil(runtime, instant) / 1000));
}
