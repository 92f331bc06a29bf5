import { type Booking, type StoredBooking, usualRefundMinutes } from "../../schemas/scheduling.ts";
import type { Job } from "../platform/runtime.ts";
import { minute } from "../platform/zones.ts";
import { job } from "../store/outbox.ts";

type Paid = Pick<StoredBooking, "payment" | "start">;

/** A payment as owner and visitor see it: the end of the visitor's refund period, and whether it still runs. */
export function presentPayment(booking: Paid, now: number): Booking["payment"] {
  if (booking.payment === null) return null;
  const { refundUntilMinutes = usualRefundMinutes, paid: _paid, ...payment } = booking.payment;
  const until = Date.parse(booking.start) - refundUntilMinutes * minute;
  return {
    ...payment,
    refundUntil: new Date(until).toISOString(),
    refundable: payment.status === "PAID" && now <= until,
  };
}

/** The payment of a booking that ends: a paid one must be refunded if that is due. */
export function endedPayment({ payment }: Paid, isDue: boolean): StoredBooking["payment"] {
  return payment?.status === "PAID" && isDue ? { ...payment, status: "REFUND_DUE" } : payment;
}

/** The job that refunds a due payment; a booking is paid once, so it has one. */
export function refundJobs(handle: string, { bookingUid, payment }: StoredBooking): Job[] {
  return payment?.status === "REFUND_DUE"
    ? [job("payments.refund", `refund-${bookingUid}`, { handle, bookingUid })]
    : [];
}
