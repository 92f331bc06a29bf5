import type { Redis } from "ioredis";
import {
  type Booking,
  type BookingAnswer,
  type BookingStatus,
  bookingPayment,
  booking as bookingShape,
  REFUND_MINUTES,
  type StoredBooking,
} from "../../schemas/scheduling.ts";
import { onlyOf } from "../../schemas/schema.ts";
import { addressDigest } from "../platform/address.ts";
import { delayUntil, type Interval, minute } from "../platform/clock.ts";
import { Fail } from "../platform/errors.ts";
import { formatWait } from "../platform/formats.ts";
import type { Caller, EventJob, Job, Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { readRecord, type Versioned } from "../store/records.ts";
import { retryOnConflict } from "../store/retry.ts";
import { scripts } from "../store/scripts.ts";
import { digestTag, tokenInterval } from "../store/throttle.ts";
import { eventJob } from "../webhooks/face.ts";
import { type StepName, stepJobs, steps } from "./booking-jobs.ts";
import { type IdempotencyRecord, storedAnswer } from "./idempotency.ts";
import { blockOf } from "./times.ts";

export type BookingRecord = Versioned<StoredBooking>;

export type BookingName = Pick<Booking, "handle" | "bookingUid">;

/** A visitor who changes a booking; a visitor without a network, as in internal calls, is not limited. */
export type Visitor = Pick<Caller, "network">;

/** A change of a booking: the booking afterwards, and its step, which decides about slot, events and jobs. */
export interface Change {
  booking: StoredBooking;
  step: StepName;
  /** The content of the events besides the handle and the booking. */
  about?: Record<string, unknown> | undefined;
  /** Jobs besides those of the step. */
  jobs?: Job[];
  /** The visitor who makes, moves or cancels it; absent for owners and jobs, which have no limits. */
  visitor?: Visitor | undefined;
  /** The most bookings of its event type that may start in [from, to). */
  dayLimit?: (Interval & { max: number }) | undefined;
  /** Where repeats of its request find the answer. */
  idempotency?: IdempotencyRecord | undefined;
}

export interface Transition extends Change {
  handle: string;
  /** The booking as read before; absent for a new one. */
  before?: BookingRecord | undefined;
  /** Version of the catalog by which it was judged; absent if the catalog doesn't matter. */
  catalogVersion?: string;
}

/** The result of a transition; `repeated` if its idempotency key was used before. */
type CommitResult = { kind: "written"; booking: Booking } | { kind: "changed" | "taken" | "repeated" };

/** Real ms for which the answers to idempotency keys are stored (docs/reference.md, "Idempotency"). */
const RECORD_TTL_MS = 86_400_000;
const SECONDS_AN_HOUR = 3600;

/**
 * Writes a transition with its events and jobs in one atomic step: the only way a booking changes, so that no two bookings of a handle
 * ever overlap, nor a new one with known busy time. `rate_limited` if the visitor has reached a limit.
 */
export async function commitBooking(runtime: Runtime, transition: Transition): Promise<CommitResult> {
  const { handle, before, idempotency } = transition;
  const booking = toBooking(handle, { ...transition.booking, version: (before?.version ?? 0) + 1 }, runtime.now());
  const record = idempotency && storedAnswer(idempotency, transition.booking, toBookingAnswer(booking));
  const sync = syncJobs(transition, booking);
  const others = [...stepJobs(runtime, handle, transition), ...(transition.jobs ?? [])];
  const all = [...sync, ...others, ...eventJobs(runtime, transition, booking)];
  const [kind, wait] = await runtime.queues.step(handle, all, (outbox, entries) => {
    const jobs = { syncJobs: entries.slice(0, sync.length), jobs: entries.slice(sync.length) };
    const input = { ...inputOf(runtime, transition), record, ...jobs };
    return scripts.writeBooking(runtime.redis, { ...keysOf(runtime, transition), outbox }, input);
  });
  if (kind === "written") return { kind, booking };
  if (kind === "limited") throw networkLimited(Number(wait));
  if (kind === "crowded") throw attendeeLimited(runtime, Number(wait));
  return { kind };
}

/**
 * Commits the change that `make` returns for the current booking, and retries on conflict; undefined leaves the booking as it is. `ifTaken`
 * replaces a change whose slot is taken or whose day is full. Returns the booking afterwards; undefined if it is gone.
 */
export async function changeIfExists(
  runtime: Runtime,
  { handle, bookingUid }: BookingName,
  make: MakeChange,
): Promise<Booking | undefined> {
  const { booking } = await retryOnConflict(runtime.redis, keys.booking(handle, bookingUid), async () => {
    const before = await findBooking(runtime.redis, handle, bookingUid);
    const change = before && (await make(before));
    if (change === undefined) return { booking: before && toBooking(handle, before, runtime.now()) };
    const { ifTaken, ...first } = change;
    let written = await commitBooking(runtime, { handle, before, ...first });
    if (ifTaken && written.kind === "taken") written = await commitBooking(runtime, { handle, before, ...ifTaken });
    return written.kind === "written" ? written : undefined;
  });
  return booking;
}

type NextChange = (Change & { ifTaken?: Change }) | undefined;
type MakeChange = (stored: BookingRecord) => NextChange | Promise<NextChange>;

/** Commits a change as `changeIfExists` does; `booking_not_found` if the booking is gone. */
export async function changeBooking(runtime: Runtime, name: BookingName, make: MakeChange): Promise<Booking> {
  const booking = await changeIfExists(runtime, name, make);
  if (booking === undefined) throw new Fail("booking_not_found");
  return booking;
}

/** A stored booking, or undefined. */
export async function findBooking(redis: Redis, handle: string, uid: string): Promise<BookingRecord | undefined> {
  return readRecord<StoredBooking>(redis, keys.booking(handle, uid));
}

/** The effective status: an unpaid booking with an expired hold is rejected, even before a job has written that. */
export function statusAt(booking: Pick<StoredBooking, "status" | "holdUntil">, now: number): BookingStatus {
  const { status, holdUntil } = booking;
  const isOver = status === "PENDING_PAYMENT" && holdUntil !== null && Date.parse(holdUntil) <= now;
  return isOver ? "REJECTED" : status;
}

/** A booking as owner and visitor read it. */
export function toBooking(handle: string, booking: BookingRecord, now: number): Booking {
  const status = statusAt(booking, now);
  // What the job will write that ends an expired hold.
  const cancelledBy = status === booking.status ? booking.cancelledBy : "service";
  const holdUntil = status === "PENDING_PAYMENT" ? booking.holdUntil : null;
  const payment = presentPayment(booking, now);
  return onlyOf(bookingShape, { ...booking, handle, status, cancelledBy, holdUntil, payment });
}

/** A payment as owner and visitor see it: where to pay while it is awaited, the end of the visitor's refund period, and whether it still runs. */
function presentPayment(booking: StoredBooking, now: number): Booking["payment"] {
  const { payment } = booking;
  if (payment === null) return null;
  const { refundUntilMinutes = REFUND_MINUTES } = payment;
  const { refundUntil = new Date(Date.parse(booking.start) - refundUntilMinutes * minute).toISOString() } = payment;
  const checkoutUrl = statusAt(booking, now) === "PENDING_PAYMENT" ? payment.checkoutUrl : null;
  const refundable = payment.status === "PAID" && now <= Date.parse(refundUntil);
  return onlyOf(bookingPayment, { ...payment, checkoutUrl, refundUntil, refundable });
}

/** The payment of a booking that moves: a refund period that has ended does not begin again. */
export function movedPayment(booking: StoredBooking, now: number): StoredBooking["payment"] {
  const { payment } = booking;
  const presented = presentPayment(booking, now);
  const isOver = presented?.status === "PAID" && !presented.refundable;
  return payment && (isOver ? { ...payment, refundUntil: presented.refundUntil } : payment);
}

/** The response to a visitor who has booked, moved or cancelled. */
export function toBookingAnswer(booking: Booking): BookingAnswer {
  const { bookingUid, status, payment } = booking;
  const url = status === "PENDING_PAYMENT" ? payment?.checkoutUrl : undefined;
  return { bookingUid, status, booking, ...(url ? { nextAction: { type: "redirect_to_checkout", url } } : {}) };
}

/** Domain time as a stored stamp. */
export function timestamp({ now }: Pick<Runtime, "now">): string {
  return new Date(now()).toISOString();
}

/** The list of all bookings; the others are by status. */
export const ALL_STATUSES = "ALL";

/** The events of one change, one ms apart, which are erased with the attendee or a guest. */
function eventJobs(runtime: Runtime, { handle, step, about }: Transition, booking: Booking): EventJob[] {
  const people = [booking.attendee, ...booking.guests].map(({ email }) => email);
  const content = { data: { handle, booking, ...about }, people };
  const at = runtime.now();
  return steps[step].events.map((type, index) => eventJob(runtime, handle, { type, ...content, at: at + index }));
}

/** The job that tells calendars and meetings of a booking that was accepted, moved, or ended. */
function syncJobs({ handle, booking, before }: Transition, { version }: Booking): Job[] {
  const { bookingUid, status, sequence } = booking;
  const isSame = before?.status === status && before.sequence === sequence;
  if (isSame || (status !== "ACCEPTED" && before?.status !== "ACCEPTED")) return [];
  return [job("scheduling.sync", `sync-${bookingUid}-${version}`, { handle, bookingUid })];
}

function keysOf({ env }: Runtime, { handle, booking, before, visitor, idempotency }: Transition) {
  const { network } = visitor ?? {};
  return {
    booking: keys.booking(handle, booking.bookingUid),
    blocks: keys.blocks(handle),
    busy: keys.busy(handle),
    all: keys.bookings(handle, ALL_STATUSES),
    before: keys.bookings(handle, before?.status ?? booking.status),
    after: keys.bookings(handle, booking.status),
    catalog: keys.catalogVersion(handle),
    times: keys.timesVersion(handle),
    record: idempotency?.key ?? keys.idempotent(handle, "bookings", ""),
    credentials: keys.credentials(handle),
    bucket: keys.bookingBucket(handle, network === undefined ? "" : digestTag(env, network)),
    attendee: keys.attendeeBookings(handle, addressDigest(booking.attendee.email)),
  };
}

function inputOf({ env, now }: Runtime, { booking, before, step, visitor, ...transition }: Transition) {
  const { bookingUid: uid, eventTypeId, status } = booking;
  const { slot } = steps[step];
  return {
    ...{ uid, eventTypeId, status, slot, start: Date.parse(booking.start), now: now() },
    version: before?.version ?? 0,
    json: JSON.stringify({ ...booking, version: undefined }),
    catalogVersion: transition.catalogVersion,
    dayLimit: transition.dayLimit,
    block: slot === "claim" || slot === "reclaim" ? blockOf(booking) : undefined,
    recordMs: RECORD_TTL_MS,
    networkLimit: networkLimit(env, visitor),
    maxFuture: visitor ? env.PUBLIC_BOOKINGS_PER_ATTENDEE : 0,
  };
}

/** Rate and burst of the network's bucket; undefined if it is not limited. */
function networkLimit(env: Runtime["env"], visitor: Visitor = {}): { interval: number; burst: number } | undefined {
  const { PUBLIC_BOOKINGS_RATE: rate, PUBLIC_BOOKINGS_BURST: burst } = env;
  if (visitor.network === undefined || burst <= 0 || rate <= 0) return undefined;
  return { interval: tokenInterval(rate / SECONDS_AN_HOUR), burst };
}

/** `rate_limited` for a network whose bucket has no token for `wait` real ms. */
function networkLimited(wait: number): Fail {
  const time = formatWait(wait / 1000, "en");
  const detail = `Too many bookings were made or changed from this network. Try again in ${time}.`;
  return limited("network", detail, wait);
}

/** `rate_limited` for an attendee whose next booking begins in `wait` ms of domain time. */
function attendeeLimited(runtime: Runtime, wait: number): Fail {
  const { PUBLIC_BOOKINGS_PER_ATTENDEE: most } = runtime.env;
  const detail = `This address already has ${most} future bookings. Cancel one of them, or wait until the next one has begun.`;
  return limited("attendee", detail, delayUntil(runtime, runtime.now() + wait));
}

/** `rate_limited` by a limit of visitors, for `wait` real ms. */
export function limited(limit: "attendee" | "moves" | "network", detail: string, wait: number): Fail {
  return new Fail("rate_limited", { retryAfter: Math.max(1, Math.ceil(wait / 1000)), detail, more: { limit } });
}
