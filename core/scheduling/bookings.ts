import type {
  Booking,
  BookingAnswer,
  bookingListing,
  bookingPath,
  declining,
  ownerCancellation,
  publicBookingPath,
  publicCancellation,
  StoredBooking,
} from "../../schemas/scheduling.ts";
import type { Infer } from "../../schemas/schema.ts";
import type { WebhookEventType } from "../../schemas/webhooks.ts";
import { delayUntil } from "../platform/clock.ts";
import { Fail } from "../platform/errors.ts";
import { cursorAfter, pageOf } from "../store/paging.ts";
import { job } from "../store/outbox.ts";
import { readRecords } from "../store/records.ts";
import { retryOnConflict } from "../store/retry.ts";
import { keys } from "../store/keys.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";
import { readCatalogSnapshot } from "./catalog.ts";
import type { CalendarFile } from "../engines/calendars/calendars.ts";
import { mailJob, ownerMailJob, reminderJobs, visitorFile } from "./booking-mails.ts";
import {
  toBookingAnswer,
  type Transition,
  commitBooking,
  ALL_STATUSES,
  type BookingRecord,
  findBooking,
  toBooking,
  timestamp,
  statusAt,
} from "./ledger.ts";
import { endedPayment, presentPayment, refundJobs } from "./refunds.ts";
import type { Visitor } from "./visitor-limits.ts";

/** A booking for the visitor with its uid; `booking_not_found`, also under another event type's slug. */
export async function readPublicBooking(
  runtime: Runtime,
  input: Infer<typeof publicBookingPath>,
): Promise<{ booking: Booking }> {
  return { booking: toBooking(input.handle, await findPublicBooking(runtime, input), runtime.now()) };
}

/** A booking as a calendar file, for callers with access. */
export async function readCalendarFile(
  runtime: Runtime,
  input: Infer<typeof publicBookingPath>,
): Promise<CalendarFile> {
  const booking = toBooking(input.handle, await findPublicBooking(runtime, input), runtime.now());
  return visitorFile(runtime, input.handle, booking);
}

/**
 * The visitor cancels, and is refunded if the terms allow it; idempotent. `booking_not_found`, `booking_not_cancellable`, `rate_limited`.
 */
export async function cancelPublicBooking(
  runtime: Runtime,
  input: Infer<typeof publicCancellation>,
  visitor: Caller,
): Promise<BookingAnswer> {
  await findPublicBooking(runtime, input);
  return toBookingAnswer(await cancel(runtime, { ...input, visitor }));
}

/** The owner cancels, and a payment is refunded; idempotent. `booking_not_found`, `booking_not_cancellable`. */
export async function cancelBooking(
  runtime: Runtime,
  input: Infer<typeof ownerCancellation>,
): Promise<{ booking: Booking }> {
  return { booking: await cancel(runtime, input) };
}

/** A request as its owner saw it; a move makes it another request. */
interface Seen {
  sequence?: number;
}

/** The owner accepts a request; `booking_not_pending` unless it awaits this. */
export async function confirmBooking(
  runtime: Runtime,
  input: Infer<typeof bookingPath> & Seen,
): Promise<{ booking: Booking }> {
  const confirmed = (kept: BookingRecord): Change => {
    mustBePending(kept, input, runtime.now());
    const at = timestamp(runtime);
    const booking: StoredBooking = { ...kept, status: "ACCEPTED", confirmedAt: at, updatedAt: at };
    const jobs = [ownerMailJob(input.handle, booking, "confirmed"), ...reminderJobs(runtime, input.handle, booking)];
    return { booking, time: "keep", events: ["scheduling.booking.confirmed"], jobs };
  };
  return { booking: await change(runtime, input, confirmed) };
}

