import type { Booking, StoredBooking } from "../../schemas/scheduling.ts";
import { Fail } from "../platform/errors.ts";
import type { Job, Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { retryOnConflict } from "../store/retry.ts";
import { mailJob, reminderJobs } from "./booking-mails.ts";
import { changeIfKept, ended } from "./bookings.ts";
import { expiryJobs } from "./checkout.ts";
import { type BookingRecord, commitBooking, findBooking, statusAt, type Transition, timestamp } from "./ledger.ts";
import { refundJobs } from "./refunds.ts";

/** A payment at its provider: the account that has it, and its id there. */
type Paid = NonNullable<NonNullable<StoredBooking["payment"]>["paid"]>;

/** The result of a payment: the booking is accepted, it was accepted before, or the payment must be refunded. */
type Settlement = "accepted" | "repeated" | "refund";

/**
 * Settles a paid checkout: the booking becomes ACCEPTED. If its hold has expired, it reclaims the slot; if the slot is taken or the
 * booking was cancelled, the payment is marked REFUND_DUE and refunded. Idempotent in any order of calls. `booking_not_found`.
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

type BookingName = Pick<Booking, "handle" | "bookingUid">;

/** Records that the provider has refunded a payment; does nothing if the booking is gone. Idempotent. */
export async function noteRefund(runtime: Runtime, booking: BookingName): Promise<void> {
  await changeIfKept(runtime, booking, (before) => {
    if (before.payment?.status !== "PAID" && before.payment?.status !== "REFUND_DUE") return undefined;
    const payment = { ...before.payment, status: "REFUNDED" as const };
    return { booking: { ...before, payment, updatedAt: timestamp(runtime) }, slot: "hold", events: [], jobs: [] };
  });
}

/** Ends an expired payment hold: the booking becomes REJECTED and its slot free. Does nothing if it was paid or has ended otherwise. */
export async function expireHold(runtime: Runtime, booking: BookingName): Promise<void> {
  let early: Job[] = [];
  await changeIfKept(runtime, booking, (before) => {
    const isOver = statusAt(before, runtime.now()) !== "PENDING_PAYMENT";
    if (before.status === "PENDING_PAYMENT" && isOver) return rejected(runtime, before);
    early = expiryJobs(runtime, booking.handle, before);
    return undefined;
  });
  // The id is new each time: a job can't schedule one with its own id.
  const again = early.map(({ id, delay = 0, ...job }) => ({ ...job, id: `${id}-${runtime.now()}`, delay: delay + 1 }));
  await runtime.queues.later(...again);
}

/** Ends a hold whose checkout can no longer be paid, before it expires. Does nothing if it was paid or has ended otherwise. */
export async function releaseHold(runtime: Runtime, booking: BookingName): Promise<void> {
  await changeIfKept(runtime, booking, (before) =>
    before.status === "PENDING_PAYMENT" ? rejected(runtime, before) : undefined,
  );
}

/** The end of an unpaid booking. */
function rejected(runtime: Runtime, before: BookingRecord): Pick<Transition, "booking" | "slot" | "events" | "jobs"> {
  const why = { status: "REJECTED", cancelledBy: "service", updatedAt: timestamp(runtime) } as const;
  return { booking: { ...before, ...why }, ...ended, jobs: [] };
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
    slot: "reclaim",
    events: ["scheduling.payment.succeeded", "scheduling.booking.confirmed"],
    jobs: [mailJob(handle, booking, { kind: "confirmed" }), ...reminderJobs(runtime, handle, booking)],
  };
}

/** Marks the payment for a refund and informs payer and owner; a booking that still awaited its payment has lost its slot. */
function refundTransition(runtime: Runtime, handle: string, { before, paid }: PaidBooking): Transition {
  const payment = paymentWith({ before, paid }, "REFUND_DUE");
  const booking: StoredBooking = { ...before, payment, updatedAt: timestamp(runtime) };
  const jobs = [mailJob(handle, booking, { kind: "refunded" }), ...refundJobs(handle, booking)];
  if (before.status !== "PENDING_PAYMENT") return { handle, before, booking, slot: "hold", events: [], jobs };
  return {
    handle,
    before,
    booking: { ...booking, status: "REJECTED", cancelledBy: "service" },
    ...ended,
    jobs,
  };
}
