import type { BookingAnswer } from "../../schemas/scheduling.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { manageUrl } from "./event-types.ts";
import {
  type BookingRecord,
  commitBooking,
  findBooking,
  statusAt,
  timestamp,
  toBooking,
  toBookingAnswer,
} from "./ledger.ts";
import { type IdempotencyRecord, replayOf } from "./repeats.ts";

/** Domain minutes for which an unpaid booking holds its slot, and minutes for which its checkout is open (docs/reference.md, "Payments"). */
export const HOLD_MINUTES = 35;
const CHECKOUT_MINUTES = 31;

/** Attempts to record a checkout while the booking changes. */
const MAX_ATTEMPTS = 10;

/** The request whose booking holds its slot until it is paid. */
interface HeldRequest {
  handle: string;
  bookingUid: string;
  idempotency: IdempotencyRecord | undefined;
}

/**
 * The answer to a booking that awaits its payment, with the address of its checkout. If the provider opens none, the slot is released and
 * a repeated request starts again: `service_unavailable`.
 */
export async function openCheckout(runtime: Runtime, request: HeldRequest): Promise<BookingAnswer> {
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const before = await findBooking(runtime.redis, request.handle, request.bookingUid);
    if (before?.payment == null || statusAt(before, runtime.now()) !== "PENDING_PAYMENT") break;
    const url = await checkoutOf(runtime, request.handle, before).catch((cause) =>
      giveUp(runtime, request, { before, cause }),
    );
    const answer = await noteCheckout(runtime, request, { before, url });
    if (answer) return answer;
  }
  throw new Fail("scheduling_slot_unavailable", { detail: "The payment hold of this slot has expired." });
}

async function checkoutOf(runtime: Runtime, handle: string, before: BookingRecord): Promise<string> {
  if (runtime.payments === undefined) throw new Error("There is no payment provider.");
  const { amountMinor, currency } = before.payment as NonNullable<BookingRecord["payment"]>;
  const returnUrl = manageUrl(runtime, handle, before);
  const booking = toBooking(handle, before, runtime.now());
  const order = { handle, booking, amountMinor, currency, returnUrl, openMinutes: CHECKOUT_MINUTES };
  return (await runtime.payments.openCheckout(order)).url;
}

/** Releases the slot; the visitor may try again. */
async function giveUp(
  runtime: Runtime,
  request: HeldRequest,
  { before, cause }: { before: BookingRecord; cause: unknown },
): Promise<never> {
  runtime.log.warn({ handle: request.handle, error: (cause as Error)?.message }, "payment.checkout_failed");
  await commitBooking(runtime, {
    handle: request.handle,
    booking: { ...before, status: "REJECTED", holdUntil: null, cancelledBy: "service", updatedAt: timestamp(runtime) },
    before,
    slot: "release",
    events: ["scheduling.booking.cancelled"],
    jobs: [],
    replay: replayOf(request, "nothing"),
  });
  throw new Fail("service_unavailable", { retryAfter: 5, detail: "The payment provider is not responding." }, cause);
}

/** Writes the address of the checkout and the answer; undefined if the booking has changed meanwhile. */
async function noteCheckout(
  runtime: Runtime,
  request: HeldRequest,
  { before, url }: { before: BookingRecord; url: string },
): Promise<BookingAnswer | undefined> {
  const payment = { ...(before.payment as NonNullable<BookingRecord["payment"]>), checkoutUrl: url };
  const result = await commitBooking(runtime, {
    handle: request.handle,
    booking: { ...before, payment },
    before,
    slot: "hold",
    events: [],
    jobs: [],
    replay: replayOf(request, "answer"),
  });
  return result.kind === "written" ? toBookingAnswer(result.booking) : undefined;
}
