import ICAL from "ical.js";
import { RRuleTemporal } from "rrule-temporal";
import { day, type Interval, minute } from "../../platform/clock.ts";
import { type Clock, type Clocks, calendarClock, clocksOf, utc } from "./clocks.ts";
import { type Component, componentsOf, type Property, parseObject, propertiesOf, textOf } from "./jcal.ts";

/** How calendar objects (RFC 5545) are expanded: the window of interest, and what is known about their calendar. */
export interface Expansion extends Interval {
  /** IANA zone of floating times and dates, if the calendar has no readable zone of its own. */
  zone: string;
  /** The calendar's own zone: an object with a VTIMEZONE (RFC 4791, section 5.2.2). */
  calendarZone?: string;
  /** Addresses of the owner, in lower case without `mailto:`: events that one of them declined block no time. */
  owners: string[];
  /** Instances of an object beyond which it counts as unreadable. */
  maxInstances: number;
}

/** A blocked interval, and its event. */
export interface BusyInterval extends Interval {
  uid: string;
}

/** The result for one object: the time that it blocks, or why it can't be read. */
export interface ExpandedObject {
  busy: BusyInterval[];
  fault?: string;
}

/** Why an object can't be read. The sentences repeat nothing of it, because they are logged. */
export const TOO_MANY = "The calendar has too many instances.";
const NO_CALENDAR = "It is not a calendar object.";
const UNREADABLE = "The times of an event can't be read.";

/**
 * The busy time of a calendar object (docs/reference.md, "Slots"). Rules are expanded in the local time of their zone; only the instances
 * are converted. Calendars of others are expanded in a thread that can be ended: some rules never end. An event that can't be read leaves
 * the others of the object as they are.
 */
export function expandObject(object: string, expansion: Expansion): ExpandedObject {
  const root = attempt(() => parseObject(object));
  const components = attempt(() => root && componentsOf(root, "vevent"));
  if (root === undefined || components === undefined) return { busy: [], fault: NO_CALENDAR };
  const clocks = clocksOf(root, calendarClock(expansion.calendarZone, expansion.zone));
  const read = components.map((component) => attempt(() => readEvent(component, clocks, expansion.owners)));
  const events = read.flatMap((found) => found ?? []);
  const series = new Map<string, Event[]>(events.map(({ uid }) => [uid, []]));
  for (const event of events) series.get(event.uid)?.push(event);
  const expanded = [...series.values()].map((list) => attempt(() => expandSeries(list, expansion)));
  const busy = expanded.flatMap((found) => found ?? []);
  if (busy.length > expansion.maxInstances) return { busy: [], fault: TOO_MANY };
  return [...read, ...expanded].includes(undefined) ? { busy, fault: UNREADABLE } : { busy };
}

/** The result; undefined for what can't be read, whatever error that is to a library. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    // The message may quote the calendar.
    return undefined;
  }
}

/** An event or, with `replaces`, the change of an instance that would start there. */
interface Event {
  uid: string;
  component: Component;
  clocks: Clocks;
  begins: Point;
  replaces: Point | undefined;
  isBusy: boolean;
  /** The instant at which an instance ends, by its local start. */
  endOf: (wall: number) => number;
}

/** Compared characters of a UID: RFC 7986, section 5.3, recommends fewer than 255. */
const MAX_UID_LENGTH = 255;

/** An event; none without any start. */
function readEvent(component: Component, clocks: Clocks, owners: string[]): Event[] {
  const replaces = pointIn(component, clocks, "recurrence-id");
  const begins = pointIn(component, clocks, "dtstart") ?? replaces;
  if (begins === undefined) return [];
  const uid = textOf(component, "uid").slice(0, MAX_UID_LENGTH);
  const endOf = endsOf(component, clocks, begins);
  return [{ uid, component, clocks, begins, replaces, isBusy: isBusy(component, owners), endOf }];
}

function expandSeries(events: Event[], expansion: Expansion): BusyInterval[] {
  const masters = events.filter(({ replaces }) => replaces === undefined);
  const changes = events.filter(({ replaces }) => replaces !== undefined);
  const replaced = changes.map(({ replaces }) => replaces as Point);
  const shifts = changes.flatMap(shiftOf).sort((one, other) => one.since - other.since);
  const own = changes.flatMap((event) => instanceOf(event, event.begins.wall));
  const repeated = masters.flatMap((master) => repetitions(master, { replaced, shifts }, expansion));
  return [...own, ...repeated].filter(({ from, to }) => to > expansion.from && from < expansion.to && to > from);
}

/** The time that an instance blocks, if any. */
function instanceOf({ uid, begins, isBusy, endOf }: Event, wall: number): BusyInterval[] {
  return isBusy ? [{ uid, from: begins.clock.toInstant(wall), to: endOf(wall) }] : [];
}

