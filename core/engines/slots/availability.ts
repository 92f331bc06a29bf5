import type { StoredSchedule } from "../../../schemas/scheduling.ts";
import { day, type Interval, minute } from "../../platform/clock.ts";
import type { Zone } from "../../platform/zones.ts";

/** The source of a slot's open hours (docs/reference.md, "Slots"). */
export type HoursKind = "weekly" | "override" | "default";

/** Open hours of a local day in minutes since midnight; 1440 as an end is the next date's first instant. */
interface Hours {
  from: number;
  to: number;
}

/** A schedule ready for evaluation: hours by weekday (0 = Sunday) and overrides for single dates (days since 1970). */
export interface Timetable {
  timeZone: string;
  kind: "weekly" | "default";
  week: Hours[][];
  dates: Map<number, Hours[]>;
  /** First and last date of each closed period. */
  closed: [number, number][];
}

/**
 * An open interval within one local date: slots start in [from, to) and may run until `latestEnd`, which is later if the next date's hours
 * continue at midnight. All in ms since 1970; `date` in days.
 */
export interface OpenInterval extends Interval {
  latestEnd: number;
  date: number;
  kind: HoursKind;
}

/** Minutes of a local `HH:MM`. */
function minutesOf(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
}

/** Days since 1970 of `YYYY-MM-DD`. */
function dateOf(text: string): number {
  return Date.parse(`${text}T00:00:00Z`) / day;
}

/** Hours by schedule: the many event types of one share them. */
const timetables = new WeakMap<StoredSchedule, Timetable>();

/** The hours of a schedule; without one, Monday to Friday 09:00–17:00 in the event type's zone. */
export function timetableOf(schedule: StoredSchedule | undefined, eventZone: string): Timetable {
  if (schedule === undefined)
    return { timeZone: eventZone, kind: "default", week: workingWeek, dates: new Map(), closed: [] };
  const timetable = timetables.get(schedule) ?? hoursOfSchedule(schedule);
  timetables.set(schedule, timetable);
  return timetable;
}

function hoursOfSchedule({ timeZone, weeklyAvailability, overrides }: StoredSchedule): Timetable {
  const week = workingWeek.map((_, weekday) => weeklyAvailability.filter((row) => row.day === weekday).map(hoursOf));
  const dates = new Map<number, Hours[]>();
  const closed: [number, number][] = [];
  for (const row of overrides) {
    if ("from" in row) {
      closed.push([dateOf(row.from), dateOf(row.to)]);
      continue;
    }
    const hours = dates.get(dateOf(row.date)) ?? [];
    if ("startTime" in row) hours.push(hoursOf(row));
    dates.set(dateOf(row.date), hours);
  }
  return { timeZone, kind: "weekly", week, dates, closed };
}

const workingWeek: Hours[][] = [0, 1, 2, 3, 4, 5, 6].map((weekday) =>
  weekday === 0 || weekday === 6 ? [] : [{ from: 540, to: 1020 }],
);

/** As an end, `23:59` and `24:00` mean the end of the day (docs/reference.md, "Slots"). */
function hoursOf({ startTime, endTime }: { startTime: string; endTime: string }): Hours {
  return { from: minutesOf(startTime), to: endTime === "23:59" ? 1440 : minutesOf(endTime) };
}

/** The open intervals of the local dates from `first` to `last`, in order, each within one date (docs/reference.md, "Slots"). */
export function openTimes(timetable: Timetable, zone: Zone, dates: { first: number; last: number }): OpenInterval[] {
  const found: OpenInterval[] = [];
  for (let date = dates.first; date <= dates.last; date++) addDate(found, timetable, zone, date);
  return extendAcrossMidnight(mergeIntervals(found, zone));
}

function addDate(found: OpenInterval[], timetable: Timetable, zone: Zone, date: number): void {
  const replaced =
    timetable.dates.get(date) ?? (timetable.closed.some(([from, to]) => from <= date && date <= to) ? [] : undefined);
  const kind = replaced === undefined ? timetable.kind : "override";
  for (const hours of replaced ?? (timetable.week[weekdayOf(date)] as Hours[])) {
    const from = zone.toInstant(date * day + hours.from * minute);
    const to = hours.to === 1440 ? zone.startOfDate(date + 1) : zone.toInstant(date * day + hours.to * minute);
    if (to > from) found.push({ from, to, latestEnd: to, date, kind });
  }
}

/** 1970-01-01 was a Thursday. */
function weekdayOf(date: number): number {
  return (((date + 4) % 7) + 7) % 7;
}

/** Merges overlapping and adjacent intervals, and cuts them at each local midnight, where the grid of starts begins again. */
function mergeIntervals(found: OpenInterval[], zone: Zone): OpenInterval[] {
  found.sort((one, other) => one.from - other.from);
  const all: OpenInterval[] = [];
  for (const open of found) {
    open.from = Math.max(open.from, all.at(-1)?.to ?? open.from);
    while (open.from < open.to) open.from = addPiece(all, zone, open);
  }
  return all;
}

/** Adds the part before the next midnight, merged into the last piece if it continues on the same date. Returns the end of that part. */
function addPiece(all: OpenInterval[], zone: Zone, open: OpenInterval): number {
  const date = zone.dateAt(open.from);
  const midnight = zone.startOfDate(date + 1);
  const to = midnight > open.from ? Math.min(open.to, midnight) : open.to;
  const last = all.at(-1);
  if (last?.to === open.from && last.date === date) last.to = to;
  else all.push({ ...open, to, latestEnd: to, date });
  return to;
}

/** Lets slots run past midnight if the next interval begins where this one ends. */
function extendAcrossMidnight(all: OpenInterval[]): OpenInterval[] {
  let next: OpenInterval | undefined;
  for (const one of all.toReversed()) {
    one.latestEnd = next?.from === one.to ? next.latestEnd : one.to;
    next = one;
  }
  return all;
}
