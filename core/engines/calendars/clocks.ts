import ICAL from "ical.js";
import { LRUCache } from "lru-cache";
import { day } from "../../platform/clock.ts";
import { isZone, zoneOfWindows, zoneOver } from "../../platform/zones.ts";
import { type Component, componentsOf, parseObject, textOf } from "./jcal.ts";

/** Converts between instants and local times, both in ms; local times are ms since 1970 as if they were UTC. */
export interface Clock {
  toInstant(wall: number): number;
  toWall(instant: number): number;
}

export const utc: Clock = { toInstant: (wall) => wall, toWall: (instant) => instant };

/** The clocks of one calendar object by TZID; its calendar's own for times without one, and for unknown zones. */
export type Clocks = (tzid: string | undefined) => Clock;

export function clocksOf(root: Component, own: Clock): Clocks {
  const known = new Map<string | undefined, Clock>([[undefined, own]]);
  const find = (tzid: string): Clock | undefined => {
    const described = componentsOf(root, "vtimezone").find((one) => textOf(one, "tzid") === tzid);
    return clockOf(tzid, described);
  };
  return (tzid) => {
    const clock = known.get(tzid) ?? find(tzid as string) ?? own;
    known.set(tzid, clock);
    return clock;
  };
}

/** A calendar's own clock: of its definition (VTIMEZONE), which is read like an event's, else of an IANA zone. */
export function calendarClock(definition: string | undefined, zone: string): Clock {
  return (definition && definitions.memo(definition).clock) || ianaClock(zone);
}

/** Each object of a calendar is read with the same definition. */
const definitions = new LRUCache({ max: 100, memoMethod: (text: string) => ({ clock: describedIn(text) }) });

function describedIn(text: string): Clock | undefined {
  try {
    const root = parseObject(text);
    const described = root[0] === "vtimezone" ? root : componentsOf(root, "vtimezone")[0];
    const clock = described && clockOf(textOf(described, "tzid"), described);
    return clock && Number.isFinite(clock.toInstant(0)) ? clock : undefined;
  } catch {
    // An unreadable zone is ignored; the calendar's events keep their times.
    return undefined;
  }
}

/**
 * By name if the zone is known, else by the calendar's definition, if there is one. The definition comes first for an abbreviation: a zone
 * that is called EST, CET or GMT has summer time in some calendars only.
 */
function clockOf(name: string, described: Component | undefined): Clock | undefined {
  const iana = ianaName(name) ?? (described && ianaName(textOf(described, "x-lic-location")));
  const isDefined = described !== undefined && hasRules(described);
  if (isDefined && !iana?.includes("/")) return describedClock(described);
  return iana === undefined ? undefined : ianaClock(iana);
}

/** `Europe/Berlin`, `W. Europe Standard Time`, `/vendor/version/Europe/Berlin`. */
function ianaName(name: string): string | undefined {
  const parts = name.split("/").filter((part) => part !== "");
  const endings = parts.map((_, at) => parts.slice(at).join("/"));
  return zoneOfWindows(name) ?? endings.find(isZone);
}

function ianaClock(name: string): Clock {
  return {
    toInstant: (wall) => zoneOver(name, wall, wall).toInstant(wall),
    toWall: (instant) => instant + zoneOver(name, instant, instant).offsetAt(instant),
  };
}

function hasRules(described: Component): boolean {
  const rules = ["standard", "daylight"].flatMap((name) => componentsOf(described, name));
  return rules.some((rule) => textOf(rule, "dtstart") !== "" && textOf(rule, "tzoffsetto") !== "");
}

/**
 * A local time that occurs twice is the first, and one that doesn't occur has the offset before the gap (RFC 5545, section 3.3.5). ical.js
 * alone takes the later offset from the lesser of the two local times at which the clocks change.
 */
function describedClock(described: Component): Clock {
  const zone = new ICAL.Timezone(new ICAL.Component(described as never));
  const offsetAt = (ms: number): number => zone.utcOffset(ICAL.Time.fromJSDate(new Date(ms), true)) * 1000;
  const around = (ms: number): [number, number] => [offsetAt(ms - day), offsetAt(ms + day)];
  return {
    toInstant(wall) {
      const [before, after] = around(wall);
      return wall - offsetAt(wall - Math.abs(after - before));
    },
    toWall: (instant) => instant + offsetAt(instant + Math.min(...around(instant))),
  };
}
