import type { BookingAnswer, StoredBooking } from "../../schemas/scheduling.ts";
import { delayUntil } from "../platform/clock.ts";
import { Fail } from "../platform/errors.ts";
import type { Job, Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { retryOnConflict } from "../store/retry.ts";
import type { BookingRequest } from "./booking-request.ts";
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
import { replayOf } from "./repeats.ts";

/** Domain minutes for which an unpaid booking holds its slot, and minutes for which its checkout is open (docs/reference.md, "Payments"). */
export const HOLD_MINUTES = 35;
const CHECKOUT_MINUTES = 31;

/** The request whose booking holds its slot until it is paid. */
type HeldRequest = Pick<BookingRequest, "handle" | "bookingUid" | "idempotency">;

/** The job that ends the hold of an unpaid booking. */
export function expiryJobs(runtime: Pick<Runtime, "env" | "now">, handle: string, booking: StoredBooking): Job[] {
  const { bookingUid, status, holdUntil } = booking;
  if (status !== "PENDING_PAYMENT" || holdUntil === null) return [];
  const delay = delayUntil(runtime, Date.parse(holdUntil));
  return [job("scheduling.expire", `expire-${bookingUid}`, { handle, bookingUid }, { delay })];
}

/**
 * The answer to a booking that awaits its payment, with the address of its checkout. If the provider opens none, the slot is released and
 * a repeated request starts again: `service_unavailable`.
 */
export async function openCheckout(runtime: Runtime, request: HeldRequest): Promise<BookingAnswer> {
  const { handle, bookingUid } = request;
  return retryOnConflict(runtime.redis, keys.booking(handle, bookingUid), async () => {
    const before = await findBooking(runtime.redis, handle, bookingUid);
    if (before?.payment == null || statusAt(before, runtime.now()) !== "PENDING_PAYMENT")
      throw new Fail("scheduling_slot_unavailable", { detail: "The payment hold of this slot has expired." });
    const url = await checkoutOf(runtime, handle, before).catch((cause) => giveUp(runtime, request, { before, cause }));
    return noteCheckout(runtime, request, { before, url });
  });
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
