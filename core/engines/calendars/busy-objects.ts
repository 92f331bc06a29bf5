import { day, type Interval } from "../../platform/clock.ts";
import type { Runtime } from "../../platform/runtime.ts";
import { zoneOver } from "../../platform/zones.ts";
import type { BusyAnswer, BusyObject, BusyQuestion } from "./providers/provider.ts";
import type { BusyInterval } from "./recurrence.ts";

/** Instances of one reading. */
export const MAX_INSTANCES = 50_000;

/** Empties the object with the most instances, so that a stranger's invitation displaces no other event. Returns their number. */
export function emptyLargest(objects: BusyObject[]): number {
  const largest = objects.reduce((one, other) => (other.busy.length > one.busy.length ? other : one));
  const { length } = largest.busy;
  largest.busy = [];
  return length;
}

/** An event as a provider lists it, with the time that it blocks, if any, in or outside the window. */
export interface ListedEvent {
  /** The event, or the series of an instance. */
  objectId: string;
  /** A change of a series doesn't tell all changes of its instances. */
  kind: "single" | "series" | "removed";
  busy: BusyInterval | undefined;
}

/** Changed series that are read one by one; with more, all events are read in fewer calls. */
const MAX_CHANGED_SERIES = 100;
/** Longest id and uid of an event, in characters. */
const MAX_ID_LENGTH = 2048;

/** Reads the items of a listing; a malformed one hides no other. */
export function readItems<T>({ log }: Pick<Runtime, "log">, items: T[], read: (item: T) => ListedEvent): ListedEvent[] {
  const events = items.flatMap((item) => {
    try {
      const event = read(item);
      return [event.objectId, event.busy?.uid ?? "-"].every(isId) ? [event] : [];
    } catch {
      // The message may quote the event.
      return [];
    }
  });
  const objects = items.length - events.length;
  if (objects > 0) log.warn({ objects, fault: "It is not an event." }, "calendar.objects_unreadable");
  return events;
}

function isId(given: unknown): boolean {
  return typeof given === "string" && given !== "" && given.length <= MAX_ID_LENGTH;
}

/** A calendar whose provider lists the changes since a mark, and the instances of events. */
interface MarkedCalendar {
  newMark(): Promise<string | null>;
  /**
   * The changes, and the mark that later changes come after; undefined if the provider has dropped the mark. `isUnclear` if a removed
   * object can't be identified, so that the calendar must be read whole.
   */
  changesSince(
    known: NonNullable<BusyQuestion["known"]>,
  ): Promise<{ mark: string | null; events: ListedEvent[]; isUnclear?: boolean } | undefined>;
  /** The instances in the window, of one series or of all events; none if the resource is gone. */
  instances(series?: string): Promise<ListedEvent[]>;
}

/** The busy time of a calendar: its changes, or everything if they are unknown. */
export async function readMarked(calendar: MarkedCalendar, question: BusyQuestion): Promise<BusyAnswer> {
  const changes = question.known && (await calendar.changesSince(question.known));
  const idsOf = (kind: ListedEvent["kind"]): Set<string> =>
    new Set((changes?.events ?? []).filter((event) => event.kind === kind).map(({ objectId }) => objectId));
  const [series, removed] = [idsOf("series"), idsOf("removed")];
  if (changes === undefined || changes.isUnclear || series.size > MAX_CHANGED_SERIES) {
    // The mark comes first: a change during the reading is then read twice and not missed.
    const mark = changes ? changes.mark : await calendar.newMark();
    return { mark, isWhole: true, changed: busyObjects(await calendar.instances(), question), removed: [] };
  }
  // An event may have been removed after the page that names its change.
  const isThere = ({ kind, objectId }: ListedEvent): boolean =>
    kind === "single" && !series.has(objectId) && !removed.has(objectId);
  const there = changes.events.filter(isThere);
  for (const id of series) {
    const instances = await calendar.instances(id);
    if (instances.length === 0) removed.add(id);
    else removed.delete(id);
    there.push(...instances);
  }
  return { mark: changes.mark, isWhole: false, changed: busyObjects(there, question), removed: [...removed] };
}

function busyObjects(events: ListedEvent[], { from, to }: BusyQuestion): BusyObject[] {
  const objects = new Map<string, BusyObject>();
  for (const { objectId, busy } of events) {
    const object = objects.get(objectId) ?? { objectId, tag: "", busy: [] };
    if (busy && busy.to > Math.max(busy.from, from) && busy.from < to) object.busy.push(busy);
    objects.set(objectId, object);
  }
  return [...objects.values()];
}

/** The window of a query as instants (ISO 8601). */
export function instantsOf({ from, to }: BusyQuestion): [from: string, to: string] {
  return [new Date(from).toISOString(), new Date(to).toISOString()];
}

/** The interval from one date to another (`2026-10-12`, exclusive end) in a zone, in ms. */
export function wholeDays(from: string, to: string, zone: string): Interval {
  const [first, last] = [Date.parse(from), Date.parse(to)] as [number, number];
  const local = zoneOver(zone, first, last);
  return { from: local.startOfDate(first / day), to: local.startOfDate(last / day) };
}
