// Over 300 lines: one algorithm, the recurrence set of RFC 5545, section 3.8.5, with its bounds.
import ICAL from "ical.js";
import { LRUCache } from "lru-cache";
import { RRuleTemporal } from "rrule-temporal";
import { ofWindows } from "../../platform/windows-zones.ts";
import { day, isZone, type Zone, zoneOver } from "../../platform/zones.ts";

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
  /** Instances beyond which the expansion is abandoned. */
  maxInstances: number;
}

/** A blocked interval in ms, and its event. */
export interface BusyInterval {
  from: number;
  to: number;
  uid: string;
}

/**
 * The busy time of calendar objects (docs/reference.md, "Slots"). Rules are expanded in the local time of their zone; only the instances
 * are converted. Calendars of others are expanded in a thread that can be ended: some rules never end.
 */
export function expandRecurrence(asked: Expansion): BusyInterval[] {
  const taken: BusyInterval[] = [];
  for (const object of asked.objects) taken.push(...takenBy(object, asked, asked.maxInstances - taken.length));
  return taken;
}

type Value = string | [string, string];
type Property = [name: string, parameters: Record<string, string | string[]>, type: string, ...values: unknown[]];
type Component = InstanceType<typeof ICAL.Component>;
type Event = { properties: Property[]; clocks: Clocks };

/** A point in time of a calendar: local time, and whether it is a date. `instant` is set if it was given in UTC. */
interface Point {
  wall: number;
  isDate: boolean;
  clock: Clock;
  /** End or length of a period. */
  until?: string | undefined;
}

/** Converts between local time and instants. */
interface Clock {
  toInstant(wall: number): number;
  toWall(instant: number): number;
}

function takenBy(object: string, asked: Expansion, most: number): BusyInterval[] {
  const root = new ICAL.Component(ICAL.parse(object) as never);
  const clocks = new Clocks(ownClock(asked), root);
  const events = root
    .getAllSubcomponents("vevent")
    .map((one): Event => ({ properties: (one.toJSON() as unknown as [string, Property[]])[1], clocks }));
  const series = new Map<string, Event[]>();
  for (const event of events) series.set(uidOf(event), [...(series.get(uidOf(event)) ?? []), event]);
  const found = [...series.values()].flatMap((list) => takenBySeries(list, asked, most));
  if (found.length > most) throw new Error("The calendar has too many instances.");
  return found;
}

function takenBySeries(events: Event[], asked: Expansion, most: number): BusyInterval[] {
  const changed = events.filter((event) => point(event, "recurrence-id"));
  const masters = events.filter((event) => !point(event, "recurrence-id"));
  const exceptions = new Map(changed.map((event) => [instantOf(point(event, "recurrence-id") as Point), event]));
  const own = changed.flatMap((event) => instances(event, event)());
  const repeated = masters.flatMap((master) => instancesOf(master, { exceptions, asked, most }));
  return [...own, ...repeated].filter(({ from, to }) => to > asked.from && from < asked.to && to > from);

  /** Returns a function that makes the instances of an event with the times of another. */
  function instances(event: Event, times: Event): (wall?: number) => BusyInterval[] {
    const begins = point(times, "dtstart");
    if (begins === undefined || !isBusy(event, asked.owners)) return () => [];
    const [uid, ends] = [uidOf(event), endOf(times, begins)];
    return (wall = begins.wall) => [{ uid, from: begins.clock.toInstant(wall), to: ends(wall) }];
  }

  function instancesOf(
    master: Event,
    more: { exceptions: Map<number, Event>; asked: Expansion; most: number },
  ): BusyInterval[] {
    const begins = point(master, "dtstart");
    if (begins === undefined) return [];
    const left = new Set(points(master, "exdate").map(instantOf));
    const later = shiftsOf(more.exceptions);
    const walls = wallsOf(master, begins, { asked: more.asked, reach: reachOf(master, begins, later) });
    if (walls.length > more.most) throw new Error("The calendar has too many instances.");
    const [usual, shifted] = [instances(master, master), later.map(({ event }) => instances(event, event))];
    const ends = periodEnds(master, begins);
    return walls.flatMap((wall) => {
      const at = begins.clock.toInstant(wall);
      if (left.has(at) || more.exceptions.has(at)) return [];
      const shift = later.findLastIndex(({ since }) => since < at);
      const end = shift < 0 ? ends.get(wall) : undefined;
      if (end !== undefined) return usual(wall).map((one) => ({ ...one, to: end }));
      return shift < 0 ? usual(wall) : (shifted[shift]?.(wall + (later[shift]?.by ?? 0)) ?? []);
    });
  }
}

