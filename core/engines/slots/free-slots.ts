import type { StoredEventType } from "../../../schemas/scheduling.ts";
import { day, hour, type Interval, minute } from "../../platform/clock.ts";
import { type Zone, zoneOver } from "../../platform/zones.ts";
import { type HoursKind, type OpenInterval, openTimes, type Timetable } from "./availability.ts";

/** What an event type requires of its slots. */
type SlotRules = Pick<
  StoredEventType,
  | ("durationMinutes" | "slotIntervalMinutes" | "buffers")
  | ("minimumNoticeMinutes" | "bookingWindowDays" | "maxBookingsPerDay")
>;

/** Everything that decides which slots of an event type are available. */
export interface SlotRequest {
  event: SlotRules;
  timetable: Timetable;
  /** Zone whose local time anchors the grid. */
  clock: string;
  /** Blocks within the reach of the window, see `reachOf`, sorted by start. */
  busy: Interval[];
  /** Starts of this event type's own bookings within the same reach. */
  booked: number[];
  /** Domain time in ms. */
  now: number;
}

/** Slots by their starts in ms, and for each the kind of the hours in which it starts. */
export interface AvailableSlots {
  at: number[];
  kinds: HoursKind[];
}

/** Longest local date, with two hours for time changes. */
const MAX_DATE_MS = day + 2 * hour;

/** The time whose blocks affect slots that start in a window: from the date's midnight on, where the grid begins. */
export function reachOf({ durationMinutes, buffers, maxBookingsPerDay }: SlotRules, window: Interval): Interval {
  const after = (durationMinutes + buffers.afterMinutes) * minute;
  const from = window.from - MAX_DATE_MS - buffers.beforeMinutes * minute;
  return { from, to: window.to + (maxBookingsPerDay ? Math.max(after, MAX_DATE_MS) : after) };
}

/**
 * Every slot that starts in [from, to) (docs/reference.md, "Slots"), or the first `maxStarts` of them. The grid begins again with each open
 * interval and after each block, in the local time of `clock`; the window only filters.
 */
export function availableSlots(request: SlotRequest, window: Interval & { maxStarts?: number }): AvailableSlots {
  const { from, to } = boundsOf(request, window);
  const found: AvailableSlots = { at: [], kinds: [] };
  const intervals = from < to ? bookableTimes(request, { from, to }) : [];
  const { durationMinutes, slotIntervalMinutes } = request.event;
  const interval = (slotIntervalMinutes ?? durationMinutes) * minute;
  const clock = zoneOver(request.clock, from - 2 * day, to);
  for (const { kind, free, last } of startRanges(intervals, request)) {
    const first = aligned(free, anchorOf(interval), clock);
    const skipped = Math.max(0, Math.ceil((from - first) / interval));
    for (let at = first + skipped * interval; at <= last && at < to; at += interval) {
      if (found.at.length === window.maxStarts) return found;
      found.at.push(at);
      found.kinds.push(kind);
    }
  }
  return found;
}

/** The free times of the open intervals, in one pass over them and the blocks: each with its kind and its last start. */
function* startRanges(
  intervals: OpenInterval[],
  { busy, event }: SlotRequest,
): Generator<{ kind: HoursKind; free: number; last: number }> {
  const duration = event.durationMinutes * minute;
  const [before, after] = [event.buffers.beforeMinutes * minute, event.buffers.afterMinutes * minute];
  let at = 0;
  for (const open of intervals) {
    let free = open.from;
    while (free < open.to) {
      while ((busy[at] ?? noBlock).to + before <= free) at++;
      const block = busy[at] ?? noBlock;
      const end = Math.min(open.latestEnd, block.from - after);
      if (end > free) yield { kind: open.kind, free, last: Math.min(open.to - 1, end - duration) };
      free = block.to + before;
    }
  }
}

const noBlock: Interval = { from: Number.POSITIVE_INFINITY, to: Number.POSITIVE_INFINITY };

/** True if a slot that starts here is in open time, apart from the grid and other bookings. */
export function isOpen(request: SlotRequest, start: number): boolean {
  const bounds = boundsOf(request, { from: start, to: start + 1 });
  const intervals = bounds.from < bounds.to ? bookableTimes(request, bounds) : [];
  const open = intervals.find(({ from, to }) => from <= start && start < to);
  return open !== undefined && start + request.event.durationMinutes * minute <= open.latestEnd;
}

/** First and last instant of a local date of the schedule's zone, `to` exclusive, for the day limit. */
export function localDay(timeZone: string, instant: number): Interval {
  const zone = zoneOver(timeZone, instant - 2 * day, instant + 2 * day);
  const date = zone.dateAt(instant);
  return { from: zone.startOfDate(date), to: zone.startOfDate(date + 1) };
}

/** No slot starts from here on: years have four digits. */
const LAST_INSTANT = Date.UTC(9999, 11, 30);

/** The first instant after the booking window, in the schedule's zone. */
function windowEnd({ timetable, event, now }: SlotRequest): number {
  if (!event.bookingWindowDays) return LAST_INSTANT;
  const last = zoneOver(timetable.timeZone, now, now).dateAt(now) + event.bookingWindowDays;
  return zoneOver(timetable.timeZone, last * day, (last + 1) * day).startOfDate(last + 1);
}

function boundsOf(request: SlotRequest, window: Interval): Interval {
  const earliest = request.now + request.event.minimumNoticeMinutes * minute;
  return { from: Math.max(window.from, earliest), to: Math.min(window.to, windowEnd(request)) };
}

/** The open intervals around these bounds, without fully booked dates. */
function bookableTimes(request: SlotRequest, bounds: Interval): OpenInterval[] {
  const zone = zoneOver(request.timetable.timeZone, bounds.from - 2 * day, bounds.to + 3 * day);
  const dates = { first: zone.dateAt(bounds.from) - 1, last: zone.dateAt(bounds.to) + 2 };
  const intervals = openTimes(request.timetable, zone, dates);
  const full = fullDates(request, zone);
  return full.size === 0 ? intervals : intervals.filter(({ date }) => !full.has(date));
}

function fullDates({ event: { maxBookingsPerDay: max }, booked }: SlotRequest, zone: Zone): Set<number> {
  if (!max) return new Set();
  const counts = new Map<number, number>();
  for (const start of booked) counts.set(zone.dateAt(start), (counts.get(zone.dateAt(start)) ?? 0) + 1);
  return new Set([...counts].filter(([, count]) => count >= max).map(([date]) => date));
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
