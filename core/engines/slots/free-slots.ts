import { day, hour, minute, type Zone, zoneOver } from "../../platform/zones.ts";
import { type OpenInterval, openTimes, type Timetable } from "./availability.ts";

/** Busy time: the start and end of each block in ms since 1970, sorted by start. */
export interface Busy {
  from: number[];
  to: number[];
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
  /** Blocks within the reach of the window, see `reachOf`. */
  busy: Busy;
  /** Starts of this event type's own bookings within the same reach. */
  booked: number[];
  /** Domain time in ms. */
  now: number;
}

/** Slots by their starts in ms, and for each the open interval in which it starts. */
export interface AvailableSlots extends Starts {
  stretches: OpenInterval[];
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

/** The time to search, `to` exclusive, and the number of starts after which the search ends. */
interface SearchWindow {
  from: number;
  to: number;
  maxStarts?: number;
}

/** Every slot that starts in [from, to) (docs/reference.md, "Slots"), or the first `maxStarts` of them. */
export function availableSlots(offering: SlotRequest, window: SearchWindow): AvailableSlots {
  const bounds = boundsOf(offering, window);
  if (bounds.from >= bounds.to) return { at: [], open: [], stretches: [] };
  const stretches = bookableTimes(offering, bounds);
  const clock = zoneOver(offering.clock, bounds.from - 2 * day, bounds.to);
  const within = { ...bounds, maxStarts: window.maxStarts };
  return { ...findStarts(stretches, offering.busy, { ...offering.rules, clock }, within), stretches };
}

/** True if a slot that starts here could be booked, apart from the grid. */
export function isBookable(offering: SlotRequest, start: number): boolean {
  const bounds = boundsOf(offering, { from: start, to: start + 1 });
  return bounds.from < bounds.to && isFree(bookableTimes(offering, bounds), offering.busy, offering.rules, start);
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

/** Starts of slots in ms, and for each the index of its open interval. */
export interface Starts {
  at: number[];
  open: number[];
}

/**
 * Every start of a slot in [within.from, within.to), in one pass over open intervals and busy blocks (docs/reference.md, "Slots"). The grid
 * begins again with each interval and after each block, in the local time of `clock`; `within` only filters.
 */
function findStarts(
  open: OpenInterval[],
  busy: Busy,
  rules: SlotRules & { clock: Zone },
  within: { from: number; to: number; maxStarts?: number | undefined },
): Starts {
  const found: Starts = { at: [], open: [] };
  const { maxStarts = Number.POSITIVE_INFINITY } = within;
  const anchor = anchorOf(rules.interval);
  let block = 0;
  for (let index = 0; index < open.length; index++) {
    const stretch = open[index] as OpenInterval;
    if (stretch.from >= within.to || found.at.length >= maxStarts) break;
    if (stretch.to <= within.from) continue;
    let free = stretch.from;
    while (free < stretch.to) {
      while (block < busy.to.length && (busy.to[block] as number) + rules.before <= free) block++;
      const blocked = block < busy.from.length ? (busy.from[block] as number) - rules.after : Number.POSITIVE_INFINITY;
      if (blocked > free) {
        const last = Math.min(stretch.to - 1, Math.min(stretch.latestEnd, blocked) - rules.duration, within.to - 1);
        if (last >= within.from)
          step(found, index, {
            from: aligned(free, anchor, rules.clock),
            last,
            earliest: within.from,
            interval: rules.interval,
            maxStarts,
          });
      }
      if (blocked >= stretch.to) break;
      free = (busy.to[block] as number) + rules.before;
    }
  }
  return found;
}

/** True if a slot that starts here is in open time and clear of the busy blocks, apart from the grid. */
export function isFree(open: OpenInterval[], busy: Busy, rules: SlotRules, start: number): boolean {
  const stretch = open.find(({ from, to }) => from <= start && start < to);
  if (stretch === undefined || start + rules.duration > stretch.latestEnd) return false;
  const [from, to] = [start - rules.before, start + rules.duration + rules.after];
  return !busy.from.some((begins, at) => begins < to && (busy.to[at] as number) > from);
}

/** Two sorted lists of blocks as one. */
export function joinBusy(one: Busy, other: Busy): Busy {
  if (one.from.length === 0 || other.from.length === 0) return one.from.length === 0 ? other : one;
  const joined: Busy = { from: [], to: [] };
  for (let first = 0, second = 0; first < one.from.length || second < other.from.length; ) {
    const takesFirst =
      (one.from[first] ?? Number.POSITIVE_INFINITY) <= (other.from[second] ?? Number.POSITIVE_INFINITY);
    const [list, at] = takesFirst ? [one, first++] : [other, second++];
    joined.from.push(list.from[at] as number);
    joined.to.push(list.to[at] as number);
  }
  return joined;
}

/** The grid of local times for starts: the first of these minutes that divides the interval (docs/reference.md, "Slots"). */
function anchorOf(interval: number): number {
  const minutes = [60, 30, 20, 15, 10, 5].find((size) => interval % (size * minute) === 0) ?? 1;
  return minutes * minute;
}

/** The first instant from `from` on whose local minute is a multiple of the anchor; the offset may change on the way. */
function aligned(from: number, anchor: number, clock: Zone): number {
  let at = from;
  for (;;) {
    const offset = clock.offsetAt(at);
    const next = Math.ceil((at + offset) / anchor) * anchor - offset;
    const change = next === at ? Number.POSITIVE_INFINITY : clock.changeAfter(at);
    if (next < change) return next;
    at = change;
  }
}

function step(
  found: Starts,
  index: number,
  run: { from: number; last: number; earliest: number; interval: number; maxStarts: number },
): void {
  const skipped = Math.max(0, Math.ceil((run.earliest - run.from) / run.interval));
  for (let at = run.from + skipped * run.interval; at <= run.last; at += run.interval) {
    if (found.at.length === run.maxStarts) return;
    found.at.push(at);
    found.open.push(index);
  }
}