/** Changes of this and all later instances, earliest first, with the shift in ms of local time. */
function shiftsOf(exceptions: Map<number, Event>): { since: number; by: number; event: Event }[] {
  return [...exceptions]
    .flatMap(([since, event]) => {
      const [identity, begins] = [point(event, "recurrence-id"), point(event, "dtstart")];
      const isRange = property(event, "recurrence-id")?.[1].range === "THISANDFUTURE";
      if (!isRange || !identity || !begins) return [];
      return [{ since, by: begins.wall - identity.clock.toWall(instantOf(identity)), event }];
    })
    .sort((one, other) => one.since - other.since);
}

/** How far outside the window an instance may start and still matter. */
function reachOf(master: Event, begins: Point, later: { by: number; event: Event }[]): number {
  const lengths = [master, ...later.map(({ event }) => event)].map((event) => {
    const start = point(event, "dtstart") ?? begins;
    return endOf(event, start)(start.wall) - start.clock.toInstant(start.wall);
  });
  return Math.max(...lengths) + Math.max(0, ...later.map(({ by }) => Math.abs(by))) + 2 * day;
}

/** Local times at which the instances of a series start, without duplicates. */
function wallsOf(master: Event, begins: Point, { asked, reach }: { asked: Expansion; reach: number }): number[] {
  const rules = master.properties.filter(([name]) => name === "rrule");
  const added = points(master, "rdate").map((one) => begins.clock.toWall(instantOf(one)));
  if (rules.length === 0) return [...new Set([begins.wall, ...added])];
  const window = [asked.from - reach, asked.to + reach].map((ms) => new Date(ms)) as [Date, Date];
  const repeated = rules.flatMap((rule) =>
    new RRuleTemporal({ ...ruleOf(rule, begins), maxIterations: 200_000 })
      .between(...window, true)
      .map(({ epochMilliseconds }) => epochMilliseconds),
  );
  return [...new Set([...repeated, ...added])];
}

