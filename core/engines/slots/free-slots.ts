import { day, hour, minute, type Zone, zoneOver } from "../../platform/zones.ts";
import { type Kind, type OpenInterval, openTimes, type Timetable } from "./availability.ts";

/** Busy time in ms since 1970. */
export interface Busy {
  from: number;
  to: number;
}

/** An event type's requirements of a slot, in ms. */
interface SlotRules {
  duration: number;
  interval: number;
  /** Free time required before and after each slot. */
  before: number;
  after: number;
}

/** Everything that decides which slots an event type offers. */
export interface SlotRequest {
  timetable: Timetable;
  rules: SlotRules;
  /** Zone whose local time anchors the grid. */
  clock: string;
  /** Least ms from now to a start. */
  notice: number;
  /** Days after today on which slots may start; null for no limit. */
  windowDays: number | null;
  /** Most bookings of this event type on a local date; null for no limit. */
  perDay: number | null;
  /** Blocks within the reach of the window, see `reachOf`, sorted by start; they may overlap. */
  busy: Busy[];
  /** Starts of this event type's own bookings within the same reach. */
  booked: number[];
  /** Domain time in ms. */
  now: number;
}

/** A slot in ms since 1970, and the source of the open hours in which it starts. */
export interface Slot {
  start: number;
  end: number;
  kind: Kind;
}

/** Longest local date, with two hours for time changes. */
const MAX_DATE_MS = day + 2 * hour;

/** The time whose blocks affect slots that start in a window: from the date's midnight on, where the grid begins. */
export function reachOf(
  { rules, perDay }: Pick<SlotRequest, "rules" | "perDay">,
  window: { from: number; to: number },
): { from: number; to: number } {
  const ahead = Math.max(rules.duration + rules.after, perDay === null ? 0 : MAX_DATE_MS);
  return { from: window.from - MAX_DATE_MS - rules.before, to: window.to + ahead };
}

/** Every slot that starts in [from, to) (docs/reference.md, "Slots"). */
export function availableSlots(offering: SlotRequest, window: { from: number; to: number }): Slot[] {
  const bounds = boundsOf(offering, window);
  return bounds.from < bounds.to ? findSlots(bookableTimes(offering, bounds), offering, bounds) : [];
}

/** True if a slot that starts here could be booked, apart from the grid. */
export function isBookable(offering: SlotRequest, start: number): boolean {
  const bounds = boundsOf(offering, { from: start, to: start + 1 });
  return bounds.from < bounds.to && isFree(bookableTimes(offering, bounds), offering, start);
}

/** First and last instant of a local date of the schedule's zone, `to` exclusive, for the day limit. */
export function localDay(timeZone: string, instant: number): { from: number; to: number } {
  const zone = zoneOver(timeZone, instant - 2 * day, instant + 2 * day);
  const date = zone.dateAt(instant);
  return { from: zone.startOfDate(date), to: zone.startOfDate(date + 1) };
}

/** No slot starts from here on: years have four digits. */
const LAST_INSTANT = Date.UTC(9999, 11, 30);

/** The first instant after the booking window, in the schedule's zone. */
export function windowEnd({
  timetable,
  windowDays,
  now,
}: Pick<SlotRequest, "timetable" | "windowDays" | "now">): number {
  if (windowDays === null) return LAST_INSTANT;
  const last = zoneOver(timetable.timeZone, now, now).dateAt(now) + windowDays;
  return zoneOver(timetable.timeZone, last * day, (last + 1) * day).startOfDate(last + 1);
}

function boundsOf(offering: SlotRequest, window: { from: number; to: number }): { from: number; to: number } {
  return { from: Math.max(window.from, offering.now + offering.notice), to: Math.min(window.to, windowEnd(offering)) };
}

/** The open intervals around these bounds, without fully booked dates. */
function bookableTimes(offering: SlotRequest, bounds: { from: number; to: number }): OpenInterval[] {
  const zone = zoneOver(offering.timetable.timeZone, bounds.from - 2 * day, bounds.to + 3 * day);
  const dates = { first: zone.dateAt(bounds.from) - 1, last: zone.dateAt(bounds.to) + 2 };
  const stretches = openTimes(offering.timetable, zone, dates);
  const full = fullDates(offering, zone);
  return full.size === 0 ? stretches : stretches.filter(({ date }) => !full.has(date));
}

function fullDates({ perDay, booked }: SlotRequest, zone: Zone): Set<number> {
  if (perDay === null) return new Set();
  const counts = new Map<number, number>();
  for (const start of booked) counts.set(zone.dateAt(start), (counts.get(zone.dateAt(start)) ?? 0) + 1);
  return new Set([...counts].filter(([, count]) => count >= perDay).map(([date]) => date));
}

/** Every slot that starts in [within.from, within.to). The grid begins again with each gap, in the local time of `clock`. */
function findSlots(open: OpenInterval[], offering: SlotRequest, within: { from: number; to: number }): Slot[] {
  const { duration, interval } = offering.rules;
  const zone = zoneOver(offering.clock, within.from - 2 * day, within.to);
  const anchor = anchorOf(interval);
  const found: Slot[] = [];
  for (const { from, last, kind } of freeGaps(open, offering)) {
    const end = Math.min(last, within.to - 1);
    if (end < within.from) continue;
    const first = aligned(from, anchor, zone);
    const skipped = Math.max(0, Math.ceil((within.from - first) / interval));
    for (let start = first + skipped * interval; start <= end; start += interval)
      found.push({ start, end: start + duration, kind });
  }
  return found;
}

/** The parts of the open intervals that no busy block touches, with the first and last instant for a start. */
function* freeGaps(
  open: OpenInterval[],
  { busy, rules }: SlotRequest,
): Iterable<{ from: number; last: number; kind: Kind }> {
  const blocks = [...busy, { from: Number.POSITIVE_INFINITY, to: Number.POSITIVE_INFINITY }][Symbol.iterator]();
  let block = blocks.next().value as Busy;
  for (const { from, to, latestEnd, kind } of open) {
    for (let free = from; free < to; free = block.to + rules.before) {
      while (block.to + rules.before <= free) block = blocks.next().value as Busy;
      const blocked = block.from - rules.after;
      if (blocked > free)
        yield { from: free, last: Math.min(to - 1, Math.min(latestEnd, blocked) - rules.duration), kind };
    }
  }
}

/** True if a slot that starts here is in open time and clear of the busy blocks, apart from the grid. */
function isFree(open: OpenInterval[], { busy, rules }: SlotRequest, start: number): boolean {
  const stretch = open.find(({ from, to }) => from <= start && start < to);
  if (stretch === undefined || start + rules.duration > stretch.latestEnd) return false;
  const [from, to] = [start - rules.before, start + rules.duration + rules.after];
  return !busy.some((block) => block.from < to && block.to > from);
}

/** The grid of local times for starts: the first of these minutes that divides the interval (docs/reference.md, "Slots"). */
function anchorOf(interval: number): number {
  const minutes = [60, 30, 20, 15, 10, 5].find((size) => interval % (size * minute) === 0) ?? 1;
  return minutes * minute;
}

/** The first instant from `from` on whose local minute is a multiple of the anchor; the offset may change on the way. */
function aligned(from: number, anchor: number, zone: Zone): number {
  let at = from;
  for (;;) {
    const offset = zone.offsetAt(at);
    const next = Math.ceil((at + offset) / anchor) * anchor - offset;
    const change = next === at ? Number.POSITIVE_INFINITY : zone.changeAfter(at);
    if (next < change) return next;
    at = change;
  }
}