/** A change of all instances after `since`: how far they move in ms of local time, and what they become. */
interface Shift {
  since: number;
  by: number;
  event: Event;
}

/** The shift of a change of this and all later instances. */
function shiftOf(event: Event): Shift[] {
  const { begins, replaces, component } = event;
  const range = propertiesOf(component, "recurrence-id")[0]?.[1].range;
  const isRange = String(range).toUpperCase() === "THISANDFUTURE";
  if (!isRange || !replaces) return [];
  const since = instantOf(replaces);
  return [{ since, by: begins.wall - replaces.clock.toWall(since), event }];
}

/** The instances of a series that no change replaces. */
function repetitions(
  master: Event,
  { replaced, shifts }: { replaced: Point[]; shifts: Shift[] },
  expansion: Expansion,
): BusyInterval[] {
  const { begins, component, clocks } = master;
  const isNamed = naming([...replaced, ...pointsIn(component, clocks, "exdate")], begins);
  return [...startsOf(master, windowOf(master, shifts, expansion))].flatMap(([wall, end]) => {
    const at = begins.clock.toInstant(wall);
    if (isNamed(at, wall)) return [];
    const shift = shifts.findLast(({ since }) => since < at);
    if (shift) return instanceOf(shift.event, wall + shift.by);
    return instanceOf(master, wall).map((one) => ({ ...one, to: end ?? one.to }));
  });
}

/** True for an instance that is named, by its start and by its local start. */
type Naming = (at: number, wall: number) => boolean;

/**
 * Instances are named by their start. Some programs name one of a timed series by its date alone, and Exchange names one of whole days, which
 * have no zone, by the midnight of its own zone.
 */
function naming(points: Point[], begins: Point): Naming {
  const instants = new Set(points.map(instantOf));
  const isDated = ({ isDate, wall }: Point): boolean => isDate || (begins.isDate && wall % day === 0);
  const dates = new Set(points.filter(isDated).map(({ wall }) => wall / day));
  return (at, wall) => instants.has(at) || dates.has(Math.floor(wall / day));
}

/** The window in which instances may start and still matter, with room for differences to UTC. */
function windowOf(master: Event, shifts: Shift[], { from, to }: Expansion): [Date, Date] {
  const events = [master, ...shifts.map(({ event }) => event)];
  const longest = Math.max(...events.map(({ begins, endOf }) => endOf(begins.wall) - instantOf(begins)));
  const reach = longest + Math.max(0, ...shifts.map(({ by }) => Math.abs(by))) + 2 * day;
  return [new Date(from - reach), new Date(to + reach)];
}

/** Local times at which the instances of a series start, with the instant of the end of those that are given as periods. */
function startsOf({ component, clocks, begins }: Event, window: [Date, Date]): Map<number, number | undefined> {
  const rules = propertiesOf(component, "rrule");
  const starts = new Map<number, number | undefined>(rules.length === 0 ? [[begins.wall, undefined]] : []);
  for (const rule of rules) {
    const repeated = new RRuleTemporal({ ...ruleOf(rule, begins), maxIterations: 200_000 }).between(...window, true);
    for (const { epochMilliseconds } of repeated) starts.set(epochMilliseconds, undefined);
  }
  for (const point of pointsIn(component, clocks, "rdate"))
    starts.set(begins.clock.toWall(instantOf(point)), endOfPeriod(point));
  return starts;
}

/** The end of an instance that is given as a period (RFC 5545, section 3.8.5.2). */
function endOfPeriod({ until, clock, wall }: Point): number | undefined {
  if (until === undefined) return undefined;
  return until.includes("P") ? lengthened(clock, until)(wall) : instantOf(pointOf(until, clock));
}

/**
 * The rule as if its zone were UTC, so that it is expanded in local time. The start is the first instance even if the rule leaves it out
 * (RFC 5545, section 3.8.5.3, doesn't define this case; calendars show it so), unless the series ended before.
 */
function ruleOf(rule: Property, begins: Point): { rruleString: string; includeDtstart: boolean } {
  const parts = rule[3] as { until?: string };
  const until = parts.until === undefined ? Number.POSITIVE_INFINITY : lastWall(parts.until, begins);
  const bound = Number.isFinite(until) ? { until: new Date(until).toISOString().replace(".000", "") } : {};
  const line = ICAL.stringify.property(["rrule", {}, "recur", { ...parts, ...bound }], ICAL.design.icalendar, true);
  return { rruleString: `DTSTART:${utcTime(begins.wall)}\n${line}`, includeDtstart: until >= begins.wall };
}

/**
 * The last local time of a rule with `UNTIL`, which may be a date or in UTC. That of whole days must be a date (RFC 5545, section 3.3.10),
 * but Outlook writes the last one's local midnight in UTC, and others any time of its date, or the end of its local date in UTC.
 */
