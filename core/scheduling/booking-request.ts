import type { bookingMove, newBooking, StoredBooking } from "../../schemas/scheduling.ts";
import type { Infer } from "../../schemas/schema.ts";
import { sameAddress } from "../platform/address.ts";
import { Fail } from "../platform/errors.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";
import { type IdempotencyRecord, idempotencyRecordOf } from "./repeats.ts";
import type { Visitor } from "./visitor-limits.ts";

/** A requested slot: start and end in ms, and the proof that the slots route listed it. */
export interface RequestedSlot {
  start: number;
  end: number;
  nonce: string | undefined;
}

/** A request for a booking, read once. */
export type BookingRequest = Omit<Infer<typeof newBooking>, "slot" | "guests"> & {
  bookingUid: string;
  slot: RequestedSlot;
  /** Without repeats and without the attendee. */
  guests: StoredBooking["guests"];
  visitor: Visitor;
  idempotency: IdempotencyRecord | undefined;
};

/** A request to move a booking, read once. */
export type MoveRequest = Omit<Infer<typeof bookingMove>, "slot"> & { slot: RequestedSlot; visitor: Visitor };

/** Reads a request for a booking (docs/reference.md, "Bookings"); `booking_required_fields` without a slot. */
export function readBookingRequest({ id }: Runtime, input: Infer<typeof newBooking>, caller: Caller): BookingRequest {
  const idempotency = idempotencyRecordOf(input, caller);
  return { ...input, bookingUid: id(""), slot: slotOf(input), guests: guestsOf(input), visitor: caller, idempotency };
}

/** Reads a request to move a booking; `booking_required_fields` without a slot. */
export function readMoveRequest(input: Infer<typeof bookingMove>, caller: Caller): MoveRequest {
  return { ...input, slot: slotOf(input), visitor: caller };
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