/** The owner declines a request: its slot is free again and a payment goes back; `booking_not_pending`. */
export async function declineBooking(
  runtime: Runtime,
  input: Infer<typeof declining> & Seen,
): Promise<{ booking: Booking }> {
  const declined = (kept: BookingRecord): Change => {
    mustBePending(kept, input, runtime.now());
    const why = {
      cancellationReason: input.reason ?? null,
      cancelledBy: "owner" as const,
      updatedAt: timestamp(runtime),
    };
    const booking: StoredBooking = { ...kept, ...why, status: "REJECTED", payment: endedPayment(kept, true) };
    const jobs = [ownerMailJob(input.handle, booking, "declined"), ...refundJobs(input.handle, booking)];
    return { booking, ...ended, jobs };
  };
  return { booking: await change(runtime, input, declined) };
}

/** A booking as its owner sees it; `booking_not_found`. */
export async function readBooking(runtime: Runtime, input: Infer<typeof bookingPath>): Promise<{ booking: Booking }> {
  const kept = await findBooking(runtime.redis, input.handle, input.bookingUid);
  if (kept === undefined) throw new Fail("booking_not_found");
  return { booking: toBooking(input.handle, kept, runtime.now()) };
}

/** The handle's bookings by start, latest first or, with `order=asc`, earliest first. */
export async function listBookings(
  runtime: Runtime,
  input: Infer<typeof bookingListing>,
): Promise<{ bookings: Booking[]; nextCursor: string | null }> {
  const { handle, status } = input;
  const { uids, nextCursor } = await uidsOf(runtime, input);
  const records = await readRecords<StoredBooking>(
    runtime.redis,
    uids.map((uid) => keys.booking(handle, uid)),
  );
  const bookings = records.map((kept) => toBooking(handle, kept, runtime.now()));
  return { bookings: bookings.filter((booking) => status === undefined || booking.status === status), nextCursor };
}

/** A payment at its provider: the account and the payment id. */
type Paid = NonNullable<NonNullable<StoredBooking["payment"]>["paid"]>;

/** The effect of a payment: the booking is accepted, was accepted before, or the payment must be refunded. */
export type Settlement = "accepted" | "repeated" | "refund";

/**
 * Records a paid checkout: the booking becomes ACCEPTED. After the end of its hold it takes the slot again if that is free; otherwise, or
 * if it was cancelled, the payment becomes REFUND_DUE. Repeated calls in any order have the same result. `booking_not_found`.
 */
export async function settlePayment(
  runtime: Runtime,
  { handle, bookingUid, paid }: { handle: string; bookingUid: string; paid?: Paid },
): Promise<Settlement> {
  return retryOnConflict(runtime.redis, keys.booking(handle, bookingUid), async () => {
    const kept = await findBooking(runtime.redis, handle, bookingUid);
    if (kept?.payment == null) throw new Fail("booking_not_found");
    if (kept.payment.status !== "REQUIRED") return kept.payment.status === "PAID" ? "repeated" : "refund";
    const isLate = kept.status === "CANCELLED" || Date.parse(kept.start) <= runtime.now();
    const settled = isLate ? undefined : await commitBooking(runtime, paidEntry(runtime, handle, { kept, paid }));
    if (settled?.kind === "written") return "accepted";
    if (settled?.kind === "changed") return undefined;
    return (await commitBooking(runtime, refundEntry(runtime, handle, { kept, paid }))).kind === "written"
      ? "refund"
      : undefined;
  });
}

/** Records that the provider has refunded a payment; ignored for a missing booking. Idempotent. */
export async function noteRefund(runtime: Runtime, booking: { handle: string; bookingUid: string }): Promise<void> {
  if ((await findBooking(runtime.redis, booking.handle, booking.bookingUid)) === undefined) return;
  await change(runtime, booking, (kept) => {
    if (kept.payment?.status !== "PAID" && kept.payment?.status !== "REFUND_DUE") return undefined;
    const payment = { ...kept.payment, status: "REFUNDED" as const };
    return { booking: { ...kept, payment, updatedAt: timestamp(runtime) }, time: "keep", events: [], jobs: [] };
  });
}

/**
 * The hold of an unpaid booking has ended: it becomes REJECTED and its slot is released. Does nothing if it was paid or has ended
 * otherwise.
 */