function lastWall(until: string, { clock, isDate }: Point): number {
  const written = wallOf(until);
  if (!until.endsWith("Z")) return written + (until.length === 10 ? day - 1000 : 0);
  const local = clock.toWall(written);
  if (!isDate) return local;
  return [local, written].find(isLastMinute) ?? Math.max(written, local);
}

/** True for a local time in the last minute of its date. */
function isLastMinute(wall: number): boolean {
  return wall % day >= day - minute;
}

/** A time in UTC as iCalendar writes it (RFC 5545, section 3.3.5). */
export function utcTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace(/[-:]/g, "")}Z`;
}

/** Returns a function from an instance's local start to the instant of its end. A whole day that ends on its own date covers it. */
function endsOf(component: Component, clocks: Clocks, begins: Point): (wall: number) => number {
  const { clock, isDate } = begins;
  const endOf = statedEnds(component, clocks, begins);
  return isDate ? (wall) => Math.max(endOf(wall), clock.toInstant(wall + day)) : endOf;
}

function statedEnds(component: Component, clocks: Clocks, begins: Point): (wall: number) => number {
  const { clock, isDate } = begins;
  const end = pointIn(component, clocks, "dtend");
  if (end && (end.isDate || isDate)) return (wall) => clock.toInstant(wall + end.wall - begins.wall);
  const elapsed = end && instantOf(end) - instantOf(begins);
  if (elapsed !== undefined) return (wall) => clock.toInstant(wall) + elapsed;
  const length = textOf(component, "duration");
  if (length !== "") return lengthened(clock, length);
  return clock.toInstant;
}

/** Days and weeks of a duration are local, the rest is elapsed time (RFC 5545, section 3.3.6). */
function lengthened(clock: Clock, length: string): (wall: number) => number {
  const { weeks, days, hours, minutes, seconds, isNegative } = ICAL.Duration.fromString(length);
  if (isNegative) return (wall) => clock.toInstant(wall);
  const [nominal, elapsed] = [(weeks * 7 + days) * day, ((hours * 60 + minutes) * 60 + seconds) * 1000];
  return (wall) => clock.toInstant(wall + nominal) + elapsed;
}

function isBusy(component: Component, owners: string[]): boolean {
  const isValue = (name: string, value: string): boolean => textOf(component, name).toUpperCase() === value;
  if (isValue("status", "CANCELLED") || isValue("transp", "TRANSPARENT")) return false;
  const answers = propertiesOf(component, "attendee")
    .filter(([, { email }, , value]) => [value, email].some((one) => owners.includes(addressIn(String(one)))))
    .map(([, { partstat }]) => String(partstat).toUpperCase());
  return answers.length === 0 || answers.some((answer) => answer !== "DECLINED");
}

/** The comparable form of an address: lower case, without `mailto:`. */
export function addressIn(uri: string): string {
  return uri
    .trim()
    .toLowerCase()
    .replace(/^mailto:/, "");
}

/** A point in time of a calendar: local time in ms, and whether it is a date. */
interface Point {
  wall: number;
  isDate: boolean;
  clock: Clock;
  /** End or length of a period. */
  until?: string | undefined;
}

/** The point of a property, if there is one; throws if it can't be read. */
function pointIn(component: Component, clocks: Clocks, name: string): Point | undefined {
  const [point] = pointsIn(component, clocks, name);
  if (point === undefined && propertiesOf(component, name).length > 0) throw new Error(UNREADABLE);
  return point;
}

/** The readable points of a property; that of a period is its start. */
function pointsIn(component: Component, clocks: Clocks, name: string): Point[] {
  const points = propertiesOf(component, name).flatMap(([, { tzid }, , ...values]) =>
    (values as (string | [string, string])[]).map((value): Point => {
      const [text, until] = [value].flat() as [string, string | undefined];
      return { ...pointOf(text, clocks(tzid as string | undefined)), until };
    }),
  );
  return points.filter(({ wall }) => !Number.isNaN(wall));
}

/** A date without VALUE=DATE, as some programs write it, is `2026-10-12T::` to ical.js. */
function pointOf(given: string, clock: Clock): Point {
  const text = given.replace(/T::$/, "");
  return { wall: wallOf(text), isDate: text.length === 10, clock: text.endsWith("Z") ? utc : clock };
}

const instantOf = ({ wall, clock }: Point): number => clock.toInstant(wall);

/** A leap second is read as the second before it (RFC 5545, section 3.3.12). */
function wallOf(given: string): number {
  const text = given.replace(/:60(?=Z?$)/, ":59");
  return Date.parse(text.length === 10 ? `${text}T00:00:00Z` : text.endsWith("Z") ? text : `${text}Z`);
}
