import ICAL from "ical.js";
import { RRuleTemporal } from "rrule-temporal";
import { day } from "../../platform/zones.ts";
import { type Clock, type Clocks, calendarClock, clocksOf, utc } from "./clocks.ts";
import { type Component, componentsOf, type Property, parseObject, propertiesOf, textOf } from "./jcal.ts";

/** Calendar objects (RFC 5545) and the window of interest in ms. */
export interface Expansion {
  objects: string[];
  from: number;
  to: number;
  /** IANA zone of floating times and dates, if the calendar has no readable zone of its own. */
  zone: string;
  /** The calendar's own zone: an object with a VTIMEZONE (RFC 4791, section 5.2.2). */
  calendarZone?: string;
  /** Addresses of the owner, in lower case without `mailto:`: events that one of them declined block no time. */
  owners: string[];
  /** Instances of an object beyond which it counts as unreadable, and of all objects beyond which the rest is skipped. */
  maxInstances: number;
}

/** A blocked interval in ms, and its event. */
export interface BusyInterval {
  from: number;
  to: number;
  uid: string;
}

/** The result for one object: the time that it blocks, or why it can't be read. */
export interface Expanded {
  taken: BusyInterval[];
  fault?: string;
}

/**
 * The busy time of calendar objects (docs/reference.md, "Slots"), one by one. Rules are expanded in the local time of their zone; only the
 * instances are converted. Calendars of others are expanded in a thread that can be ended: some rules never end.
 */
export function* expandRecurrence(asked: Expansion): Generator<Expanded> {
  const own = calendarClock(asked.calendarZone, asked.zone);
  let instances = 0;
  for (const object of asked.objects) {
    // The calendar is abandoned at this number; further instances would only fill the memory.
    const expanded = instances > asked.maxInstances ? { taken: [] } : expandObject(object, own, asked);
    instances += expanded.taken.length;
    yield expanded;
  }
}

function expandObject(object: string, own: Clock, asked: Expansion): Expanded {
  try {
    const root = parseObject(object);
    const clocks = clocksOf(root, own);
    const events = componentsOf(root, "vevent").map((component) => readEvent(component, clocks));
    const series = new Map<string, Event[]>(events.map(({ uid }) => [uid, []]));
    for (const event of events) series.get(event.uid)?.push(event);
    const taken = [...series.values()].flatMap((list) => expandSeries(list, asked));
    if (taken.length > asked.maxInstances) throw new Error("The calendar has too many instances.");
    return { taken };
  } catch (error) {
    return { taken: [], fault: (error as Error).message.slice(0, 200) };
  }
}

/** An event with its start and, if it changes an instance of a series, the original start of that instance. */
interface Event {
  uid: string;
  component: Component;
  clocks: Clocks;
  begins: Point | undefined;
  replaces: Point | undefined;
}

/** Compared characters of a UID: RFC 7986, section 5.3, recommends fewer than 255. */
const MAX_UID_LENGTH = 255;

function readEvent(component: Component, clocks: Clocks): Event {
  const [begins] = pointsIn(component, clocks, "dtstart");
  const [replaces] = pointsIn(component, clocks, "recurrence-id");
  return { uid: textOf(component, "uid").slice(0, MAX_UID_LENGTH), component, clocks, begins, replaces };
}

function expandSeries(events: Event[], asked: Expansion): BusyInterval[] {
  const masters = events.filter(({ replaces }) => replaces === undefined);
  const changes = events.filter(({ replaces }) => replaces !== undefined);
  const replaced = new Set(changes.map(({ replaces }) => instantOf(replaces as Point)));
  const changed = { replaced, shifts: shiftsOf(changes, asked) };
  const own = changes.flatMap((event) => instances(event, asked)());
  const repeated = masters.flatMap((master) => repetitions(master, changed, asked));
  return [...own, ...repeated].filter(({ from, to }) => to > asked.from && from < asked.to && to > from);
}

/** Returns a function that makes the interval of an instance; none for an event that blocks no time. */
function instances(event: Event, { owners }: Expansion): (wall?: number) => BusyInterval[] {
  const { uid, begins } = event;
  if (begins === undefined || !isBusy(event, owners)) return () => [];
  const ends = endOf(event, begins);
  return (wall = begins.wall) => [{ uid, from: begins.clock.toInstant(wall), to: ends(wall) }];
}

/** A change of all instances after `since`: how far they move in ms of local time, and what they become. */
interface Shift {
  since: number;
  by: number;
  lengthMs: number;
  instances: (wall: number) => BusyInterval[];
}

/** Changes of this and all later instances, earliest first. */
function shiftsOf(changes: Event[], asked: Expansion): Shift[] {
  return changes
    .flatMap((event) => {
      const { begins, replaces, component } = event;
      const isRange = propertiesOf(component, "recurrence-id")[0]?.[1].range === "THISANDFUTURE";
      if (!isRange || !replaces || !begins) return [];
      const since = instantOf(replaces);
      const by = begins.wall - replaces.clock.toWall(since);
      return [{ since, by, lengthMs: lengthOf(event, begins), instances: instances(event, asked) }];
    })
    .sort((one, other) => one.since - other.since);
}

