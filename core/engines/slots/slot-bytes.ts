import { Buffer } from "node:buffer";
import { day } from "../../platform/zones.ts";
import type { Kind } from "./availability.ts";
import type { AvailableSlots } from "./free-slots.ts";
import { type Nonces, nonceLetters } from "./nonce.ts";

/** A list of slots to serialise. */
interface SlotList {
  offered: AvailableSlots;
  /** Ms of a slot. */
  duration: number;
  timeZone: string;
  nonces: Nonces;
}

/** Offsets in a record: `{"start":"2026-10-05T09:00:00.000Z","end":"2026-…`. */
const startAt = 10;
const endAt = 43;
/** Characters of a date, and of a date with its `T`. */
const dateLetters = 10;
const timeAt = 11;
const labels: Record<Kind, string> = {
  weekly: "Weekly hours",
  override: "Date override",
  default: "Default hours",
};

/**
 * The slots response as JSON bytes: `{"slots":[…],"displayTimeZone":"…"}`. Each slot is a copy of its kind's record with other digits.
 * `JSON.stringify` of a month's slots takes longer than the rest of the response and would halve the slot requests per second (`npm run
 * bench -- scheduling`). All characters are ASCII.
 */
export function slotBytes(list: SlotList): Uint8Array {
  const { offered, duration, nonces } = list;
  const records = recordsOf(list);
  const longest = Math.max(0, ...records.map(({ bytes }) => bytes.length));
  const tail = Buffer.from(`],"displayTimeZone":${JSON.stringify(list.timeZone)}}`, "latin1");
  const head = Buffer.from('{"slots":[', "latin1");
  const out = Buffer.allocUnsafe(head.length + offered.at.length * longest + tail.length);
  const [view, tags] = [viewOf(out), viewOf(nonces.tags)];
  let place = head.copy(out);
  for (let index = 0; index < offered.at.length; index++) {
    const record = records[offered.open[index] as number] as SlotRecord;
    const start = offered.at[index] as number;
    if (!isDated(record, start, duration)) writeDates(record, start, duration);
    out.set(record.bytes, place);
    writeTime(view, place + startAt + timeAt, start - record.startDate);
    writeTime(view, place + endAt + timeAt, start + duration - record.endDate);
    for (let letter = 0; letter < nonceLetters; letter += 4)
      view.setUint32(place + record.tagAt + letter, tags.getUint32(index * nonceLetters + letter));
    place += record.bytes.length;
  }
  // The last record needs no comma.
  if (offered.at.length > 0) place--;
  place += tail.copy(out, place);
  return out.subarray(0, place);
}

/** The bytes of a slot with its comma, its UTC dates (ms of their midnights), and the offset of its nonce's tag. */
interface SlotRecord {
  bytes: Buffer;
  view: DataView;
  startDate: number;
  endDate: number;
  tagAt: number;
}

/** A record for each open interval; those of one kind share it. */
function recordsOf(list: SlotList): SlotRecord[] {
  const made: Partial<Record<Kind, SlotRecord>> = {};
  return list.offered.stretches.map(({ kind }) => {
    made[kind] ??= recordOf(kind, list);
    return made[kind];
  });
}

function recordOf(kind: Kind, { timeZone, nonces }: SlotList): SlotRecord {
  const times = `{"start":"0000-00-00T00:00:00.000Z","end":"0000-00-00T00:00:00.000Z"`;
  const source = `,"timeZone":${JSON.stringify(timeZone)},"sourceAvailability":{"kind":"${kind}","label":"${labels[kind]}"}`;
  const text = `${times}${source},"bookingNonce":"${nonces.prefix}`;
  const bytes = Buffer.from(`${text}${" ".repeat(nonceLetters)}"},`, "latin1");
  return { bytes, view: viewOf(bytes), startDate: Number.NaN, endDate: Number.NaN, tagAt: text.length };
}

function viewOf({ buffer, byteOffset, length }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, length);
}

/** True if a slot has the same dates as the previous one. */
function isDated({ startDate, endDate }: SlotRecord, start: number, duration: number): boolean {
  const end = start + duration;
  return start >= startDate && start < startDate + day && end >= endDate && end < endDate + day;
}

function writeDates(record: SlotRecord, start: number, duration: number): void {
  record.startDate = Math.floor(start / day) * day;
  record.endDate = Math.floor((start + duration) / day) * day;
  writeDate(record.view, startAt, record.startDate);
  if (record.endDate === record.startDate) record.bytes.copyWithin(endAt, startAt, startAt + dateLetters);
  else writeDate(record.view, endAt, record.endDate);
}

/** Writes `YYYY-MM-DD`; the hyphens are already there. */
function writeDate(view: DataView, place: number, instant: number): void {
  const date = new Date(instant);
  const year = date.getUTCFullYear();
  writeDigits(view, place, Math.floor(year / 100));
  writeDigits(view, place + 2, year % 100);
  writeDigits(view, place + 5, date.getUTCMonth() + 1);
  writeDigits(view, place + 8, date.getUTCDate());
}

/** Writes `HH:MM:SS` of the ms since midnight; the colons are already there. */
function writeTime(view: DataView, place: number, ms: number): void {
  const seconds = Math.floor(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  writeDigits(view, place, hours);
  writeDigits(view, place + 3, minutes - hours * 60);
  writeDigits(view, place + 6, seconds - minutes * 60);
}

function writeDigits(view: DataView, place: number, value: number): void {
  view.setUint16(place, digits[value] as number);
}

/** The two ASCII digits of each number below 100, as one number. */
const digits = Uint16Array.from({ length: 100 }, (_, value) => (48 + Math.floor(value / 10)) * 256 + 48 + (value % 10));
