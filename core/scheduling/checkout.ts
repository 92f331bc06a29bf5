import type { BookingAnswer } from "../../schemas/scheduling.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { manageUrl } from "./event-types.ts";
import {
  toBookingAnswer,
  type Transition,
  commitBooking,
  forget,
  type BookingRecord,
  findBooking,
  toBooking,
  timestamp,
  statusAt,
} from "./ledger.ts";
import { doneRecord, type IdempotencyRecord } from "./repeats.ts";

/** Domain minutes for which an unpaid booking holds its slot, and minutes for which its checkout is open (docs/reference.md, "Payments"). */
export const HOLD_MINUTES = 35;
export const CHECKOUT_MINUTES = 31;

/** Attempts to record a checkout while the booking changes. */
const MAX_ATTEMPTS = 10;

/**
 * The response to a booking that awaits its payment, with the address of its checkout. If no checkout can be created, the slot is released,
 * nothing is stored for repeated requests, and it throws `service_unavailable`.
 */
export async function openCheckout(
  runtime: Runtime,
  handle: string,
  asked: { bookingUid: string; repeatable: IdempotencyRecord | undefined },
): Promise<BookingAnswer> {
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const kept = await findBooking(runtime.redis, handle, asked.bookingUid);
    if (kept?.payment == null || statusAt(kept, runtime.now()) !== "PENDING_PAYMENT") break;
    const url = await checkoutOf(runtime, handle, kept).catch((cause) =>
      giveUp(runtime, handle, { kept, cause, ...asked }),
    );
    const answer = await noteCheckout(runtime, handle, { kept, url, repeatable: asked.repeatable });
    if (answer) return answer;
  }
  throw new Fail("scheduling_slot_unavailable", { detail: "The payment hold of this slot has expired." });
}

async function checkoutOf(runtime: Runtime, handle: string, kept: BookingRecord): Promise<string> {
  if (runtime.payments === undefined) throw new Error("There is no payment provider.");
  const { amountMinor, currency } = kept.payment as NonNullable<BookingRecord["payment"]>;
  const returnUrl = manageUrl(runtime, handle, kept);
  const booking = toBooking(handle, kept, runtime.now());
  const order = { handle, booking, amountMinor, currency, returnUrl, openMinutes: CHECKOUT_MINUTES };
  return (await runtime.payments.openCheckout(order)).url;
}

/** Releases the slot; the visitor may try again. */
async function giveUp(
  runtime: Runtime,
  handle: string,
  left: { kept: BookingRecord; cause: unknown; repeatable: IdempotencyRecord | undefined },
): Promise<never> {
  const { kept, cause, repeatable } = left;
  runtime.log.warn({ handle, error: (cause as Error)?.message }, "payment.checkout_failed");
  await commitBooking(runtime, {
    handle,
    booking: { ...kept, status: "REJECTED", holdUntil: null, cancelledBy: "service", updatedAt: timestamp(runtime) },
    before: kept,
    time: "free",
    events: ["scheduling.booking.cancelled"],
    jobs: [],
    record: repeatable && { key: repeatable.key, value: forget },
  });
  throw new Fail("service_unavailable", { retryAfter: 5, detail: "The payment provider is not responding." }, cause);
}

/** Stores the address of the checkout and the response; undefined if the booking has changed. */
async function noteCheckout(
  runtime: Runtime,
  handle: string,
  made: { kept: BookingRecord; url: string; repeatable: IdempotencyRecord | undefined },
): Promise<BookingAnswer | undefined> {
  const { kept, url, repeatable } = made;
  const payment = { ...(kept.payment as NonNullable<BookingRecord["payment"]>), checkoutUrl: url };
  const booking = { ...kept, payment };
  const answer = toBookingAnswer(toBooking(handle, { ...booking, version: kept.version + 1 }, runtime.now()));
  const record = repeatable && doneRecord(repeatable, answer);
  const entry: Transition = { handle, booking, before: kept, time: "keep", events: [], jobs: [], record };
  return (await commitBooking(runtime, entry)).kind === "written" ? answer : undefined;
}
