import { Temporal } from "@js-temporal/polyfill";
import { LRUCache } from "lru-cache";
import { day } from "./clock.ts";
import windowsZones from "./windows-zones.json" with { type: "json" };

/**
 * A zone over some years as a table of offsets, so that a conversion is a comparison and an addition. Temporal fills the table. Local times
 * are ms since 1970 as if they were UTC; dates are days since 1970.
 */
export class Zone {
  readonly #since: number[];
  readonly #offsets: number[];
  /** Index of the last look-up; the next one is usually near. */
  #at = 0;

  /** From `since[i]` (ms since 1970), local time is `offsets[i]` ms ahead of UTC. */
  constructor(since: number[], offsets: number[]) {
    this.#since = since;
    this.#offsets = offsets;
  }

  /** Ms by which local time is ahead of UTC at an instant. */
  offsetAt(instant: number): number {
    const since = this.#since;
    let at = this.#at;
    while (at > 0 && instant < (since[at] as number)) at--;
    while (at + 1 < since.length && instant >= (since[at + 1] as number)) at++;
    this.#at = at;
    return this.#offsets[at] as number;
  }

  /** The first later instant with another offset; Infinity if the table has none. */
  changeAfter(instant: number): number {
    this.offsetAt(instant);
    const at = instant < (this.#since[0] as number) ? 0 : this.#at + 1;
    return this.#since[at] ?? Number.POSITIVE_INFINITY;
  }

  /** The instant of a local time. A skipped time moves forward; an ambiguous one means the earlier instant (docs/reference.md, "Slots"). */
  toInstant(local: number): number {
    const before = this.offsetAt(local - day);
    const after = this.offsetAt(local + day);
    if (before === after || this.offsetAt(local - before) === before) return local - before;
    return this.offsetAt(local - after) === after ? local - after : local - before;
  }

  /** True if the local time of an instant occurs twice, since clocks go back. */
  isRepeated(instant: number): boolean {
    const offset = this.offsetAt(instant);
    const around = [this.offsetAt(instant - day), this.offsetAt(instant + day)];
    return around.some((other) => other !== offset && this.offsetAt(instant + offset - other) === other);
  }

  /** The local date of an instant. */
  dateAt(instant: number): number {
    return Math.floor((instant + this.offsetAt(instant)) / day);
  }

  /** The first instant of a local date, or of the next date if the zone skipped it. */
  startOfDate(date: number): number {
    const start = this.toInstant(date * day);
    const exists = start + this.offsetAt(start) === date * day;
    return exists ? start : this.changeAfter(date * day - this.offsetAt(start));
  }
}

/** Longest name of a zone in characters; longer texts are not cached. */
const MAX_NAME_LENGTH = 64;
/** Cached checks: one costs as much as everything else about an event. */
const names = new LRUCache<string, boolean>({ max: 1000, memoMethod: isKnownToTemporal });

/** True for a zone of the IANA database. ICU accepts further names (`PST`, `IST`) that Temporal rejects at first use. */
export function isZone(name: string): boolean {
  return name.length <= MAX_NAME_LENGTH && names.memo(name);
}

/** The zone of a name that another runtime has stored: itself if it is known here, else UTC. */
export function storedZone(name: string): string {
  return isZone(name) ? name : "UTC";
}

function isKnownToTemporal(name: string): boolean {
  try {
    // The database's placeholder zone; some ICU versions accept it.
    if (!/^[a-z]/i.test(name) || /^factory$/i.test(name)) return false;
    Intl.DateTimeFormat("en", { timeZone: name });
    return Boolean(Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name));
  } catch {
    // Intl and Temporal throw for unknown names; they have no check.
    return false;
  }
}

/** The IANA name of a Windows zone (CLDR, windowsZones, territory 001, and two that Windows has dropped), or undefined. */
export function zoneOfWindows(name: string): string | undefined {
  const names: Readonly<Record<string, string>> = windowsZones;
  return Object.hasOwn(names, name) ? names[name] : undefined;
}

const zones = new LRUCache<string, Zone>({ max: 1000 });

/** The zone of an IANA name. Its table is valid from two days before `from` to two days after `to`. */
export function zoneOver(name: string, from: number, to: number): Zone {
  const first = new Date(from - 2 * day).getUTCFullYear();
  const last = new Date(to + 2 * day).getUTCFullYear();
  const key = `${name} ${first} ${last}`;
  const zone = zones.get(key) ?? zoneBetween(name, startOfYear(first), startOfYear(last + 1));
  zones.set(key, zone);
  return zone;
}

function zoneBetween(name: string, from: number, to: number): Zone {
  const [since, offsets]: [number[], number[]] = [[], []];
  const first = Temporal.Instant.fromEpochMilliseconds(from).toZonedDateTimeISO(storedZone(name));
  let at: Temporal.ZonedDateTime | null = first;
  while (at !== null && at.epochMilliseconds < to) {
    since.push(at.epochMilliseconds);
    offsets.push(at.offsetNanoseconds / 1e6);
    at = at.getTimeZoneTransition("next");
  }
  return new Zone(since, offsets);
}

function startOfYear(year: number): number {
  // Date.UTC reads years below 100 as 19xx.
  return new Date(0).setUTCFullYear(year, 0, 1);
}
