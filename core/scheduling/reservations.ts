import {
  type BookingAnswer,
  type BookingStatus,
  type bookingMove,
  type newBooking,
  type StoredBooking,
  usualRefundMinutes,
} from "../../schemas/scheduling.ts";
import type { Infer } from "../../schemas/schema.ts";
import type { WebhookEventType } from "../../schemas/webhooks.ts";
import { delayUntil } from "../platform/clock.ts";
import { sameAddress } from "../platform/address.ts";
import { Fail } from "../platform/errors.ts";
import type { Caller, Job, Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { retryOnConflict } from "../store/retry.ts";
import { checkAnswers } from "./answers.ts";
import type { CatalogSnapshot, BookableEvent } from "./catalog.ts";
import { HOLD_MINUTES, openCheckout } from "./checkout.ts";
import { mailJob, reminderJobs } from "./booking-mails.ts";
import {
  toBookingAnswer,
  type Transition,
  commitBooking,
  type BookingRecord,
  findBooking,
  toBooking,
  timestamp,
  statusAt,
  type CommitResult,
} from "./ledger.ts";
import { checkNonce, isBookable, localDay, availableSlots, reachOf } from "../engines/slots/slots.ts";
import { findBookableEvent, slotRequestOf, slotRulesOf } from "./offers.ts";
import { priceOf } from "./prices.ts";
import {
  doneRecord,
  inProgressRecord,
  readStoredAnswer,
  parseStoredAnswer,
  type IdempotencyRecord,
  idempotencyRecordOf,
  replayed,
} from "./repeats.ts";
import { readTimes, refreshOldBusy } from "./times.ts";
import { movesWithNext, type Visitor } from "./visitor-limits.ts";
import { sameWord } from "../platform/words.ts";
import { minute } from "../platform/zones.ts";

type Request = Infer<typeof newBooking>;

/** A requested slot in ms. */
interface Slot {
  start: number;
  end: number;
  nonce: string | undefined;
}

/**
 * Books a slot (docs/reference.md, "Bookings"). `event_type_not_found`, `booking_required_fields`, `invalid_booking_answers`,
 * `payment_provider_not_connected`, `scheduling_slot_unavailable`, `rate_limited`, `idempotency_conflict`,
 * `idempotency_in_progress`.
 */
export async function createBooking(runtime: Runtime, input: Request, caller: Caller): Promise<BookingAnswer> {
  const repeatable = idempotencyRecordOf(input, caller);
  const earlier = repeatable && (await earlierAnswer(runtime, input.handle, repeatable));
  if (earlier) return earlier;
  try {
    return await book(runtime, input, { repeatable, visitor: caller });
  } catch (error) {
    // The first request with this key may have just taken the slot.
    const isTaken = error instanceof Fail && error.code === "scheduling_slot_unavailable";
    const first = isTaken && repeatable && (await earlierAnswer(runtime, input.handle, repeatable));
    if (first) return first;
    throw error;
  }
}

/**
 * Moves a booking to another slot of the same event type in one step; it keeps the old one if that fails. `event_type_not_found`,
 * `booking_not_found`, `booking_not_reschedulable`, `scheduling_slot_unavailable`, `rate_limited`.
 */
export async function rescheduleBooking(
  runtime: Runtime,
  input: Infer<typeof bookingMove>,
  visitor: Caller,
): Promise<BookingAnswer> {
  const { handle, eventSlug, bookingUid } = input;
  const slot = slotOf(input);
  const refreshing = refreshOldBusy(runtime, handle);
  const written = await judged(runtime, { handle, bookingUid }, async () => {
    const [{ offer, moment }] = await Promise.all([findBookableEvent(runtime, handle, eventSlug), refreshing]);
    const before = await findBooking(runtime.redis, handle, bookingUid);
    if (before?.eventTypeId !== offer.event.eventTypeId) throw new Fail("booking_not_found");
    mustBeMovable(before, runtime.now());
    const moves = movesWithNext(runtime, before);
    await mustBeOffered(runtime, { offer, slot, timeZone: before.attendee.timeZone, moving: bookingUid });
    const moved = { before, moves, reason: input.reschedulingReason ?? null };
    return movement(runtime, { offer, moment, slot, visitor, ...moved });
  });
  if (written.kind === "written") return toBookingAnswer(written.booking);
  throw new Fail("scheduling_slot_unavailable");
}

/** The response of an earlier request with the same key, or one that this request completes for it. */
async function earlierAnswer(
  runtime: Runtime,
  handle: string,
  repeatable: IdempotencyRecord,
): Promise<BookingAnswer | undefined> {
  const left = await readStoredAnswer(runtime, repeatable);
  if (left === undefined) return undefined;
  const answer = replayed(left);
  if (answer || !("bookingUid" in left)) return answer;
  // The first request's process died before its checkout was created.
  const kept = await findBooking(runtime.redis, handle, left.bookingUid);
  const isHeld = kept && statusAt(kept, runtime.now()) === "PENDING_PAYMENT";
  if (isHeld) return openCheckout(runtime, handle, { bookingUid: left.bookingUid, repeatable });
  await runtime.redis.del(repeatable.key);
  return undefined;
}

async function book(
  runtime: Runtime,
  input: Request,
  { repeatable, visitor }: { repeatable: IdempotencyRecord | undefined; visitor: Visitor },
): Promise<BookingAnswer> {
  const { handle, eventSlug } = input;
  const slot = slotOf(input);
  const bookingUid = runtime.id("");
  const refreshing = refreshOldBusy(runtime, handle);
  const written = await judged(runtime, { handle, bookingUid }, async () => {
    const [{ offer, moment }] = await Promise.all([findBookableEvent(runtime, handle, eventSlug), refreshing]);
    const answers = checkAnswers(offer.event.bookingFields, input.answers);
    const price = await priceOf(runtime, offer);
    const timeZone = input.attendee.timeZone ?? offer.timeZone;
    await mustBeOffered(runtime, { offer, slot, timeZone, moving: undefined });
    const booking = { ...firstBooking(runtime, offer, { input, slot, timeZone }), bookingUid, answers };
    const { refundUntilMinutes = usualRefundMinutes } = offer.event.payment;
    const held = price && { ...price, refundUntilMinutes };
    return creation(runtime, {
      offer,
      moment,
      slot,
      visitor,
      repeatable,
      booking: awaitingPayment(runtime, booking, held),
    });
  });
  if (written.kind === "repeated") {
    const answer = repeatable && replayed(parseStoredAnswer(repeatable, written.record));
    if (answer) return answer;
    throw new Fail("idempotency_in_progress", { retryAfter: 1 });
  }
  if (written.booking.status !== "PENDING_PAYMENT") return toBookingAnswer(written.booking);
  return openCheckout(runtime, handle, { bookingUid, repeatable });
}

/** Checks and writes until no change interferes; `scheduling_slot_unavailable` if the time is not free. */
async function judged(
  runtime: Runtime,
  { handle, bookingUid }: { handle: string; bookingUid: string },
  judge: () => Promise<Transition>,
): Promise<Extract<CommitResult, { kind: "written" | "repeated" }>> {
  return retryOnConflict(runtime.redis, keys.booking(handle, bookingUid), async () => {
    const written = await commitBooking(runtime, await judge());
    if (written.kind === "written" || written.kind === "repeated") return written;
    if (written.kind !== "changed") throw new Fail("scheduling_slot_unavailable");
    return undefined;
  });
}

interface CheckedRequest {
  offer: BookableEvent;
  moment: CatalogSnapshot;
  slot: Slot;
  visitor: Visitor;
}

/** The transition of a new booking. */
function creation(
  runtime: Runtime,
  {
    offer,
    moment,
    slot,
    visitor,
    repeatable,
    booking,
  }: CheckedRequest & { repeatable: IdempotencyRecord | undefined; booking: StoredBooking },
): Transition {
  const { handle } = offer;
  const answer = toBookingAnswer(toBooking(handle, { ...booking, version: 1 }, runtime.now()));
  const isPaid = booking.status === "PENDING_PAYMENT";
  const done =
    repeatable && (isPaid ? inProgressRecord(repeatable, booking.bookingUid) : doneRecord(repeatable, answer));
  return {
    handle,
    booking,
    catalogVersion: moment.catalog.version,
    isUnheard: moment.isUnheard,
    time: "take",
    dayLimit: dayLimitOf(offer, slot),
    visitor,
    events: eventsAtFirst[booking.status] ?? [],
    jobs: jobsAtFirst(runtime, handle, booking),
    record: done,
  };
}

/** The transition of a booking that moves. */
function movement(
  runtime: Runtime,
  asked: CheckedRequest & { before: BookingRecord; moves: string[]; reason: string | null },
): Transition {
  const { offer, moment, slot, visitor, before, moves, reason } = asked;
  const { handle, event } = offer;
  const rescheduledFrom = { start: before.start, end: before.end };
  const booking = unconfirmed(event, {
    ...before,
    ...timesOf(slot),
    durationMinutes: event.durationMinutes,
    buffers: event.buffers,
    sequence: before.sequence + 1,
    reschedulingReason: reason,
    rescheduledFrom,
    moves,
    updatedAt: timestamp(runtime),
  });
  const isUnpaid = booking.status === "PENDING_PAYMENT";
  return {
    handle,
    booking,
    before,
    catalogVersion: moment.catalog.version,
    isUnheard: moment.isUnheard,
    time: "take",
    dayLimit: dayLimitOf(offer, slot),
    visitor,
    events: ["scheduling.booking.rescheduled"],
    about: { previous: rescheduledFrom },
    jobs: isUnpaid ? [] : [mailJob(handle, booking, "rescheduled"), ...reminderJobs(runtime, handle, booking)],
  };
}

/** A booking that was confirmed for another time awaits its owner again, if the event type requires confirmation. */
function unconfirmed({ confirmationRequired }: BookableEvent["event"], booking: StoredBooking): StoredBooking {
  if (booking.status !== "ACCEPTED" || !confirmationRequired) return booking;
  // Its meeting is removed until then.
  const meetingUrl = linkOf(booking.location);
  return { ...booking, status: "PENDING", confirmedAt: null, everConfirmed: true, meetingUrl };
}

function mustBeMovable(kept: BookingRecord, now: number): void {
  const status = statusAt(kept, now);
  if (status === "CANCELLED" || status === "REJECTED" || Date.parse(kept.start) <= now)
    throw new Fail("booking_not_reschedulable");
}

/** `slot`, or start and end at the top level (docs/reference.md, "Bookings"). */
function slotOf(input: Pick<Request, "slot" | "start" | "end">): Slot {
  const start = input.slot?.start ?? input.start;
  const end = input.slot?.end ?? input.end;
  if (start !== undefined && end !== undefined)
    return { start: Date.parse(start), end: Date.parse(end), nonce: input.slot?.bookingNonce ?? undefined };
  const missing = Object.entries({ start, end }).filter(([, value]) => value === undefined);
  const errors = missing.map(([name]) => ({ path: `/slot/${name}`, message: "is required" }));
  throw new Fail("booking_required_fields", { errors });
}

interface SlotCheck extends Pick<CheckedRequest, "offer" | "slot"> {
  /** The visitor's zone, whose local time may anchor the slot. */
  timeZone: string;
  /** The booking that gives up its time for this one. */
  moving: string | undefined;
}

/** `scheduling_slot_unavailable` for a slot that the slots route would not list, unless a nonce proves that it did. */
async function mustBeOffered(runtime: Runtime, wanted: SlotCheck): Promise<void> {
  const { offer, slot, timeZone, moving } = wanted;
  const { handle, event } = offer;
  const issuer = { handle, eventTypeId: event.eventTypeId, revision: event.version };
  const proof = slot.nonce === undefined ? "none" : checkNonce(runtime.env, issuer, { ...slot, nonce: slot.nonce });
  const isWhole = slot.end - slot.start === event.durationMinutes * minute;
  if (!isWhole || proof === "foreign") throw new Fail("scheduling_slot_unavailable");
  const window = { from: slot.start, to: slot.start + 1 };
  const times = await readTimes(runtime.redis, handle, reachOf(slotRulesOf(offer), window));
  const now = runtime.now();
  const isListed = (clock: string, except: string | undefined) =>
    availableSlots(slotRequestOf(offer, times, { clock, now, except }), window).at.length > 0;
  const isProven = () => isBookable(slotRequestOf(offer, times, { clock: timeZone, now, except: moving }), slot.start);
  // A visitor who moves a booking saw the slots with it, or those without it.
  const ways = [offer.timeZone, timeZone].flatMap((clock) => [[clock, moving] as const, [clock, undefined] as const]);
  if (proof === "offered" && isProven()) return;
  if (!ways.some(([clock, except]) => isListed(clock, except))) throw new Fail("scheduling_slot_unavailable");
}

function dayLimitOf({ event, timetable }: BookableEvent, { start }: Slot): Transition["dayLimit"] {
  const max = event.maxBookingsPerDay;
  return max ? { max, ...localDay(timetable.timeZone, start) } : undefined;
}

function firstBooking(
  runtime: Runtime,
  { event, timeZone: eventZone }: BookableEvent,
  { input, slot, timeZone }: { input: Request; slot: Slot; timeZone: string },
): Omit<StoredBooking, "bookingUid" | "answers"> {
  const at = timestamp(runtime);
  const location = locationOf(event, input.location?.type);
  const isAccepted = !event.confirmationRequired;
  return {
    eventTypeId: event.eventTypeId,
    eventSlug: event.slug,
    title: event.title,
    status: isAccepted ? "ACCEPTED" : "PENDING",
    ...timesOf(slot),
    durationMinutes: event.durationMinutes,
    timeZone: eventZone,
    attendee: { name: input.attendee.name, email: input.attendee.email, timeZone },
    guests: guestsOf(input),
    tracking: input.tracking ?? null,
    location,
    meetingUrl: linkOf(location),
    sequence: 0,
    language: input.language ?? input.visitorLanguage ?? null,
    syncStatus: "OK",
    payment: null,
    holdUntil: null,
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

/** The visitor's location, else the first. */
function locationOf({ locations }: BookableEvent["event"], chosen = ""): StoredBooking["location"] {
  return locations.find(({ type }) => sameWord(type, chosen)) ?? locations[0] ?? null;
}

/** The URL that a link has as its label; a label of several words is none. */
function linkOf(location: StoredBooking["location"]): string | null {
  if (location?.type !== "link") return null;
  return /^\S+$/.test(location.label) && URL.canParse(location.label) ? location.label : null;
}

/** A paid booking holds its slot until it is paid; payment wins over confirmation (docs/reference.md, "Bookings"). */
function awaitingPayment(
  { now }: Runtime,
  booking: StoredBooking,
  price: { amountMinor: number; currency: string; refundUntilMinutes: number } | null,
): StoredBooking {
  if (price === null) return booking;
  const holdUntil = new Date(now() + HOLD_MINUTES * minute).toISOString();
  const payment = { ...price, status: "REQUIRED" as const, checkoutUrl: null };
  return { ...booking, status: "PENDING_PAYMENT", holdUntil, payment, confirmedAt: null };
}

function timesOf({ start, end }: Slot): { start: string; end: string } {
  return { start: new Date(start).toISOString(), end: new Date(end).toISOString() };
}

/** Each guest once, without the attendee. */
function guestsOf({ guests, attendee }: Request): StoredBooking["guests"] {
  const list = guests.map((guest) => (typeof guest === "string" ? { email: guest } : guest));
  const seen = new Set([sameAddress(attendee.email)]);
  return list.filter(({ email }) => !seen.has(sameAddress(email)) && seen.add(sameAddress(email)));
}

const eventsAtFirst: Partial<Record<BookingStatus, WebhookEventType[]>> = {
  ACCEPTED: ["scheduling.booking.created", "scheduling.booking.confirmed"],
  PENDING: ["scheduling.booking.created"],
  PENDING_PAYMENT: ["scheduling.booking.created", "scheduling.payment.required"],
};

function jobsAtFirst(runtime: Runtime, handle: string, booking: StoredBooking): Job[] {
  const { status, bookingUid, holdUntil } = booking;
  if (status === "PENDING") return [mailJob(handle, booking, "requested")];
  if (status === "ACCEPTED") return [mailJob(handle, booking, "confirmed"), ...reminderJobs(runtime, handle, booking)];
  const delay = delayUntil(runtime, Date.parse(holdUntil as string));
  return [job("scheduling.expire", `expire-${bookingUid}`, { handle, bookingUid }, { delay })];
}
