import { Buffer } from "node:buffer";
import { LRUCache } from "lru-cache";
import type { Kind } from "./availability.ts";
import { type Nonces, nonceLetters } from "./nonce.ts";
import type { Offered } from "./slots.ts";
import { day } from "./zones.ts";

/** What a list of slots shows besides their times. */
export interface Shown {
  offered: Offered;
  /** Ms of a slot. */
  duration: number;
  timeZone: string;
  nonces: Nonces;
}

/** Where a record's parts begin: `{"start":"2026-10-05T09:00:00.000Z","end":"2026-…`. */
const startAt = 10;
const endAt = 43;
/** Letters of a date with its `T`, before the time. */
const dateLetters = 11;
const labels: Record<Kind, string> = {
  weekly: "Weekly hours",
  override: "Date override",
  default: "Default hours",
};

/**
 * The answer to a question for slots as JSON bytes: `{"slots":[…],"displayTimeZone":"…"}`. Each slot is a copy of its kind's
 * record with other digits; making a month's strings and joining them costs three times as much. All letters are ASCII.
 */
export function slotBytes(shown: Shown): Uint8Array {
  const { at, open, stretches } = shown.offered;
  const records = recordsOf(shown);
  const longest = Math.max(...Object.values(records).map(({ bytes }) => bytes.length));
  const tail = Buffer.from(`],"displayTimeZone":${JSON.stringify(shown.timeZone)}}`, "latin1");
  const head = Buffer.from('{"slots":[', "latin1");
  const out = Buffer.allocUnsafe(head.length + at.length * longest + tail.length);
  let place = head.copy(out);
  for (let index = 0; index < at.length; index++) {
    const record = records[stretches[open[index] as number]?.kind as Kind];
    const start = at[index] as number;
    dated(record, start, shown.duration);
    out.set(record.bytes, place);
    writeTime(out, place + startAt + dateLetters, start);
    writeTime(out, place + endAt + dateLetters, start + shown.duration);
    const letters = place + record.tagAt;
    for (let letter = 0; letter < nonceLetters; letter++)
      out[letters + letter] = shown.nonces.tags[index * nonceLetters + letter] as number;
    place += record.bytes.length;
  }
  // The last record needs no comma.
  if (at.length > 0) place--;
  place += tail.copy(out, place);
  return out.subarray(0, place);
}

/** The bytes of a slot with its comma, the dates that stand in them, and where its nonce's tag does. */
interface SlotRecord {
  bytes: Buffer;
  startDate: number;
  endDate: number;
  tagAt: number;
}

function recordsOf({ timeZone, nonces }: Shown): { [K in Kind]: SlotRecord } {
  const record = (kind: Kind): SlotRecord => {
    const times = `{"start":"0000-00-00T00:00:00.000Z","end":"0000-00-00T00:00:00.000Z"`;
    const source = `,"timeZone":${JSON.stringify(timeZone)},"sourceAvailability":{"kind":"${kind}","label":"${labels[kind]}"}`;
    const text = `${times}${source},"bookingNonce":"${nonces.prefix}`;
    const bytes = Buffer.from(`${text}${" ".repeat(nonceLetters)}"},`, "latin1");
    return { bytes, startDate: Number.NaN, endDate: Number.NaN, tagAt: text.length };
  };
  return { weekly: record("weekly"), override: record("override"), default: record("default") };
}

/** Writes the dates into a record where its last slot had others. */
function dated(record: SlotRecord, start: number, duration: number): void {
  const startDate = Math.floor(start / day);
  const endDate = Math.floor((start + duration) / day);
  if (startDate !== record.startDate) record.bytes.write(dateText(startDate), startAt, "latin1");
  if (endDate !== record.endDate) record.bytes.write(dateText(endDate), endAt, "latin1");
  record.startDate = startDate;
  record.endDate = endDate;
}

/** Dates as they were written before: a month of slots asks for each one many times, and in the next answer again. */
const dateTexts = new LRUCache<number, string>({ max: 1000 });

function dateText(date: number): string {
  const text = dateTexts.get(date) ?? new Date(date * day).toISOString().slice(0, dateLetters);
  dateTexts.set(date, text);
  return text;
}

/** Writes `HH:MM:SS`, the colons stand there already. */
function writeTime(out: Uint8Array, place: number, instant: number): void {
  const seconds = (instant - Math.floor(instant / day) * day) / 1000;
  const minutes = Math.floor(seconds / 60);
  writeDigits(out, place, Math.floor(minutes / 60));
  writeDigits(out, place + 3, minutes % 60);
  writeDigits(out, place + 6, seconds % 60);
}

function writeDigits(out: Uint8Array, place: number, value: number): void {
  const tens = Math.floor(value / 10);
  out[place] = 48 + tens;
  out[place + 1] = 48 + value - tens * 10;
}
