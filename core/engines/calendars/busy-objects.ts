import type { BusyObject } from "./providers/provider.ts";
import type { BusyInterval } from "./recurrence.ts";
import { day, zoneOver } from "../../platform/zones.ts";

/** Instances of one calendar after which its reading is given up. */
export const MAX_INSTANCES = 50_000;
/** Pages of one listing. A provider that repeats empty pages never comes to the end of its instances. */
export const MAX_PAGES = 500;

/** An instance of an event as a provider lists it: the object that it belongs to, and the time that it takes, if any. */
export interface BusyInstance {
  objectId: string;
  taken: BusyInterval | undefined;
}

/** Instances put together by the object that they belong to. */
export function busyObjects(instances: BusyInstance[]): BusyObject[] {
  const objects = new Map<string, BusyObject>();
  for (const { objectId, taken } of instances) {
    const object = objects.get(objectId) ?? { objectId, tag: "", taken: [] };
    if (taken) object.taken.push(taken);
    objects.set(objectId, object);
  }
  return [...objects.values()];
}

/** The stretch from one date to another (`2026-10-12`, the end exclusive) in a zone, in ms. */
export function wholeDays(from: string, to: string, zone: string): { from: number; to: number } {
  const [first, last] = [Date.parse(from), Date.parse(to)] as [number, number];
  const local = zoneOver(zone, first, last);
  return { from: local.startOfDate(first / day), to: local.startOfDate(last / day) };
}

/** A stretch that takes time in a window; undefined for another. */
export function takenWithin(taken: BusyInterval, { from, to }: { from: number; to: number }): BusyInterval | undefined {
  return taken.to > Math.max(taken.from, from) && taken.from < to ? taken : undefined;
}
