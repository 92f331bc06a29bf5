import { Buffer } from "node:buffer";
import { day, minute } from "../../platform/zones.ts";
import type { Kind } from "./availability.ts";
import type { Slot } from "./free-slots.ts";

/** A list of slots to serialise, with a nonce for each. */
interface SlotList {
  slots: readonly Slot[];
  nonces: readonly string[];
  timeZone: string;
}

const labels: Record<Kind, string> = {
  weekly: "Weekly hours",
  override: "Date override",
  default: "Default hours",
};

/**
 * The slots response as JSON bytes: `{"slots":[…],"displayTimeZone":"…"}`. `JSON.stringify` of a month's slots takes longer than the rest of
 * the response and would halve the slot requests per second (`npm run bench -- scheduling`). All characters are ASCII.
 */
export function slotBytes({ slots, nonces, timeZone }: SlotList): Uint8Array {
  const sourceOf = (kind: Kind) =>
    JSON.stringify({ timeZone, sourceAvailability: { kind, label: labels[kind] } }).slice(1, -1);
  const sources = { weekly: sourceOf("weekly"), override: sourceOf("override"), default: sourceOf("default") };
  const [startText, endText] = [instantWriter(), instantWriter()];
  const texts = slots.map(
    ({ start, end, kind }, at) =>
      `{"start":"${startText(start)}","end":"${endText(end)}",${sources[kind]},"bookingNonce":"${nonces[at]}"}`,
  );
  return Buffer.from(`{"slots":[${texts.join(",")}],"displayTimeZone":${JSON.stringify(timeZone)}}`, "latin1");
}

/** Writes instants at whole minutes, as all slots have them, like `toISOString`; instants of one date in sequence are fast. */
function instantWriter(): (instant: number) => string {
  let midnight = Number.NaN;
  let date = "";
  return (instant) => {
    const today = Math.floor(instant / day) * day;
    if (today !== midnight) date = new Date(today).toISOString().slice(0, 11);
    midnight = today;
    return date + times[(instant - today) / minute];
  };
}

/** `HH:MM:00.000Z` of each minute of a day. */
const times = Array.from({ length: 1440 }, (_, minutes) => new Date(minutes * minute).toISOString().slice(11));
