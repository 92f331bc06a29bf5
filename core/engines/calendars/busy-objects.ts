import { day, zoneOver } from "../../platform/zones.ts";
import type { BusyAnswer, BusyObject, BusyQuestion } from "./providers/provider.ts";
import type { BusyInterval } from "./recurrence.ts";

/** Instances of one calendar beyond which its reading is abandoned. */
export const MAX_INSTANCES = 50_000;
/** Most pages of one listing: a provider that repeats empty pages would never end. */
export const MAX_PAGES = 500;

/** An instance of an event as a provider lists it: its object, and the time that it blocks, if any, in or outside the window. */
export interface BusyInstance {
  objectId: string;
  taken: BusyInterval | undefined;
}

/** Changes of a calendar. A series is named alone, since its changes don't tell all changes of its instances. */
export interface CalendarChanges {
  /** Later changes come after it. */
  mark: string | null;
  single: BusyInstance[];
  series: Set<string>;
  removed: Set<string>;
  /** A removed object can't be told: the calendar must be read whole. */
  isUnclear?: boolean;
}

/** A calendar whose provider lists the changes since a mark, and the instances of events. */
export interface MarkedCalendar {
  newMark(): Promise<string | null>;
  /** Undefined if the provider has dropped the mark. */
  changesSince(known: NonNullable<BusyQuestion["known"]>): Promise<CalendarChanges | undefined>;
  /** The instances in the window, of one series or of all events; none if the resource is gone. */
  instances(series?: string): Promise<BusyInstance[]>;
}

/** The busy time of a calendar: its changes, or everything if they can't be told. */
export async function readMarked(calendar: MarkedCalendar, question: BusyQuestion): Promise<BusyAnswer> {
  const changes = question.known && (await calendar.changesSince(question.known));
  if (changes === undefined || changes.isUnclear) {
    // The mark comes first: a change during the reading is then read twice and not missed.
    const mark = changes ? changes.mark : await calendar.newMark();
    return { mark, isWhole: true, changed: busyObjects(await calendar.instances(), question), removed: [] };
  }
  const { mark, single, series, removed } = changes;
  for (const id of series) {
    const instances = await calendar.instances(id);
    if (instances.length === 0) removed.add(id);
    single.push(...instances);
  }
  return { mark, isWhole: false, changed: busyObjects(single, question), removed: [...removed] };
}

/** Groups instances by their object. */
function busyObjects(instances: BusyInstance[], { from, to }: BusyQuestion): BusyObject[] {
  const objects = new Map<string, BusyObject>();
  for (const { objectId, taken } of instances) {
    const object = objects.get(objectId) ?? { objectId, tag: "", taken: [] };
    if (taken && taken.to > Math.max(taken.from, from) && taken.from < to) object.taken.push(taken);
    objects.set(objectId, object);
  }
  return [...objects.values()];
}

/** The window of a query as instants (ISO 8601). */
export function instantsOf({ from, to }: BusyQuestion): [from: string, to: string] {
  return [new Date(from).toISOString(), new Date(to).toISOString()];
}

/** The interval from one date to another (`2026-10-12`, exclusive end) in a zone, in ms. */
export function wholeDays(from: string, to: string, zone: string): { from: number; to: number } {
  const [first, last] = [Date.parse(from), Date.parse(to)] as [number, number];
  const local = zoneOver(zone, first, last);
  return { from: local.startOfDate(first / day), to: local.startOfDate(last / day) };
}
