import { type bookingMove, type newBooking, REFUND_MINUTES, type StoredBooking } from "../../schemas/scheduling.ts";
import type { Input } from "../../schemas/schema.ts";
import { canonicalAddress } from "../platform/address.ts";
import { sameWord } from "../platform/characters.ts";
import { day, delayUntil, minute } from "../platform/clock.ts";
import { Fail } from "../platform/errors.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";
import { HOLD_MINUTES } from "./booking-payments.ts";
import type { BookableEvent } from "./catalog.ts";
import { bookingPrice } from "./event-types.ts";
import { checkAnswers } from "./field-answers.ts";
import { idempotencyRecordOf } from "./idempotency.ts";
import { type BookingRecord, limited, movedPayment, timestamp } from "./ledger.ts";

/** Moves of one booking by its visitor within 24 hours of domain time. */
const MAX_MOVES_A_DAY = 5;

/** A requested slot: start and end in ms, and the proof that the slots route listed it. */
export interface RequestedSlot {
  start: number;
  end: number;
  nonce: string | undefined;
}

export type NewBooking = Input<"handle" | "eventSlug", typeof newBooking>;
export type BookingMove = Input<"handle" | "eventSlug", typeof bookingMove>;

export type BookingRequest = ReturnType<typeof readBookingRequest>;

/** Reads a request for a booking (docs/reference.md, "Bookings"); `booking_required_fields` without a slot. */
export function readBookingRequest({ id }: Runtime, input: NewBooking, visitor: Caller) {
  const idempotency = idempotencyRecordOf(input, visitor);
  return { ...input, bookingUid: id(""), slot: slotOf(input), guests: guestsOf(input), visitor, idempotency };
}

export type MoveRequest = ReturnType<typeof readMoveRequest>;

/** Reads a request to move a booking; `booking_required_fields` without a slot. */
export function readMoveRequest(input: BookingMove, visitor: Caller) {
  return { ...input, slot: slotOf(input), visitor };
}

/** `slot`, or start and end at the top. */
function slotOf(input: Pick<NewBooking, "slot" | "start" | "end">): RequestedSlot {
  const slot = { start: input.slot?.start ?? input.start, end: input.slot?.end ?? input.end };
  if (slot.start !== undefined && slot.end !== undefined)
    return { start: Date.parse(slot.start), end: Date.parse(slot.end), nonce: input.slot?.bookingNonce ?? undefined };
  const missing = Object.entries(slot).filter(([, value]) => value === undefined);
  const errors = missing.map(([name]) => ({ path: `/slot/${name}`, message: "is required" }));
  throw new Fail("booking_required_fields", { errors });
}

/** Each guest once, and not the attendee again. */
function guestsOf(input: NewBooking): StoredBooking["guests"] {
  const list = input.guests.map((guest) => (typeof guest === "string" ? { email: guest } : guest));
  const seen = new Set([canonicalAddress(input.attendee.email)]);
  return list.filter(({ email }) => !seen.has(canonicalAddress(email)) && seen.add(canonicalAddress(email)));
}

/** The booking that a request creates; `invalid_booking_answers`, `payment_provider_not_connected`. */
export async function newBookingOf(
  runtime: Runtime,
  bookable: BookableEvent,
  request: BookingRequest,
): Promise<StoredBooking> {
  const answers = checkAnswers(bookable.event.bookingFields, request.answers);
  const price = await bookingPrice(runtime, bookable);
  const { event, timeZone } = bookable;
  const { name, email } = request.attendee;
  const at = timestamp(runtime);
  const location = locationOf(event, request.location?.type);
  const { refundUntilMinutes = REFUND_MINUTES } = event.payment;
  const isAccepted = !event.confirmationRequired && price === null;
  return {
    bookingUid: request.bookingUid,
    eventTypeId: event.eventTypeId,
    eventSlug: event.slug,
    title: event.title,
    // Payment takes precedence over confirmation (docs/reference.md, "Bookings").
    status: price ? "PENDING_PAYMENT" : isAccepted ? "ACCEPTED" : "PENDING",
    ...timesOf(request.slot),
    durationMinutes: event.durationMinutes,
    timeZone,
    attendee: { name, email, timeZone: request.attendee.timeZone ?? timeZone },
    guests: request.guests,
    answers,
    tracking: request.tracking ?? null,
    location,
    meetingUrl: linkOf(location),
    language: request.language ?? request.visitorLanguage ?? null,
    sequence: 0,
    syncStatus: "OK",
    payment: price && { ...price, refundUntilMinutes, status: "REQUIRED", checkoutUrl: null },
    holdUntil: price && new Date(runtime.now() + HOLD_MINUTES * minute).toISOString(),
    cancellationReason: null,
    cancelledBy: null,
    reschedulingReason: null,
    rescheduledFrom: null,
    confirmedAt: isAccepted ? at : null,
    buffers: event.buffers,
    reminderMinutes: event.reminderMinutes ?? null,
    createdAt: at,
    updatedAt: at,
  };
}

/** The booking in the requested slot; `rate_limited` after too many moves. */
export function movedBooking(
  runtime: Runtime,
  { event }: BookableEvent,
  { request, before }: { request: MoveRequest; before: BookingRecord },
): StoredBooking {
  const booking: StoredBooking = {
    ...before,
    ...timesOf(request.slot),
    durationMinutes: event.durationMinutes,
    buffers: event.buffers,
    sequence: before.sequence + 1,
    reschedulingReason: request.reschedulingReason ?? null,
    rescheduledFrom: { start: before.start, end: before.end },
    moves: movesWithNext(runtime, before),
    payment: movedPayment(before, runtime.now()),
    updatedAt: timestamp(runtime),
  };
  if (booking.status !== "ACCEPTED" || !event.confirmationRequired) return booking;
  // It awaits its owner again; its meeting is removed until then.
  const meetingUrl = linkOf(booking.location);
  return { ...booking, status: "PENDING", confirmedAt: null, everConfirmed: true, meetingUrl };
}

/** The instants of a booking's moves in the last 24 hours, with one more now; `rate_limited` if that is too many. */
function movesWithNext(runtime: Runtime, { moves = [] }: StoredBooking): string[] {
  const recent = moves.filter((at) => Date.parse(at) > runtime.now() - day);
  const [first] = recent;
  if (first === undefined || recent.length < MAX_MOVES_A_DAY) return [...recent, timestamp(runtime)];
  const detail = `A booking can be moved ${MAX_MOVES_A_DAY} times a day. Move it tomorrow, or cancel it and book another time.`;
  throw limited("moves", detail, delayUntil(runtime, Date.parse(first) + day));
}

function timesOf({ start, end }: RequestedSlot): { start: string; end: string } {
  return { start: new Date(start).toISOString(), end: new Date(end).toISOString() };
}

function locationOf({ locations }: BookableEvent["event"], chosen = ""): StoredBooking["location"] {
  return locations.find(({ type }) => sameWord(type, chosen)) ?? locations[0] ?? null;
}

/** The URL in a location's label; a label with several words is none, whatever it begins with. */
function linkOf(location: StoredBooking["location"]): string | null {
  if (location?.type !== "link") return null;
  return /^\S+$/.test(location.label) && URL.canParse(location.label) ? location.label : null;
}
