import type { BookingAnswer, StoredBooking } from "../../schemas/scheduling.ts";
import { Fail, unavailable } from "../platform/errors.ts";
import type { Job, Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { readRecords } from "../store/records.ts";
import { expiryJobs, mailJob, refundJobs } from "./booking-jobs.ts";
import { bookableEventById, dayLimitOf, readCatalogSnapshot } from "./catalog.ts";
import { manageUrl } from "./event-types.ts";
import type { IdempotencyRecord } from "./idempotency.ts";
import {
  type BookingName,
  type BookingRecord,
  type Change,
  changeBooking,
  changeIfExists,
  statusAt,
  timestamp,
  toBooking,
  toBookingAnswer,
} from "./ledger.ts";

/** Domain minutes for which an unpaid booking holds its slot, and minutes for which its checkout is open (docs/reference.md, "Bookings"). */
export const HOLD_MINUTES = 35;
const CHECKOUT_MINUTES = 31;

type Payment = NonNullable<StoredBooking["payment"]>;

/**
 * The answer to a booking that awaits its payment, with the address of its checkout. If the provider opens none, the slot is released and
 * a repeated request starts again: `service_unavailable`, or the provider's failure.
 */
export async function openCheckout(
  runtime: Runtime,
  { handle, bookingUid, idempotency }: BookingName & { idempotency: IdempotencyRecord | undefined },
): Promise<BookingAnswer> {
  let failure: unknown;
  const booking = await changeIfExists(runtime, { handle, bookingUid }, async (before) => {
    if (before.payment === null || statusAt(before, runtime.now()) !== "PENDING_PAYMENT") throw holdExpired();
    failure = undefined;
    // A repeated request opened it meanwhile, and its payer may be there.
    if (before.payment.checkoutUrl) return undefined;
    try {
      const payment = { ...before.payment, ...(await checkoutOf(runtime, handle, before)) };
      return { step: "updated", booking: { ...before, payment }, idempotency };
    } catch (error) {
      runtime.log.warn({ handle, error: (error as Error)?.message }, "payment.checkout_failed");
      failure = error;
      const { step, booking } = endedUnpaid(runtime, before);
      return { step, booking: { ...booking, holdUntil: null }, idempotency };
    }
  });
  if (booking === undefined) throw holdExpired();
  if (failure === undefined) return toBookingAnswer(booking);
  throw unavailable(failure, "The payment provider is not responding.");
}

function holdExpired(): Fail {
  return new Fail("scheduling_slot_unavailable", { detail: "The payment hold of this slot has expired." });
}

async function checkoutOf(runtime: Runtime, handle: string, before: BookingRecord) {
  if (runtime.payments === undefined) throw new Error("There is no payment provider.");
  const returnUrl = manageUrl(runtime, handle, before);
  const booking = toBooking(handle, before, runtime.now());
  const opened = await runtime.payments.openCheckout({ booking, returnUrl, openMinutes: CHECKOUT_MINUTES });
  const { url: checkoutUrl, ...receiver } = opened;
  return { checkoutUrl, ...receiver };
}

/**
 * Settles a paid checkout: the booking becomes ACCEPTED. If its hold has expired, it reclaims the slot; if the slot is taken or past, the
 * day full or the booking cancelled, the payment is marked REFUND_DUE and refunded. Idempotent in any order of calls. `booking_not_found`. `paid`
 * names the payment at its provider. Returns "repeated" if the booking was accepted before.
 */
export async function settlePayment(
  runtime: Runtime,
  { paid, ...name }: BookingName & { paid?: NonNullable<Payment["paid"]> },
): Promise<"accepted" | "repeated" | "refund"> {
  let isFirst = false;
  const booking = await changeBooking(runtime, name, async (before) => {
    if (before.payment === null) throw new Fail("booking_not_found");
    isFirst = before.payment.status === "REQUIRED";
    if (!isFirst) return undefined;
    const payment = { ...before.payment, ...(paid ? { paid } : {}) };
    const refund = refundDue(runtime, before, payment);
    // A meeting that is paid within its hold may have begun, but not be over.
    const last = statusAt(before, runtime.now()) === "PENDING_PAYMENT" ? before.end : before.start;
    if (before.status === "CANCELLED" || Date.parse(last) <= runtime.now()) return refund;
    const bookable = bookableEventById(await readCatalogSnapshot(runtime, name.handle), before.eventTypeId);
    const dayLimit = bookable && dayLimitOf(bookable, Date.parse(before.start));
    return { ...accepted(runtime, before, payment), dayLimit, ifTaken: refund };
  });
  if (booking.payment?.status !== "PAID") return "refund";
  return isFirst ? "accepted" : "repeated";
}

function accepted(runtime: Runtime, before: BookingRecord, payment: Payment): Change {
  const at = timestamp(runtime);
  const booking: StoredBooking = { ...before, payment: { ...payment, status: "PAID" }, status: "ACCEPTED" };
  return { step: "paid", booking: { ...booking, holdUntil: null, cancelledBy: null, confirmedAt: at, updatedAt: at } };
}

/** Marks the payment for a refund; a booking that still awaited its payment has lost its slot. */
function refundDue(runtime: Runtime, before: BookingRecord, payment: Payment): Change {
  const booking: StoredBooking = { ...before, payment: { ...payment, status: "REFUND_DUE" } };
  if (before.status === "PENDING_PAYMENT") return { ...endedUnpaid(runtime, booking), step: "paidWithoutSlot" };
  return { step: "paidTooLate", booking: { ...booking, updatedAt: timestamp(runtime) } };
}

function endedUnpaid(runtime: Runtime, before: StoredBooking): Change {
  const why = { status: "REJECTED", cancelledBy: "service", updatedAt: timestamp(runtime) } as const;
  return { step: "endedUnpaid", booking: { ...before, ...why } };
}

/**
 * Records that the provider has refunded a payment, also before the payment itself is reported, which then settles nothing; does nothing if
 * the booking is gone, or a newer report than this one (`at`, in s) was recorded. Idempotent.
 */
export async function recordRefund(runtime: Runtime, name: BookingName, at: number): Promise<void> {
  await changeIfExists(runtime, name, async (before) => {
    const { payment } = before;
    if (payment === null || payment.status === "REFUNDED" || isOutdated(payment, at)) return undefined;
    await runtime.redis.srem(keys.unrefunded(name.handle), name.bookingUid);
    const change = refundReported(runtime, before, { ...payment, status: "REFUNDED", refundReportedAt: at });
    return payment.status === "REQUIRED" ? { ...change, step: "paidAndRefunded" } : change;
  });
}

/**
 * Remembers a refund that failed for `failedRefundJobs`, and mails its owners once: a due one, or one that the provider has reported as made
 * before it reports (`at`, in s) that it failed.
 */
export async function recordFailedRefund(
  runtime: Runtime,
  name: BookingName,
  { reason, at }: { reason: string; at?: number },
): Promise<void> {
  await changeIfExists(runtime, name, async (before) => {
    const { payment } = before;
    const isDue = payment?.status === "REFUND_DUE";
    const isUndone = payment?.status === "REFUNDED" && at !== undefined;
    if (!(isDue || isUndone) || isOutdated(payment, at)) {
      // It was reported as made since it was read as due.
      if (payment?.status === "REFUNDED") await runtime.redis.srem(keys.unrefunded(name.handle), name.bookingUid);
      return undefined;
    }
    runtime.log.error({ ...name, reason }, "payment.refund_failed");
    await runtime.redis.sadd(keys.unrefunded(name.handle), name.bookingUid);
    const reported = at === undefined ? {} : { refundReportedAt: at };
    const change = refundReported(runtime, before, { ...payment, status: "REFUND_DUE", ...reported });
    return { ...change, jobs: [mailJob(name.handle, before, { kind: "unrefunded", by: "owner" })] };
  });
}

/** True for a report that is older than the recorded one: they come in any order. */
function isOutdated({ refundReportedAt = 0 }: Payment, at = refundReportedAt): boolean {
  return at < refundReportedAt;
}

function refundReported(runtime: Runtime, before: BookingRecord, payment: Payment): Change {
  return { step: "updated", booking: { ...before, payment, updatedAt: timestamp(runtime) } };
}

/** The jobs that try the failed refunds of a handle again. */
export async function failedRefundJobs(runtime: Runtime, handle: string): Promise<Job[]> {
  const failed = await runtime.redis.smembers(keys.unrefunded(handle));
  const bookings = await readRecords<StoredBooking>(runtime.redis, failed, (uid) => keys.booking(handle, uid));
  const again = runtime.id("-");
  return bookings.flatMap((booking) => refundJobs(handle, booking, again));
}

/** Ends an expired payment hold: the booking becomes REJECTED and its slot free. Does nothing if it was paid or has ended otherwise. */
export async function expireHold(runtime: Runtime, name: BookingName): Promise<void> {
  let early: Job[] = [];
  await changeIfExists(runtime, name, (before) => {
    const isOver = statusAt(before, runtime.now()) !== "PENDING_PAYMENT";
    if (before.status === "PENDING_PAYMENT" && isOver) return endedUnpaid(runtime, before);
    early = expiryJobs(runtime, name.handle, before);
    return undefined;
  });
  // The id is new each time: a job can't schedule one with its own id.
  const again = early.map(({ id, delay = 0, ...job }) => ({ ...job, id: `${id}-${runtime.now()}`, delay: delay + 1 }));
  await runtime.queues.later(...again);
}

/** Ends a hold whose checkout can no longer be paid, before it expires. Does nothing if it was paid or has ended otherwise. */
export async function releaseHold(runtime: Runtime, name: BookingName): Promise<void> {
  await changeIfExists(runtime, name, (before) =>
    before.status === "PENDING_PAYMENT" ? endedUnpaid(runtime, before) : undefined,
  );
}
