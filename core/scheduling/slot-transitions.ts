import { type BookingStatus, type StoredBooking, usualRefundMinutes } from "../../schemas/scheduling.ts";
import type { WebhookEventType } from "../../schemas/webhooks.ts";
import { localDay } from "../engines/slots/slots.ts";
import type { Job, Runtime } from "../platform/runtime.ts";
import { sameWord } from "../platform/words.ts";
import { minute } from "../platform/zones.ts";
import { checkAnswers } from "./answers.ts";
import { mailJob, reminderJobs } from "./booking-mails.ts";
import type { BookingRequest, MoveRequest, RequestedSlot } from "./booking-request.ts";
import type { BookableEvent } from "./catalog.ts";
import { expiryJobs, HOLD_MINUTES } from "./checkout.ts";
import { type BookingRecord, type Transition, timestamp } from "./ledger.ts";
import type { Bookable } from "./offers.ts";
import { priceOf } from "./prices.ts";
import { replayOf } from "./repeats.ts";
import { movesWithNext } from "./visitor-limits.ts";

/** The initial fields of every booking. */
const untouched = {
  sequence: 0,
  syncStatus: "OK",
  payment: null,
  holdUntil: null,
  cancellationReason: null,
  cancelledBy: null,
  reschedulingReason: null,
  rescheduledFrom: null,
} as const;

/** The booking that a request creates; `invalid_booking_answers`, `payment_provider_not_connected`. */
export async function newBookingOf(
  runtime: Runtime,
  bookable: BookableEvent,
  request: BookingRequest,
): Promise<StoredBooking> {
  const answers = checkAnswers(bookable.event.bookingFields, request.answers);
  const price = await priceOf(runtime, bookable);
  const { event, timeZone } = bookable;
  const { name, email } = request.attendee;
  const at = timestamp(runtime);
  const location = locationOf(event, request.location?.type);
  const isAccepted = !event.confirmationRequired;
  const booking: StoredBooking = {
    bookingUid: request.bookingUid,
    eventTypeId: event.eventTypeId,
    eventSlug: event.slug,
    title: event.title,
    status: isAccepted ? "ACCEPTED" : "PENDING",
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
    ...untouched,
    confirmedAt: isAccepted ? at : null,
    buffers: event.buffers,
    reminderMinutes: event.reminderMinutes ?? null,
    createdAt: at,
    updatedAt: at,
  };
  const { refundUntilMinutes = usualRefundMinutes } = event.payment;
  return price ? awaitingPayment(runtime, booking, { ...price, refundUntilMinutes }) : booking;
}

/** The transition of a new booking. */
export function creation(
  runtime: Runtime,
  found: Bookable,
  { request, booking }: { request: BookingRequest; booking: StoredBooking },
): Transition {
  return {
    ...claimOf(found, request),
    booking,
    events: firstEvents[booking.status] ?? [],
    jobs: firstJobs(runtime, request.handle, booking),
    replay: replayOf(request, booking.status === "PENDING_PAYMENT" ? "checkout" : "answer"),
  };
}

/** The transition of a booking to another slot; `rate_limited` after too many moves. */
export function movement(
  runtime: Runtime,
  found: Bookable,
  { request, before }: { request: MoveRequest; before: BookingRecord },
): Transition {
  const { event } = found.bookable;
  const rescheduledFrom = { start: before.start, end: before.end };
  const booking = unconfirmed(event, {
    ...before,
    ...timesOf(request.slot),
    durationMinutes: event.durationMinutes,
    buffers: event.buffers,
    sequence: before.sequence + 1,
    reschedulingReason: request.reschedulingReason ?? null,
    rescheduledFrom,
    moves: movesWithNext(runtime, before),
    updatedAt: timestamp(runtime),
  });
  return {
    ...claimOf(found, request),
    booking,
    before,
    events: ["scheduling.booking.rescheduled"],
    about: { previous: rescheduledFrom },
    jobs: moveJobs(runtime, request.handle, booking),
  };
}

/** The common part of the transitions that claim a slot. */
function claimOf(
  { bookable, snapshot }: Bookable,
  { handle, slot, visitor }: BookingRequest | MoveRequest,
): Pick<Transition, "handle" | "catalogVersion" | "slot" | "dayLimit" | "visitor"> {
  const { version: catalogVersion } = snapshot.catalog;
  return { handle, catalogVersion, slot: "claim", dayLimit: dayLimitOf(bookable, slot), visitor };
}

function dayLimitOf({ event, timetable }: BookableEvent, { start }: RequestedSlot): Transition["dayLimit"] {
  const max = event.maxBookingsPerDay;
  return max ? { max, ...localDay(timetable.timeZone, start) } : undefined;
}

function timesOf({ start, end }: RequestedSlot): { start: string; end: string } {
  return { start: new Date(start).toISOString(), end: new Date(end).toISOString() };
}

/** The location that a visitor chose, else the first. */
function locationOf({ locations }: BookableEvent["event"], chosen = ""): StoredBooking["location"] {
  return locations.find(({ type }) => sameWord(type, chosen)) ?? locations[0] ?? null;
}

/** The URL in a location's label; a label with several words is none, whatever it begins with. */
function linkOf(location: StoredBooking["location"]): string | null {
  if (location?.type !== "link") return null;
  return /^\S+$/.test(location.label) && URL.canParse(location.label) ? location.label : null;
}

/** A paid booking holds its slot until it is paid; payment takes precedence over confirmation (docs/reference.md, "Bookings"). */
function awaitingPayment(
  { now }: Runtime,
  booking: StoredBooking,
  price: { amountMinor: number; currency: string; refundUntilMinutes: number },
): StoredBooking {
  const holdUntil = new Date(now() + HOLD_MINUTES * minute).toISOString();
  const payment = { ...price, status: "REQUIRED" as const, checkoutUrl: null };
  return { ...booking, status: "PENDING_PAYMENT", holdUntil, payment, confirmedAt: null };
}

/** A confirmed booking that moves awaits its owner again if the event type requires confirmation. */
function unconfirmed({ confirmationRequired }: BookableEvent["event"], booking: StoredBooking): StoredBooking {
  if (booking.status !== "ACCEPTED" || !confirmationRequired) return booking;
  // Its meeting is removed until then.
  const meetingUrl = linkOf(booking.location);
  return { ...booking, status: "PENDING", confirmedAt: null, everConfirmed: true, meetingUrl };
}

const firstEvents: Partial<Record<BookingStatus, WebhookEventType[]>> = {
  ACCEPTED: ["scheduling.booking.created", "scheduling.booking.confirmed"],
  PENDING: ["scheduling.booking.created"],
  PENDING_PAYMENT: ["scheduling.booking.created", "scheduling.payment.required"],
};

function firstJobs(runtime: Runtime, handle: string, booking: StoredBooking): Job[] {
  const { status } = booking;
  if (status === "PENDING") return [mailJob(handle, booking, { kind: "requested" })];
  if (status === "ACCEPTED")
    return [mailJob(handle, booking, { kind: "confirmed" }), ...reminderJobs(runtime, handle, booking)];
  return expiryJobs(runtime, handle, booking);
}

/** Nobody has been informed of a booking that awaits its payment. */
function moveJobs(runtime: Runtime, handle: string, booking: StoredBooking): Job[] {
  if (booking.status === "PENDING_PAYMENT") return [];
  return [mailJob(handle, booking, { kind: "rescheduled" }), ...reminderJobs(runtime, handle, booking)];
}