/** Ends of instances that are given as periods, by their local start (RFC 5545, section 3.8.5.2). */
function periodEnds(master: Event, begins: Point): Map<number, number> {
  const periods = points(master, "rdate").flatMap((one): [number, number][] => {
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

/** Returns a function from an instance's local start to the instant of its end. */
function endOf(event: Event, begins: Point): (wall: number) => number {
  const { clock, isDate } = begins;
  const end = point(event, "dtend");
  if (end && (end.isDate || isDate)) return (wall) => clock.toInstant(wall + end.wall - begins.wall);
  const elapsed = end && instantOf(end) - instantOf(begins);
  if (elapsed !== undefined) return (wall) => clock.toInstant(wall) + elapsed;
  const length = property(event, "duration")?.[3];
  if (typeof length === "string") return lengthened(clock, length);
  return (wall) => clock.toInstant(isDate ? wall + day : wall);
}

/** Days and weeks of a duration are local, the rest is elapsed time (RFC 5545, section 3.8.2.5). */
function lengthened(clock: Clock, length: string): (wall: number) => number {
  const { weeks, days, hours, minutes, seconds, isNegative } = ICAL.Duration.fromString(length);
  if (isNegative) return (wall) => clock.toInstant(wall);
  const [nominal, elapsed] = [(weeks * 7 + days) * day, ((hours * 60 + minutes) * 60 + seconds) * 1000];
  return (wall) => clock.toInstant(wall + nominal) + elapsed;
}

function isBusy(event: Event, owners: string[]): boolean {
  const text = (name: string): string => String(property(event, name)?.[3] ?? "").toUpperCase();
  if (text("status") === "CANCELLED" || text("transp") === "TRANSPARENT") return false;
  const answers = event.properties.flatMap(([name, { partstat, email }, , value]) => {
    const isOwner = name === "attendee" && [value, email].some((one) => owners.includes(addressIn(String(one))));
    return isOwner ? [String(partstat).toUpperCase()] : [];
  });
  return answers.length === 0 || answers.some((answer) => answer !== "DECLINED");
}

/** The comparable form of an address: lower case, without `mailto:`. */
export function addressIn(uri: string): string {
  return uri
    .trim()
    .toLowerCase()
    .replace(/^mailto:/, "");
}

/** Compared characters of a UID: RFC 7986, section 5.3, recommends fewer than 255. */
const MAX_UID_LENGTH = 255;

function uidOf(event: Event): string {
  return String(property(event, "uid")?.[3] ?? "").slice(0, MAX_UID_LENGTH);
}

function property(event: Event, name: string): Property | undefined {
  return event.properties.find(([one]) => one === name);
}

function point(event: Event, name: string): Point | undefined {
  return points(event, name)[0];
}

/** The points of a property; that of a period is its start. */
function points(event: Event, name: string): Point[] {
  return event.properties
    .filter(([one]) => one === name)
    .flatMap(([, parameters, , ...values]) =>
      (values as Value[]).map((value): Point => {
        const [text, until] = [value].flat() as [string, string | undefined];
        return { ...pointOf(text, event.clocks.of(parameters.tzid as string | undefined)), until };
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

const utc: Clock = { toInstant: (wall) => wall, toWall: (instant) => instant };

/** The clocks of one calendar object: its zones by name, and the calendar's own zone as default. */
class Clocks {
  readonly #known = new Map<string | undefined, Clock>();
  readonly #root: Component;

  constructor(own: Clock, root: Component) {
    this.#root = root;
    this.#known.set(undefined, own);
  }

  of(name: string | undefined): Clock {
    const known = this.#known.get(name) ?? this.#make(name as string);
    this.#known.set(name, known);
    return known;
  }

  #make(name: string): Clock {
    const described = this.#root.getAllSubcomponents("vtimezone").find((one) => textOf(one, "tzid") === name);
    return clockOf(name, described) ?? this.of(undefined);
  }
}

/** By name if the zone is known, whatever the calendar defines; else by the calendar's definition, if there is one. */
function clockOf(name: string, described: Component | undefined): Clock | undefined {
  const iana = ianaName(name) ?? (described && ianaName(textOf(described, "x-lic-location")));
  if (iana) return ianaClock(iana);
  return described && hasRules(described) ? describedClock(described) : undefined;
}

function hasRules(described: Component): boolean {
  const rules = ["standard", "daylight"].flatMap((name) => described.getAllSubcomponents(name));
  return rules.some((rule) => textOf(rule, "dtstart") !== "" && textOf(rule, "tzoffsetto") !== "");
}

function textOf(component: Component, name: string): string {
  return String(component.getFirstPropertyValue(name) ?? "");
}

/** Cached clocks of calendars' own zones, by definition; without a clock if it is unreadable. */
const ownClocks = new LRUCache<string, { clock: Clock | undefined }>({ max: 100 });

/** The clock of floating times and dates: the calendar's own zone, read like an event's, else `zone`. */
function ownClock({ calendarZone, zone }: Expansion): Clock {
  if (!calendarZone) return ianaClock(zone);
  const known = ownClocks.get(calendarZone) ?? { clock: toldClock(calendarZone) };
  ownClocks.set(calendarZone, known);
  return known.clock ?? ianaClock(zone);
}

function toldClock(text: string): Clock | undefined {
  try {
    const root = new ICAL.Component(ICAL.parse(text) as never);
    const described = root.name === "vtimezone" ? root : root.getFirstSubcomponent("vtimezone");
    const clock = described && clockOf(textOf(described, "tzid"), described);
    return clock && Number.isFinite(clock.toInstant(0)) ? clock : undefined;
  } catch {
    // An unreadable zone is ignored; the calendar's events keep their times.
    return undefined;
  }
}

/** `Europe/Berlin`, `W. Europe Standard Time`, `/vendor/version/Europe/Berlin`. */
function ianaName(name: string): string | undefined {
  const parts = name.split("/").filter((part) => part !== "");
  const endings = parts.map((_, at) => parts.slice(at).join("/"));
  return ofWindows(name) ?? endings.find(isZone);
}

const clocks = new LRUCache<string, ZoneClock>({ max: 1000 });

function ianaClock(name: string): Clock {
  const clock = clocks.get(name) ?? new ZoneClock(name);
  clocks.set(name, clock);
  return clock;
}

/** The clock of an IANA zone: its table extends a year to both sides of the last query, since a calendar's events are close together. */
class ZoneClock implements Clock {
  readonly #name: string;
  #over: { zone: Zone; from: number; to: number } | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  toInstant(wall: number): number {
    return this.#zoneAt(wall).toInstant(wall);
  }

  toWall(instant: number): number {
    return instant + this.#zoneAt(instant).offsetAt(instant);
  }

  #zoneAt(ms: number): Zone {
    const known = this.#over;
    if (known && ms >= known.from && ms <= known.to) return known.zone;
    const [from, to] = [ms - 366 * day, ms + 366 * day];
    this.#over = { zone: zoneOver(this.#name, from, to), from, to };
    return this.#over.zone;
  }
}

function describedClock(component: Component): Clock {
  const zone = new ICAL.Timezone(component);
  const timeOf = (ms: number, of: InstanceType<typeof ICAL.Timezone>): InstanceType<typeof ICAL.Time> => {
    const [date, time] = new Date(ms).toISOString().slice(0, 19).split("T") as [string, string];
    const [year, month, dayOfMonth] = date.split("-").map(Number) as [number, number, number];
    const [hour, minute, second] = time.split(":").map(Number) as [number, number, number];
    return new ICAL.Time({ year, month, day: dayOfMonth, hour, minute, second, isDate: false }, of);
  };
  return {
    toInstant: (wall) => timeOf(wall, zone).toUnixTime() * 1000,
    toWall: (instant) =>
      Date.parse(`${timeOf(instant, ICAL.Timezone.utcTimezone).convertToZone(zone).toString().slice(0, 19)}Z`),
  };
}
