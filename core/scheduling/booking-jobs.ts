import type { JobData } from "../../schemas/jobs.ts";
import type { Booking, StoredBooking } from "../../schemas/scheduling.ts";
import type { WebhookEventType } from "../../schemas/webhooks.ts";
import { delayUntil, minute } from "../platform/clock.ts";
import type { Job, Runtime } from "../platform/runtime.ts";
import { job } from "../store/outbox.ts";

interface Step {
  /** Claims the slot, which must be free; reclaims it, which succeeds too if the booking still has it; holds it as it is; or releases it. */
  slot: "claim" | "reclaim" | "hold" | "release";
  /** Written if the handle has an endpoint for them. */
  events: WebhookEventType[];
  /** Sent to everyone. A mail about an owner's change doesn't count as caused by a visitor. */
  mail?: Pick<JobData<"scheduling.mail">, "kind" | "by">;
}

const booked = "scheduling.booking.created";
const confirmed = "scheduling.booking.confirmed";
const paid = "scheduling.payment.succeeded";
const ended: Pick<Step, "slot" | "events"> = { slot: "release", events: ["scheduling.booking.cancelled"] };

/** All steps. Nobody is informed of a booking before its payment, so an unpaid one ends without a mail. */
export const steps = {
  accepted: { slot: "claim", events: [booked, confirmed], mail: { kind: "confirmed" } },
  requested: { slot: "claim", events: [booked], mail: { kind: "requested" } },
  held: { slot: "claim", events: [booked, "scheduling.payment.required"] },
  moved: { slot: "claim", events: ["scheduling.booking.rescheduled"], mail: { kind: "rescheduled" } },
  confirmed: { slot: "hold", events: [confirmed], mail: { kind: "confirmed", by: "owner" } },
  paid: { slot: "reclaim", events: [paid, confirmed], mail: { kind: "confirmed" } },
  declined: { ...ended, mail: { kind: "declined", by: "owner" } },
  cancelledByOwner: { ...ended, mail: { kind: "cancelled", by: "owner" } },
  cancelledByVisitor: { ...ended, mail: { kind: "cancelled" } },
  endedUnpaid: ended,
  /** The payment comes after the end of its booking, or ends a booking whose slot is lost. */
  paidTooLate: { slot: "hold", events: [paid], mail: { kind: "refunded" } },
  paidWithoutSlot: { ...ended, events: [paid, ...ended.events], mail: { kind: "refunded" } },
  /** The refund is reported before its payment, which is not told of again. */
  paidAndRefunded: { slot: "hold", events: [paid] },
  degraded: { slot: "hold", events: ["scheduling.sync.degraded"] },
  updated: { slot: "hold", events: [] },
} satisfies Record<string, Step>;

export type StepName = keyof typeof steps;

type Clock = Pick<Runtime, "env" | "now">;

/** The jobs of a step, by the booking after it. */
export function stepJobs(
  runtime: Clock,
  handle: string,
  { step, booking }: { step: StepName; booking: StoredBooking },
): Job[] {
  const { mail, slot }: Step = steps[step];
  if (mail === undefined && slot === "hold") return [];
  const isUnpaid = booking.status === "PENDING_PAYMENT";
  const mails = mail === undefined || isUnpaid ? [] : [mailJob(handle, booking, mail)];
  return [...mails, ...openJobs(runtime, handle, booking), ...closeJobs(handle, booking)];
}

/** The jobs that a booking still needs, whatever step led to it: its reminder, the end of its unpaid hold, its due refund. */
export function openJobs(runtime: Clock, handle: string, booking: StoredBooking): Job[] {
  return [
    ...reminderJobs(runtime, handle, booking),
    ...expiryJobs(runtime, handle, booking),
    ...refundJobs(handle, booking),
  ];
}

/** The job of a mail about a booking. */
export function mailJob(handle: string, { bookingUid, sequence }: StoredBooking, mail: NonNullable<Step["mail"]>): Job {
  const id = `mail-${bookingUid}-${mail.kind}-${sequence}`;
  return job("scheduling.mail", id, { handle, bookingUid, sequence, ...mail });
}

/** The reminder job of an accepted booking, if its event type has reminders and there is time left. */
function reminderJobs(runtime: Clock, handle: string, booking: StoredBooking): Job[] {
  const { reminderMinutes, start, status } = booking;
  if (reminderMinutes === null || status !== "ACCEPTED") return [];
  const due = Date.parse(start) - reminderMinutes * minute;
  if (due <= runtime.now()) return [];
  return [{ ...mailJob(handle, booking, { kind: "reminder" }), delay: delayUntil(runtime, due) }];
}

/** The job that ends the hold of an unpaid booking. */
export function expiryJobs(runtime: Clock, handle: string, booking: StoredBooking): Job[] {
  const { bookingUid, status, holdUntil } = booking;
  if (status !== "PENDING_PAYMENT" || holdUntil === null) return [];
  const delay = delayUntil(runtime, Date.parse(holdUntil));
  return [job("scheduling.expire", `expire-${bookingUid}`, { handle, bookingUid }, { delay })];
}

/** The job that closes the checkout of a booking that was cancelled unpaid. */
function closeJobs(handle: string, { bookingUid, status, payment }: StoredBooking): Job[] {
  const isOpen = status === "CANCELLED" && payment?.status === "REQUIRED" && payment.session !== undefined;
  return isOpen ? [job("payments.close", `close-${bookingUid}`, { handle, bookingUid })] : [];
}

/** The job that refunds a due payment. A booking is paid once, so it has one, besides those that try `again`, each with its own word. */
export function refundJobs(
  handle: string,
  { bookingUid, payment }: Pick<Booking, "bookingUid" | "payment"> | StoredBooking,
  again = "",
): Job[] {
  const isDue = payment?.status === "REFUND_DUE";
  return isDue ? [job("payments.refund", `refund-${bookingUid}${again}`, { handle, bookingUid })] : [];
}
