import { day, zoneOver } from "../../platform/zones.ts";
import type { BusyObject } from "./providers/provider.ts";
import type { BusyInterval } from "./recurrence.ts";

/** Instances of one calendar beyond which its reading is abandoned. */
export const MAX_INSTANCES = 50_000;
/** Most pages of one listing: a provider that repeats empty pages would never end. */
export const MAX_PAGES = 500;

/** An instance of an event as a provider lists it: its object, and the time that it blocks, if any. */
export interface BusyInstance {
  objectId: string;
  taken: BusyInterval | undefined;
}

/** Groups instances by their object. */
export function busyObjects(instances: BusyInstance[]): BusyObject[] {
  const objects = new Map<string, BusyObject>();
  for (const { objectId, taken } of instances) {
    const object = objects.get(objectId) ?? { objectId, tag: "", taken: [] };
    if (taken) object.taken.push(taken);
    objects.set(objectId, object);
  }
  return [...objects.values()];
}

/** The interval from one date to another (`2026-10-12`, exclusive end) in a zone, in ms. */
export function wholeDays(from: string, to: string, zone: string): { from: number; to: number } {
  const [first, last] = [Date.parse(from), Date.parse(to)] as [number, number];
  const local = zoneOver(zone, first, last);
  return { from: local.startOfDate(first / day), to: local.startOfDate(last / day) };
}

/** The interval if it overlaps the window, else undefined. */
export function overlapWith(taken: BusyInterval, { from, to }: { from: number; to: number }): BusyInterval | undefined {
  return taken.to > Math.max(taken.from, from) && taken.from < to ? taken : undefined;
}
