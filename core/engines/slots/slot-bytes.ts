import { Buffer } from "node:buffer";
import { day, minute } from "../../platform/clock.ts";
import type { HoursKind } from "./availability.ts";
import type { AvailableSlots } from "./free-slots.ts";
import { type Nonces, TAG_LENGTH } from "./nonce.ts";

/** A list of slots to serialise; `duration` is in ms. */
interface SlotList {
  offered: AvailableSlots;
  duration: number;
  timeZone: string;
  nonces: Nonces;
}

const labels: Record<HoursKind, string> = {
  weekly: "Weekly hours",
  override: "Date override",
  default: "Default hours",
};

/**
 * The slots response as JSON bytes: `{"slots":[…],"displayTimeZone":"…"}`. It is joined from texts, since `JSON.stringify` of a month's slots
 * and their dates takes longer than the rest of the response and would halve the slot requests per second (`npm run bench -- scheduling`).
 * All characters are ASCII.
 */
export function slotBytes({ offered, duration, timeZone, nonces }: SlotList): Uint8Array {
  const shared = sharedMembers(timeZone, nonces.prefix);
  const timeText = timeWriter();
  let slots = "";
  for (let index = 0; index < offered.at.length; index++) {
    const start = offered.at[index] as number;
    const members = shared[offered.kinds[index] as HoursKind];
    const tag = nonces.tags.slice(index * TAG_LENGTH, (index + 1) * TAG_LENGTH);
    slots += `${index === 0 ? "" : ","}{"start":"${timeText(start)}","end":"${timeText(start + duration)}",${members}${tag}"}`;
  }
  return Buffer.from(`{"slots":[${slots}],"displayTimeZone":${JSON.stringify(timeZone)}}`, "latin1");
}

/** The members that all slots of a kind share, up to the tag. `JSON.stringify` returns flat strings, which are joined faster than templates. */
function sharedMembers(timeZone: string, nonce: string): Record<string, string> {
  const texts = Object.entries(labels).map(([kind, label]) => {
    const members = { timeZone, sourceAvailability: { kind, label }, bookingNonce: nonce };
    return [kind, JSON.stringify(members).slice(1, -2)];
  });
  return Object.fromEntries(texts);
}

/** Each minute of a day as ISO 8601 writes its time. */
const minutes = Array.from({ length: 1440 }, (_, at) => new Date(at * minute).toISOString().slice(11));

/** Returns a function that writes instants as `Date.toISOString` does; successive ones of a date cost little. */
function timeWriter(): (instant: number) => string {
  let [midnight, date] = [Number.NaN, ""];
  return (instant) => {
    if (instant % minute !== 0) return new Date(instant).toISOString();
    if (!(instant >= midnight && instant < midnight + day)) {
      midnight = Math.floor(instant / day) * day;
      date = new Date(midnight).toISOString().slice(0, 11);
    }
    return date + minutes[(instant - midnight) / minute];
  };
}