export async function expireHold(
  runtime: Runtime,
  { handle, bookingUid }: { handle: string; bookingUid: string },
): Promise<void> {
  await retryOnConflict(runtime.redis, keys.booking(handle, bookingUid), async () => {
    const kept = await findBooking(runtime.redis, handle, bookingUid);
    if (kept?.status !== "PENDING_PAYMENT") return "over";
    if (statusAt(kept, runtime.now()) !== "REJECTED") {
      await expireLater(runtime, handle, kept);
      return "later";
    }
    const why = { cancelledBy: "service" as const, updatedAt: timestamp(runtime) };
    const booking: StoredBooking = { ...kept, ...why, status: "REJECTED" };
    const written = await commitBooking(runtime, { handle, before: kept, booking, ...ended, jobs: [] });
    return written.kind === "written" ? "expired" : undefined;
  });
}

/** The booking of a public path; `booking_not_found` if any part is unknown. */
export async function findPublicBooking(
  runtime: Runtime,
  { handle, eventSlug, bookingUid }: Infer<typeof publicBookingPath>,
): Promise<BookingRecord> {
  const [moment, kept] = await Promise.all([
    readCatalogSnapshot(runtime, handle),
    findBooking(runtime.redis, handle, bookingUid),
  ]);
  const slugs = [kept?.eventSlug, nameOf(moment?.catalog.offers, kept?.eventTypeId)];
  if (moment === undefined || kept === undefined || !slugs.includes(eventSlug)) throw new Fail("booking_not_found");
  return kept;
}

type Change = Pick<Transition, "booking" | "time" | "events" | "jobs" | "visitor">;

const ended = { time: "free" as const, events: ["scheduling.booking.cancelled"] as WebhookEventType[] };

/** Commits the transition that `make` returns for a booking, and retries on conflict. */
async function change(
  runtime: Runtime,
  { handle, bookingUid }: { handle: string; bookingUid: string },
  make: (kept: BookingRecord) => Change | undefined,
): Promise<Booking> {
  return retryOnConflict(runtime.redis, keys.booking(handle, bookingUid), async () => {
    const kept = await findBooking(runtime.redis, handle, bookingUid);
    if (kept === undefined) throw new Fail("booking_not_found");
    const made = make(kept);
    if (made === undefined) return toBooking(handle, kept, runtime.now());
    const written = await commitBooking(runtime, { handle, before: kept, ...made });
    return written.kind === "written" ? written.booking : undefined;
  });
}

function cancel(runtime: Runtime, input: Infer<typeof ownerCancellation> & { visitor?: Visitor }): Promise<Booking> {
  const { handle, visitor } = input;
  const by = visitor ? ("visitor" as const) : ("owner" as const);
  return change(runtime, input, (kept) => {
    if (kept.status === "CANCELLED") return undefined;
    const isOver = statusAt(kept, runtime.now()) === "REJECTED" || Date.parse(kept.start) <= runtime.now();
    if (isOver) throw new Fail("booking_not_cancellable");
    const why = {
      cancellationReason: input.cancellationReason ?? null,
      cancelledBy: by,
      updatedAt: timestamp(runtime),
    };
    const isDue = visitor === undefined || presentPayment(kept, runtime.now())?.refundable === true;
    const booking: StoredBooking = { ...kept, ...why, status: "CANCELLED", payment: endedPayment(kept, isDue) };
    // Nobody was informed of a booking that awaits payment.
    const mail = (visitor ? mailJob : ownerMailJob)(handle, booking, "cancelled");
    const jobs = kept.status === "PENDING_PAYMENT" ? [] : [mail, ...refundJobs(handle, booking)];
    return { booking, ...ended, jobs, visitor };
  });
}

function mustBePending(kept: BookingRecord, { sequence = kept.sequence }: Seen, now: number): void {
  if (statusAt(kept, now) !== "PENDING" || sequence !== kept.sequence) throw new Fail("booking_not_pending");
}

interface PaidBooking {
  kept: BookingRecord;
  paid: Paid | undefined;
}

function paymentWith({ kept, paid }: PaidBooking, status: "PAID" | "REFUND_DUE"): BookingRecord["payment"] {
  return { ...(kept.payment as NonNullable<BookingRecord["payment"]>), status, ...(paid ? { paid } : {}) };
}

