import { Temporal } from "@js-temporal/polyfill";
import { LRUCache } from "lru-cache";

/** Milliseconds of an elapsed minute, of an hour, and of a day of 24 hours. */
export const minute = 60_000;
export const hour = 3_600_000;
export const day = 86_400_000;

/** A stretch of a zone: from `since[i]` on (ms since 1970) the wall is `offsets[i]` ms ahead of UTC. */
interface Offsets {
  since: number[];
  offsets: number[];
}

/**
 * A zone over a stretch of years as a table of offsets, so that conversions are a comparison and an addition. Temporal is the
 * truth that the table is made of. Local times are ms since 1970 as if the wall were UTC; dates are days since 1970.
 */
export class Zone {
  readonly #since: number[];
  readonly #offsets: number[];
  /** Where the last look-up ended; the next one is near as a rule. */
  #at = 0;

  constructor({ since, offsets }: Offsets) {
    this.#since = since;
    this.#offsets = offsets;
  }

  /** Ms that the wall is ahead of UTC at an instant. */
  offsetAt(instant: number): number {
    const since = this.#since;
    let at = this.#at;
    while (at > 0 && instant < (since[at] as number)) at--;
    while (at + 1 < since.length && instant >= (since[at + 1] as number)) at++;
    this.#at = at;
    return this.#offsets[at] as number;
  }

  /** The first instant after this one from which another offset holds; Infinity where the table knows none. */
  changeAfter(instant: number): number {
    this.offsetAt(instant);
    const at = instant < (this.#since[0] as number) ? 0 : this.#at + 1;
    return this.#since[at] ?? Number.POSITIVE_INFINITY;
  }

  /** The instant of a wall time: one that doesn't exist moves forward, an ambiguous one takes the earlier (docs/reference.md, "Slots"). */
  toInstant(local: number): number {
    const before = this.offsetAt(local - day);
    const after = this.offsetAt(local + day);
    if (before === after || this.offsetAt(local - before) === before) return local - before;
    return this.offsetAt(local - after) === after ? local - after : local - before;
  }

  /** The local date of an instant. */
  dateAt(instant: number): number {
    return Math.floor((instant + this.offsetAt(instant)) / day);
  }

  /** The first instant of a local date; of the next one that there is, where the date was left out. */
  startOfDate(date: number): number {
    const start = this.toInstant(date * day);
    const exists = start + this.offsetAt(start) === date * day;
    return exists ? start : this.changeAfter(date * day - this.offsetAt(start));
  }
}

/** Names that were asked for; the question costs as much as all else that is done with an event. */
const names = new LRUCache<string, boolean>({ max: 1000 });

/** True for a zone of IANA's database. ICU has names beside it (`PST`, `IST`), which Temporal refuses at their first use. */
export function isZone(name: string): boolean {
  const known = names.get(name) ?? isTaken(name);
  names.set(name, known);
  return known;
}

/** The zone of a name that was kept: itself, or what ICU means by one of its own, as older records have; else UTC. */
export function zoneMeant(name: string): string {
  if (isZone(name)) return name;
  const meant = icuZone(name) ?? "UTC";
  return isZone(meant) ? meant : "UTC";
}

function isTaken(name: string): boolean {
  try {
    // The database's own placeholder, of which ICU knows or doesn't.
    if (!/^[a-z]/i.test(name) || /^factory$/i.test(name) || icuZone(name) === undefined) return false;
    return Boolean(Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name));
  } catch {
    // Temporal says so by throwing; there is no way to ask.
    return false;
  }
}

function icuZone(name: string): string | undefined {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    // So does the platform.
    return undefined;
  }
}

const years = new LRUCache<string, Offsets>({ max: 4000 });
const zones = new LRUCache<string, Zone>({ max: 1000 });

/** The zone of an IANA name with a table that is right for local and UTC times from two days before to two days after. */
export function zoneOver(name: string, from: number, to: number): Zone {
  const first = new Date(from - 2 * day).getUTCFullYear();
  const last = new Date(to + 2 * day).getUTCFullYear();
  const key = `${name} ${first} ${last}`;
  return zones.get(key) ?? kept(zones, key, new Zone(joined(name, first, last)));
}

function joined(name: string, first: number, last: number): Offsets {
  const all: Offsets = { since: [], offsets: [] };
  for (let year = first; year <= last; year++) {
    const { since, offsets } = offsetsOf(name, year);
    // A year begins with the offset of the one before; only changes are rows of the table.
    const same = offsets[0] === all.offsets.at(-1) ? 1 : 0;
    all.since.push(...since.slice(same));
    all.offsets.push(...offsets.slice(same));
  }
  return all;
}

function offsetsOf(name: string, year: number): Offsets {
  const key = `${name} ${year}`;
  return years.get(key) ?? kept(years, key, derived(name, startOfYear(year), startOfYear(year + 1)));
}

function kept<V extends object>(cache: LRUCache<string, V>, key: string, value: V): V {
  cache.set(key, value);
  return value;
}

function derived(name: string, from: number, to: number): Offsets {
  const table: Offsets = { since: [], offsets: [] };
  const first = Temporal.Instant.fromEpochMilliseconds(from).toZonedDateTimeISO(zoneMeant(name));
  let at: Temporal.ZonedDateTime | null = first;
  while (at !== null && at.epochMilliseconds < to) {
    table.since.push(at.epochMilliseconds);
    table.offsets.push(at.offsetNanoseconds / 1e6);
    at = at.getTimeZoneTransition("next");
  }
  return table;
}

function startOfYear(year: number): number {
  // Date.UTC reads years below 100 as 19xx.
  return new Date(0).setUTCFullYear(year, 0, 1);
}
