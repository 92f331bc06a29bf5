import { availableSlots, checkNonce, isBookable, reachOf } from "../engines/slots/slots.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { minute } from "../platform/zones.ts";
import type { RequestedSlot } from "./booking-request.ts";
import type { BookableEvent } from "./catalog.ts";
import { slotRequestOf, slotRulesOf } from "./offers.ts";
import { readTimes } from "./times.ts";

/** A slot, and the circumstances that decide whether it can be booked. */
interface SlotCheck {
  slot: RequestedSlot;
  /** The visitor's zone, whose clock may align the slots. */
  timeZone: string;
  /** A booking that gives up its time for this one. */
  moving?: string;
}

/** `scheduling_slot_unavailable` for a slot that the slots route would not list, unless a nonce proves that it did. */
export async function requireAvailable(runtime: Runtime, bookable: BookableEvent, check: SlotCheck): Promise<void> {
  const { slot, timeZone, moving } = check;
  const proof = proofOf(runtime, bookable, slot);
  const isWhole = slot.end - slot.start === bookable.event.durationMinutes * minute;
  if (!isWhole || proof === "foreign") throw new Fail("scheduling_slot_unavailable");
  const window = { from: slot.start, to: slot.start + 1 };
  const times = await readTimes(runtime.redis, bookable.handle, reachOf(slotRulesOf(bookable), window));
  const requestOn = (clock: string, except: string | undefined) =>
    slotRequestOf(bookable, times, { clock, now: runtime.now(), except });
  if (proof === "offered" && isBookable(requestOn(timeZone, moving), slot.start)) return;
  // A visitor who moves a booking saw the slots that exclude its own time, or those that ignore it.
  const ways = [bookable.timeZone, timeZone].flatMap((clock) => [
    [clock, moving] as const,
    [clock, undefined] as const,
  ]);
  const isListed = ways.some(([clock, except]) => availableSlots(requestOn(clock, except), window).at.length > 0);
  if (!isListed) throw new Fail("scheduling_slot_unavailable");
}

function proofOf({ env }: Runtime, { handle, event }: BookableEvent, { start, end, nonce }: RequestedSlot): string {
  const issuer = { handle, eventTypeId: event.eventTypeId, revision: event.version };
  return nonce === undefined ? "none" : checkNonce(env, issuer, { start, end, nonce });
}
