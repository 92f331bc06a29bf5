import type { Booking, BookingAnswer } from "../../schemas/scheduling.ts";
import { availableSlots, checkNonce, isOpen, reachOf } from "../engines/slots/slots.ts";
import { minute } from "../platform/clock.ts";
import { Fail } from "../platform/errors.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { retryOnConflict } from "../store/retry.ts";
import { openCheckout } from "./booking-payments.ts";
import {
  type BookingMove,
  type BookingRequest,
  type MoveRequest,
  movedBooking,
  type NewBooking,
  newBookingOf,
  type RequestedSlot,
  readBookingRequest,
  readMoveRequest,
} from "./booking-request.ts";
import { refreshOldBusy } from "./busy-calendars.ts";
import { type BookableEvent, dayLimitOf } from "./catalog.ts";
import { readStoredAnswer } from "./idempotency.ts";
import { commitBooking, findBooking, statusAt, type Transition, toBookingAnswer } from "./ledger.ts";
import { type CatalogEvent, findBookableEvent, slotRequestOf } from "./public-events.ts";
import { readTimes, type Times } from "./times.ts";

/**
 * Books a slot (docs/reference.md, "Bookings"). `event_type_not_found`, `booking_required_fields`, `invalid_booking_answers`,
 * `payment_provider_not_connected`, `scheduling_slot_unavailable`, `rate_limited`, `idempotency_conflict`,
 * `idempotency_in_progress`.
 */
export async function createBooking(runtime: Runtime, input: NewBooking, caller: Caller): Promise<BookingAnswer> {
  const request = readBookingRequest(runtime, input, caller);
  const earlier = await earlierAnswer(runtime, request);
  if (earlier) return earlier;
  const booked = await book(runtime, request);
  if ("answer" in booked) return booked.answer;
  const { booking } = booked;
  return booking.status === "PENDING_PAYMENT" ? openCheckout(runtime, request) : toBookingAnswer(booking);
}

/** The booking of a request, or the answer to the first request with its key, which may have just taken the slot. */
async function book(
  runtime: Runtime,
  request: BookingRequest,
): Promise<{ booking: Booking } | { answer: BookingAnswer }> {
  try {
    const make = (bookable: CatalogEvent) => bookingTransition(runtime, bookable, request);
    return { booking: await commitChecked(runtime, request, make) };
  } catch (error) {
    const isTaken = error instanceof Fail && /^(scheduling_slot_unavailable|idempotency_in_progress)$/.test(error.code);
    const answer = isTaken ? await earlierAnswer(runtime, request) : undefined;
    if (answer) return { answer };
    throw error;
  }
}

/**
 * Moves a booking to another slot of the same event type in one step; a booking that can't move keeps its slot.
 * `event_type_not_found`, `booking_not_found`, `booking_not_reschedulable`, `scheduling_slot_unavailable`, `rate_limited`.
 */
export async function rescheduleBooking(runtime: Runtime, input: BookingMove, caller: Caller): Promise<BookingAnswer> {
  const request = readMoveRequest(input, caller);
  return toBookingAnswer(
    await commitChecked(runtime, request, (bookable) => moveTransition(runtime, bookable, request)),
  );
}

/**
 * The response of an earlier request with the same key, or one that this request completes for it; undefined if there is none.
 * `event_type_not_found` if the event type is not public any more.
 */
async function earlierAnswer(runtime: Runtime, request: BookingRequest): Promise<BookingAnswer | undefined> {
  const { handle, eventSlug, idempotency } = request;
  const record = idempotency && (await runtime.redis.get(idempotency.key));
  if (!record) return undefined;
  await findBookableEvent(runtime, handle, eventSlug);
  const stored = readStoredAnswer(idempotency, record);
  if ("answer" in stored) return stored.answer;
  // The first request's process ended before it opened the checkout.
  const { bookingUid } = stored;
  const before = await findBooking(runtime.redis, handle, bookingUid);
  const isHeld = before && statusAt(before, runtime.now()) === "PENDING_PAYMENT";
  if (isHeld) return openCheckout(runtime, { handle, bookingUid, idempotency });
  await runtime.redis.del(idempotency.key);
  return undefined;
}

/**
 * Checks a request against the current catalog and busy times and commits the transition; retries after a concurrent change.
 * `event_type_not_found`; `scheduling_slot_unavailable` if the slot is not free; `idempotency_in_progress` if the key was used.
 */