function paidEntry(runtime: Runtime, handle: string, { kept, paid }: PaidBooking): Transition {
  const at = timestamp(runtime);
  const payment = paymentWith({ kept, paid }, "PAID");
  const base: StoredBooking = { ...kept, payment, status: "ACCEPTED", holdUntil: null };
  const booking: StoredBooking = { ...base, cancelledBy: null, confirmedAt: at, updatedAt: at };
  return {
    handle,
    before: kept,
    booking,
    time: "settle",
    events: ["scheduling.payment.succeeded", "scheduling.booking.confirmed"],
    jobs: [mailJob(handle, booking, "confirmed"), ...reminderJobs(runtime, handle, booking)],
  };
}

/** The payment must be refunded, and payer and owner are informed; a booking that still waited has lost its slot. */
function refundEntry(runtime: Runtime, handle: string, { kept, paid }: PaidBooking): Transition {
  const payment = paymentWith({ kept, paid }, "REFUND_DUE");
  const booking: StoredBooking = { ...kept, payment, updatedAt: timestamp(runtime) };
  const jobs = [mailJob(handle, booking, "refunded"), ...refundJobs(handle, booking)];
  if (kept.status !== "PENDING_PAYMENT") return { handle, before: kept, booking, time: "keep", events: [], jobs };
  return {
    handle,
    before: kept,
    booking: { ...booking, status: "REJECTED", cancelledBy: "service" },
    ...ended,
    jobs,
  };
}

/** The job ran early, or the hold was extended. */
async function expireLater(runtime: Runtime, handle: string, kept: BookingRecord): Promise<void> {
  const { bookingUid, holdUntil } = kept;
  const delay = delayUntil(runtime, Date.parse(holdUntil as string)) + 1;
  await runtime.queues.later(
    job("scheduling.expire", `expire-${bookingUid}-${kept.version}`, { handle, bookingUid }, { delay }),
  );
}

function nameOf(
  offers: Map<string, { event: { eventTypeId: string; slug: string } }> | undefined,
  eventTypeId: string | undefined,
): string | undefined {
  return [...(offers?.values() ?? [])].find(({ event }) => event.eventTypeId === eventTypeId)?.event.slug;
}

/** One page of uids by start and uid; the cursor is the position of the last one. */
async function uidsOf(
  { env, redis }: Runtime,
  input: Infer<typeof bookingListing>,
): Promise<{ uids: string[]; nextCursor: string | null }> {
  const everything = keys.bookings(input.handle, ALL_STATUSES);
  const { limit, after } = pageOf(env, input, everything);
  const isUpwards = input.order === "asc";
  const [lastStart, lastUid = ""] = after?.split(" ") ?? [];
  const lowest =
    isUpwards && lastStart !== undefined ? lastStart : input.from ? String(Date.parse(input.from)) : "-inf";
  const highest = !isUpwards && lastStart !== undefined ? lastStart : input.to ? `(${Date.parse(input.to)}` : "+inf";
  const list = keys.bookings(input.handle, input.status ?? ALL_STATUSES);
  const isPast = ([uid, start]: [string, string]) =>
    start === lastStart && (isUpwards ? uid <= lastUid : uid >= lastUid);
  const found: [string, string][] = [];
  for (let offset = 0; found.length <= limit; offset += limit + 1) {
    const range = isUpwards
      ? await redis.zrangebyscore(list, lowest, highest, "WITHSCORES", "LIMIT", offset, limit + 1)
      : await redis.zrevrangebyscore(list, highest, lowest, "WITHSCORES", "LIMIT", offset, limit + 1);
    const rows = pairs(range);
    found.push(...rows.filter((row) => !isPast(row)));
    if (rows.length <= limit) break;
  }
  const last = found.length > limit ? found[limit - 1] : undefined;
  return {
    uids: found.slice(0, limit).map(([uid]) => uid),
    nextCursor: cursorAfter(env, last && `${last[1]} ${last[0]}`, everything),
  };
}

function pairs(flat: string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, at) => [flat[at * 2] as string, flat[at * 2 + 1] as string]);
}
