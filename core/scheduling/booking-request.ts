import type { bookingMove, newBooking, StoredBooking } from "../../schemas/scheduling.ts";
import type { Infer } from "../../schemas/schema.ts";
import { sameAddress } from "../platform/address.ts";
import { Fail } from "../platform/errors.ts";
import type { Caller } from "../platform/runtime.ts";
import { type IdempotencyRecord, idempotencyRecordOf } from "./repeats.ts";
import type { Visitor } from "./visitor-limits.ts";

/** A requested slot: start and end in ms, and the proof that the slots route listed it. */
export interface RequestedSlot {
  start: number;
  end: number;
  nonce: string | undefined;
}

/** What a visitor asks for when booking or moving: an event type at a slot. */
export interface ClaimRequest {
  handle: string;
  eventSlug: string;
  slot: RequestedSlot;
  visitor: Visitor;
}

/** A request for a booking, read once. */
export interface BookingRequest extends ClaimRequest {
  attendee: { name: string; email: string; timeZone?: string | undefined };
  /** Without repeats and without the attendee. */
  guests: StoredBooking["guests"];
  /** As sent; the questions of the event type decide about them. */
  answers: Record<string, unknown>;
  locationType: string | undefined;
  tracking: StoredBooking["tracking"];
  language: string | null;
  idempotency: IdempotencyRecord | undefined;
}

/** A request to move a booking, read once. */
export interface MoveRequest extends ClaimRequest {
  bookingUid: string;
  reason: string | null;
}

/** Reads a request for a booking (docs/reference.md, "Bookings"); `booking_required_fields` without a slot. */
export function readBookingRequest(input: Infer<typeof newBooking>, caller: Caller): BookingRequest {
  const { handle, eventSlug, attendee, answers } = input;
  return {
    handle,
    eventSlug,
    slot: slotOf(input),
    visitor: caller,
    attendee,
    guests: guestsOf(input),
    answers,
    locationType: input.location?.type,
    tracking: input.tracking ?? null,
    language: input.language ?? input.visitorLanguage ?? null,
    idempotency: idempotencyRecordOf(input, caller),
  };
}

/** Reads a request to move a booking; `booking_required_fields` without a slot. */
export function readMoveRequest(input: Infer<typeof bookingMove>, caller: Caller): MoveRequest {
  const { handle, eventSlug, bookingUid, reschedulingReason = null } = input;
  return { handle, eventSlug, bookingUid, slot: slotOf(input), visitor: caller, reason: reschedulingReason };
}

/** `slot`, or start and end at the top. */
function slotOf(input: Pick<Infer<typeof newBooking>, "slot" | "start" | "end">): RequestedSlot {
  const slot = { start: input.slot?.start ?? input.start, end: input.slot?.end ?? input.end };
  if (slot.start !== undefined && slot.end !== undefined)
    return { start: Date.parse(slot.start), end: Date.parse(slot.end), nonce: input.slot?.bookingNonce ?? undefined };
  const missing = Object.entries(slot).filter(([, value]) => value === undefined);
  const errors = missing.map(([name]) => ({ path: `/slot/${name}`, message: "is required" }));
  throw new Fail("booking_required_fields", { errors });
}

/** Each guest once, and not the attendee again. */
function guestsOf(input: Infer<typeof newBooking>): StoredBooking["guests"] {
  const list = input.guests.map((guest) => (typeof guest === "string" ? { email: guest } : guest));
  const seen = new Set([sameAddress(input.attendee.email)]);
  return list.filter(({ email }) => !seen.has(sameAddress(email)) && seen.add(sameAddress(email)));
}
