import type { StoredBooking } from "../../schemas/scheduling.ts";
import { delayUntil } from "../platform/clock.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { retryOnConflict } from "../store/retry.ts";
import { mailJob, reminderJobs } from "./booking-mails.ts";
import { changeBooking, ended } from "./bookings.ts";
import { type BookingRecord, commitBooking, findBooking, statusAt, timestamp, type Transition } from "./ledger.ts";
import { refundJobs } from "./refunds.ts";

/** A payment at its provider: the account that has it, and its id there. */
type Paid = NonNullable<NonNullable<StoredBooking["payment"]>["paid"]>;

/** What became of a payment: the booking stands, it stood already, or the money must go back. */
export type Settlement = "accepted" | "repeated" | "refund";

/**
 * A checkout was paid: the booking is ACCEPTED. Where its hold has ended it takes the slot again if that is still free; where it
 * can't, or was cancelled, the payment is marked REFUND_DUE and goes back. Any number of calls, in any order, come to one
 * result. `booking_not_found`.
 */
export async function settlePayment(
  runtime: Runtime,
  { handle, bookingUid, paid }: { handle: string; bookingUid: string; paid?: Paid },
): Promise<Settlement> {
  return retryOnConflict(runtime.redis, keys.booking(handle, bookingUid), async () => {
    const before = await findBooking(runtime.redis, handle, bookingUid);
    if (before?.payment == null) throw new Fail("booking_not_found");
    if (before.payment.status !== "REQUIRED") return before.payment.status === "PAID" ? "repeated" : "refund";
    const isLate = before.status === "CANCELLED" || Date.parse(before.start) <= runtime.now();
    const settled = isLate
      ? undefined
      : await commitBooking(runtime, paidTransition(runtime, handle, { before, paid }));
    if (settled?.kind === "written") return "accepted";
    if (settled?.kind === "changed") return undefined;
    return (await commitBooking(runtime, refundTransition(runtime, handle, { before, paid }))).kind === "written"
      ? "refund"
      : undefined;
  });
}

/** Notes that the provider has given a payment back; nothing for a booking that is gone. Any number of calls come to one result. */
export async function noteRefund(runtime: Runtime, booking: { handle: string; bookingUid: string }): Promise<void> {
  if ((await findBooking(runtime.redis, booking.handle, booking.bookingUid)) === undefined) return;
  await changeBooking(runtime, booking, (before) => {
    if (before.payment?.status !== "PAID" && before.payment?.status !== "REFUND_DUE") return undefined;
    const payment = { ...before.payment, status: "REFUNDED" as const };
    return { booking: { ...before, payment, updatedAt: timestamp(runtime) }, time: "keep", events: [], jobs: [] };
  });
}

/** An unpaid booking's hold is over: it is REJECTED and its slot free. Does nothing where it was paid or has ended otherwise. */
export async function expireHold(
  runtime: Runtime,
  { handle, bookingUid }: { handle: string; bookingUid: string },
): Promise<void> {
  await retryOnConflict(runtime.redis, keys.booking(handle, bookingUid), async () => {
    const before = await findBooking(runtime.redis, handle, bookingUid);
    if (before?.status !== "PENDING_PAYMENT") return "over";
    if (statusAt(before, runtime.now()) !== "REJECTED") {
      await expireLater(runtime, handle, before);
      return "later";
    }
    const why = { cancelledBy: "service" as const, updatedAt: timestamp(runtime) };
    const booking: StoredBooking = { ...before, ...why, status: "REJECTED" };
    const written = await commitBooking(runtime, { handle, before, booking, ...ended, jobs: [] });
    return written.kind === "written" ? "expired" : undefined;
  });
}

interface PaidBooking {
  before: BookingRecord;
  paid: Paid | undefined;
}

function paymentWith({ before, paid }: PaidBooking, status: "PAID" | "REFUND_DUE"): BookingRecord["payment"] {
  return { ...(before.payment as NonNullable<BookingRecord["payment"]>), status, ...(paid ? { paid } : {}) };
}

function paidTransition(runtime: Runtime, handle: string, { before, paid }: PaidBooking): Transition {
  const at = timestamp(runtime);
  const payment = paymentWith({ before, paid }, "PAID");
  const base: StoredBooking = { ...before, payment, status: "ACCEPTED", holdUntil: null };
  const booking: StoredBooking = { ...base, cancelledBy: null, confirmedAt: at, updatedAt: at };
  return {
    handle,
    before,
    booking,
    time: "settle",
    events: ["scheduling.payment.succeeded", "scheduling.booking.confirmed"],
    jobs: [mailJob(handle, booking, "confirmed"), ...reminderJobs(runtime, handle, booking)],
  };
}

/** The money must go back, and payer and owner are told; a booking that was still waiting has lost its slot. */
function refundTransition(runtime: Runtime, handle: string, { before, paid }: PaidBooking): Transition {
  const payment = paymentWith({ before, paid }, "REFUND_DUE");
  const booking: StoredBooking = { ...before, payment, updatedAt: timestamp(runtime) };
  const jobs = [mailJob(handle, booking, "refunded"), ...refundJobs(handle, booking)];
  if (before.status !== "PENDING_PAYMENT") return { handle, before, booking, time: "keep", events: [], jobs };
  return {
    handle,
    before,
    booking: { ...booking, status: "REJECTED", cancelledBy: "service" },
    ...ended,
    jobs,
  };
}

/** The job came before its time, or the hold was made longer. */
async function expireLater(runtime: Runtime, handle: string, before: BookingRecord): Promise<void> {
  const { bookingUid, holdUntil } = before;
  const delay = delayUntil(runtime, Date.parse(holdUntil as string)) + 1;
  await runtime.queues.later(
    job("scheduling.expire", `expire-${bookingUid}-${before.version}`, { handle, bookingUid }, { delay }),
  );
}
