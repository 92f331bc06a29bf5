import type { BookingAnswer, bookingMove, newBooking } from "../../schemas/scheduling.ts";
import type { Infer } from "../../schemas/schema.ts";
import { Fail } from "../platform/errors.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { retryOnConflict } from "../store/retry.ts";
import { type BookingRequest, type MoveRequest, readBookingRequest, readMoveRequest } from "./booking-request.ts";
import { openCheckout } from "./checkout.ts";
import {
  type BookingRecord,
  type CommitResult,
  commitBooking,
  findBooking,
  statusAt,
  type Transition,
  toBookingAnswer,
} from "./ledger.ts";
import { type Bookable, findBookableEvent } from "./offers.ts";
import { parseStoredAnswer, readStoredAnswer, replayed } from "./repeats.ts";
import { requireAvailable } from "./slot-check.ts";
import { creation, movement, newBookingOf } from "./slot-transitions.ts";
import { refreshOldBusy } from "./times.ts";

/**
 * Books a slot (docs/reference.md, "Bookings"). `event_type_not_found`, `booking_required_fields`, `invalid_booking_answers`,
 * `payment_provider_not_connected`, `scheduling_slot_unavailable`, `rate_limited`, `idempotency_conflict`,
 * `idempotency_in_progress`.
 */
export async function createBooking(
  runtime: Runtime,
  input: Infer<typeof newBooking>,
  caller: Caller,
): Promise<BookingAnswer> {
  const request = readBookingRequest(runtime, input, caller);
  const earlier = await earlierAnswer(runtime, request);
  if (earlier) return earlier;
  try {
    return await book(runtime, request);
  } catch (error) {
    // The first request with this key may have just taken the slot.
    const isTaken = error instanceof Fail && error.code === "scheduling_slot_unavailable";
    const first = isTaken ? await earlierAnswer(runtime, request) : undefined;
    if (first) return first;
    throw error;
  }
}

/**
 * Moves a booking to another slot of the same event type in one step; a booking that can't move keeps its slot.
 * `event_type_not_found`, `booking_not_found`, `booking_not_reschedulable`, `scheduling_slot_unavailable`, `rate_limited`.
 */
export async function rescheduleBooking(
  runtime: Runtime,
  input: Infer<typeof bookingMove>,
  caller: Caller,
): Promise<BookingAnswer> {
  const request = readMoveRequest(input, caller);
  const result = await commitChecked(runtime, request, (found) => moveTransition(runtime, found, request));
  if (result.kind === "written") return toBookingAnswer(result.booking);
  throw new Fail("scheduling_slot_unavailable");
}

/** The response of an earlier request with the same key, or one that this request completes for it. */
async function earlierAnswer(runtime: Runtime, request: BookingRequest): Promise<BookingAnswer | undefined> {
  if (request.idempotency === undefined) return undefined;
  const stored = await readStoredAnswer(runtime, request.idempotency);
  if (stored === undefined) return undefined;
  const answer = replayed(stored);
  if (answer || !("bookingUid" in stored)) return answer;
  // The first request's process ended before it opened the checkout.
  const before = await findBooking(runtime.redis, request.handle, stored.bookingUid);
  const isHeld = before && statusAt(before, runtime.now()) === "PENDING_PAYMENT";
  if (isHeld) return openCheckout(runtime, { ...request, bookingUid: stored.bookingUid });
  await runtime.redis.del(request.idempotency.key);
  return undefined;
}

async function book(runtime: Runtime, request: BookingRequest): Promise<BookingAnswer> {
  const result = await commitChecked(runtime, request, (found) => bookingTransition(runtime, found, request));
  if (result.kind === "written")
    return result.booking.status === "PENDING_PAYMENT"
      ? openCheckout(runtime, request)
      : toBookingAnswer(result.booking);
  const answer = request.idempotency && replayed(parseStoredAnswer(request.idempotency, result.record));
  if (answer) return answer;
  throw new Fail("idempotency_in_progress", { retryAfter: 1 });
}

/**
 * Checks a request against the current catalog and busy times and commits the transition; retries after a concurrent change.
 * `event_type_not_found`; `scheduling_slot_unavailable` if the slot is not free.
 */
async function commitChecked(
  runtime: Runtime,
  request: BookingRequest | MoveRequest,
  transitionOf: (found: Bookable) => Promise<Transition>,
): Promise<Extract<CommitResult, { kind: "written" | "repeated" }>> {
  const { handle } = request;
  const refreshing = refreshOldBusy(runtime, handle);
  return retryOnConflict(runtime.redis, keys.booking(handle, request.bookingUid), async () => {
    const [found] = await Promise.all([findBookableEvent(runtime, handle, request.eventSlug), refreshing]);
    const result = await commitBooking(runtime, await transitionOf(found));
    if (result.kind === "written" || result.kind === "repeated") return result;
    if (result.kind !== "changed") throw new Fail("scheduling_slot_unavailable");
    return undefined;
  });
}

async function bookingTransition(runtime: Runtime, found: Bookable, request: BookingRequest): Promise<Transition> {
  const booking = await newBookingOf(runtime, found.bookable, request);
  const { timeZone } = booking.attendee;
  await requireAvailable(runtime, found.bookable, { slot: request.slot, timeZone });
  return creation(runtime, found, { request, booking });
}

async function moveTransition(runtime: Runtime, found: Bookable, request: MoveRequest): Promise<Transition> {
  const { handle, slot, bookingUid } = request;
  const before = await findBooking(runtime.redis, handle, bookingUid);
  if (before?.eventTypeId !== found.bookable.event.eventTypeId) throw new Fail("booking_not_found");
  requireMovable(before, runtime.now());
  const transition = movement(runtime, found, { request, before });
  await requireAvailable(runtime, found.bookable, { slot, timeZone: before.attendee.timeZone, moving: bookingUid });
  return transition;
}

function requireMovable(before: BookingRecord, now: number): void {
  const status = statusAt(before, now);
  if (status === "CANCELLED" || status === "REJECTED" || Date.parse(before.start) <= now)
    throw new Fail("booking_not_reschedulable");
}