/** The instances of a series that no exception replaces. */
function repetitions(
  master: Event,
  { replaced, shifts }: { replaced: Set<number>; shifts: Shift[] },
  asked: Expansion,
): BusyInterval[] {
  const { begins, component, clocks } = master;
  if (begins === undefined) return [];
  const walls = wallsOf(master, begins, windowOf(lengthOf(master, begins), shifts, asked));
  const excluded = new Set(pointsIn(component, clocks, "exdate").map(instantOf));
  const ends = periodEnds(master, begins);
  const usual = instances(master, asked);
  return walls.flatMap((wall) => {
    const at = begins.clock.toInstant(wall);
    if (excluded.has(at) || replaced.has(at)) return [];
    const shift = shifts.findLast(({ since }) => since < at);
    if (shift) return shift.instances(wall + shift.by);
    return usual(wall).map((one) => ({ ...one, to: ends.get(wall) ?? one.to }));
  });
}

/** The window in which instances may start and still matter, with room for differences to UTC. */
function windowOf(lengthMs: number, shifts: Shift[], { from, to }: Expansion): [Date, Date] {
  const longest = Math.max(lengthMs, ...shifts.map((shift) => shift.lengthMs));
  const reach = longest + Math.max(0, ...shifts.map(({ by }) => Math.abs(by))) + 2 * day;
  return [new Date(from - reach), new Date(to + reach)];
}

/** Local times at which the instances of a series start, without duplicates. */
function wallsOf({ component, clocks }: Event, begins: Point, window: [Date, Date]): number[] {
  const rules = propertiesOf(component, "rrule");
  const added = pointsIn(component, clocks, "rdate").map((one) => begins.clock.toWall(instantOf(one)));
  const repeated = rules.flatMap((rule) =>
    new RRuleTemporal({ ...ruleOf(rule, begins), maxIterations: 200_000 })
      .between(...window, true)
      .map(({ epochMilliseconds }) => epochMilliseconds),
  );
  return [...new Set([...(rules.length === 0 ? [begins.wall] : repeated), ...added])];
}

/** Ends of instances that are given as periods, by their local start (RFC 5545, section 3.8.5.2). */
function periodEnds({ component, clocks }: Event, begins: Point): Map<number, number> {
  const periods = pointsIn(component, clocks, "rdate").flatMap((one): [number, number][] => {
    const { until, clock, wall } = one;
    if (until === undefined) return [];
    const end = /P/.test(until) ? lengthened(clock, until)(wall) : instantOf(pointOf(until, clock));
    return [[begins.clock.toWall(instantOf(one)), end]];
  });
  return new Map(periods);
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

/** The last local time of a rule with `UNTIL`, which may be a date or in UTC. */
function lastWall(until: string, { clock }: Point): number {
  if (until.endsWith("Z")) return clock.toWall(Date.parse(until));
  return wallOf(until) + (until.length === 10 ? day - 1000 : 0);
}

/** A time in UTC as iCalendar writes it (RFC 5545, section 3.3.5). */
export function utcTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace(/[-:]/g, "")}Z`;
}

/** Ms from the start of an event to its end. */
function lengthOf(event: Event, begins: Point): number {
  return endOf(event, begins)(begins.wall) - instantOf(begins);
}

/** Returns a function from an instance's local start to the instant of its end. */
function endOf({ component, clocks }: Event, begins: Point): (wall: number) => number {
  const { clock, isDate } = begins;
  const [end] = pointsIn(component, clocks, "dtend");
  if (end && (end.isDate || isDate)) return (wall) => clock.toInstant(wall + end.wall - begins.wall);
  const elapsed = end && instantOf(end) - instantOf(begins);
  if (elapsed !== undefined) return (wall) => clock.toInstant(wall) + elapsed;
  const length = textOf(component, "duration");
  if (length !== "") return lengthened(clock, length);
  return (wall) => clock.toInstant(isDate ? wall + day : wall);
}

/** Days and weeks of a duration are local, the rest is elapsed time (RFC 5545, section 3.8.2.5). */
function lengthened(clock: Clock, length: string): (wall: number) => number {
  const { weeks, days, hours, minutes, seconds, isNegative } = ICAL.Duration.fromString(length);
  if (isNegative) return (wall) => clock.toInstant(wall);
  const [nominal, elapsed] = [(weeks * 7 + days) * day, ((hours * 60 + minutes) * 60 + seconds) * 1000];
  return (wall) => clock.toInstant(wall + nominal) + elapsed;
}

function isBusy({ component }: Event, owners: string[]): boolean {
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

/** The points of a property; that of a period is its start. */
function pointsIn(component: Component, clocks: Clocks, name: string): Point[] {
  return propertiesOf(component, name).flatMap(([, { tzid }, , ...values]) =>
    (values as (string | [string, string])[]).map((value): Point => {
      const [text, until] = [value].flat() as [string, string | undefined];
      return { ...pointOf(text, clocks(tzid as string | undefined)), until };
    }),
  );
}

function pointOf(text: string, clock: Clock): Point {
  return { wall: wallOf(text), isDate: text.length === 10, clock: text.endsWith("Z") ? utc : clock };
}

const instantOf = ({ wall, clock }: Point): number => clock.toInstant(wall);

function wallOf(text: string): number {
  return Date.parse(text.length === 10 ? `${text}T00:00:00Z` : text.endsWith("Z") ? text : `${text}Z`);
}