async function commitChecked(
  runtime: Runtime,
  request: BookingRequest | MoveRequest,
  transitionOf: (bookable: CatalogEvent) => Promise<Transition>,
): Promise<Booking> {
  const { handle } = request;
  const refreshing = refreshOldBusy(runtime, handle);
  return retryOnConflict(runtime.redis, keys.booking(handle, request.bookingUid), async () => {
    const [bookable] = await Promise.all([findBookableEvent(runtime, handle, request.eventSlug), refreshing]);
    const result = await commitBooking(runtime, await transitionOf(bookable));
    if (result.kind === "written") return result.booking;
    if (result.kind === "repeated") throw new Fail("idempotency_in_progress", { retryAfter: 1 });
    if (result.kind !== "changed") throw new Fail("scheduling_slot_unavailable");
    return undefined;
  });
}

async function bookingTransition(
  runtime: Runtime,
  bookable: CatalogEvent,
  request: BookingRequest,
): Promise<Transition> {
  const booking = await newBookingOf(runtime, bookable, request);
  const { timeZone } = booking.attendee;
  await requireAvailable(runtime, bookable, { slot: request.slot, timeZone });
  const step = booking.payment ? "held" : booking.confirmedAt ? "accepted" : "requested";
  return { ...judgedBy(bookable, request), booking, step, idempotency: request.idempotency };
}

async function moveTransition(runtime: Runtime, bookable: CatalogEvent, request: MoveRequest): Promise<Transition> {
  const { handle, slot, bookingUid } = request;
  const before = await findBooking(runtime.redis, handle, bookingUid);
  if (before?.eventTypeId !== bookable.event.eventTypeId) throw new Fail("booking_not_found");
  const status = statusAt(before, runtime.now());
  if (status === "CANCELLED" || status === "REJECTED" || Date.parse(before.start) <= runtime.now())
    throw new Fail("booking_not_reschedulable");
  // A repeated request whose answer was lost: nothing moves, and nobody is told.
  if (slot.start === Date.parse(before.start) && slot.end === Date.parse(before.end))
    return { handle, booking: before, before, step: "updated", visitor: request.visitor };
  const booking = movedBooking(runtime, bookable, { request, before });
  await requireAvailable(runtime, bookable, { slot, timeZone: before.attendee.timeZone, moving: bookingUid });
  return {
    ...judgedBy(bookable, request),
    booking,
    before,
    step: "moved",
    about: { previous: booking.rescheduledFrom },
  };
}

/** The catalog and the limits by which a request for a slot is judged. */
function judgedBy(bookable: CatalogEvent, { handle, slot, visitor }: BookingRequest | MoveRequest) {
  return { handle, catalogVersion: bookable.snapshot.version, dayLimit: dayLimitOf(bookable, slot.start), visitor };
}

/**
 * `scheduling_slot_unavailable` for a slot that the slots route would not list, unless a nonce proves that it did. The visitor's zone may
 * align the slots too; a booking that is `moving` gives up its time.
 */
async function requireAvailable(
  runtime: Runtime,
  bookable: BookableEvent,
  { slot, timeZone, moving }: { slot: RequestedSlot; timeZone: string; moving?: string },
): Promise<void> {
  const { eventTypeId, version: revision } = bookable.event;
  const proof = checkNonce(runtime.env, { handle: bookable.handle, eventTypeId, revision }, slot);
  const isWhole = slot.end - slot.start === bookable.event.durationMinutes * minute;
  if (!isWhole || proof === "foreign") throw new Fail("scheduling_slot_unavailable");
  const requestOn = (clock: string, times: Times, except?: string) =>
    slotRequestOf(bookable, times, { clock, now: runtime.now(), except });
  // The script that books the slot checks that it is free, and that its day is not full.
  if (proof === "offered" && isOpen(requestOn(timeZone, { blocks: [], busy: [] }), slot.start)) return;
  const window = { from: slot.start, to: slot.start + 1 };
  const times = await readTimes(runtime.redis, bookable.handle, reachOf(bookable.event, window));
  // A visitor who moves a booking saw the slots that exclude its own time, or those that ignore it.
  const isListed = [bookable.timeZone, timeZone].some((clock) =>
    [moving, undefined].some((except) => availableSlots(requestOn(clock, times, except), window).at.length > 0),
  );
  if (!isListed) throw new Fail("scheduling_slot_unavailable");
}
