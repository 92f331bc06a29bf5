import type { StoredEventType, StoredSchedule } from "../../schemas/scheduling.ts";
import { localDay, type Timetable, timetableOf } from "../engines/slots/slots.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { storedZone } from "../platform/zones.ts";
import { coalesce } from "../store/coalesce.ts";
import { keys } from "../store/keys.ts";
import { withLock } from "../store/lock.ts";
import { Records, type Versioned } from "../store/records.ts";
import { versionedCache } from "../store/versioned-cache.ts";

/** The stored schedules and event types of handles. Both move the version of the catalog. */
export const scheduleRecords = new Records<StoredSchedule>({
  record: keys.schedule,
  list: keys.schedules,
  missing: "schedule_not_found",
  counter: { key: keys.catalogVersion },
});
export const eventTypeRecords = new Records<StoredEventType>({
  record: keys.eventType,
  list: keys.eventTypes,
  missing: "event_type_not_found",
  counter: { key: keys.catalogVersion },
  slugs: { key: keys.eventTypeSlugs, taken: slugTaken },
});

/** An event type with everything that decides when it can be booked. */
export interface BookableEvent {
  handle: string;
  event: Versioned<StoredEventType>;
  /** Its own zone, else its schedule's, else UTC. */
  timeZone: string;
  timetable: Timetable;
}

/** The schedules of a handle and its event types by slug, oldest first, at a version of its catalog. */
interface Catalog {
  version: string;
  /** The version with the creation of the handle: versions start again when a handle is erased and created again. */
  state: string;
  /** Characters of its JSON. */
  length: number;
  schedules: StoredSchedule[];
  events: Map<string, BookableEvent>;
}

/** The state that a request needs first: the catalog, and the version of the handle's booked and busy times. */
export type CatalogSnapshot = Catalog & { timesVersion: string };

/** Bytes of catalogs that a process keeps; in memory one takes about three times its JSON. */
const MAX_CACHED_BYTES = 64 * 2 ** 20;
const catalogsOf = versionedCache<Catalog>(MAX_CACHED_BYTES, ({ length }) => 3 * length);

/** Most characters of a handle's schedules and event types as JSON: a visitor's request reads all of them if they are not cached. */
const MAX_LENGTH = 4 * 2 ** 20;

/** Characters of a change that need not wait for others: so many of each of a handle's records fit anyway. */
const SHORT_LENGTH = 6000;

/** Writes a schedule or event type. Of several long ones, each is checked by `mustFitCatalog` after the one before it is written. */
export function writeToCatalog<T>({ redis }: Runtime, input: { handle: string }, write: () => Promise<T>): Promise<T> {
  if (JSON.stringify(input).length <= SHORT_LENGTH) return write();
  return withLock(redis, keys.catalogLock(input.handle), write);
}

/** `invalid_request` for a schedule or event type that would make the handle's catalog too large, unless it is shorter than `before`. */
export async function mustFitCatalog(runtime: Runtime, handle: string, next: object, before?: object): Promise<void> {
  const growth = JSON.stringify(next).length - (before ? JSON.stringify(before).length : 0);
  const { length = 0 } = (await readCatalogSnapshot(runtime, handle)) ?? {};
  if (growth <= 0 || length + growth <= MAX_LENGTH) return;
  const detail = `The schedules and event types of a handle have at most ${MAX_LENGTH} characters; shorten or delete some first.`;
  throw new Fail("invalid_request", { detail });
}

/** A handle's current catalog; undefined for an unknown or inactive handle. Cached in the process by its version. */
export async function readCatalogSnapshot(runtime: Runtime, handle: string): Promise<CatalogSnapshot | undefined> {
  const { redis } = runtime;
  const [[status, epoch], versions] = await coalesce(redis, `catalog ${handle}`, () =>
    Promise.all([
      redis.hmget(keys.handle(handle), "status", "createdAt"),
      redis.mget(keys.catalogVersion(handle), keys.timesVersion(handle)),
    ]),
  );
  if (status !== "ACTIVE") return undefined;
  const [version, timesVersion] = versions.map((one) => one ?? "0") as [string, string];
  const state = `${epoch ?? ""} ${version}`;
  const catalog = await catalogsOf(redis).get(handle, state, async () => {
    // The read data may be newer than the version, never older: then the next request reads it again.
    const [schedules, stored] = await Promise.all([
      scheduleRecords.all(runtime, handle),
      eventTypeRecords.all(runtime, handle),
    ]);
    const { length } = JSON.stringify({ schedules, stored });
    const events = new Map(stored.map((event) => [event.slug, bookableEventOf(handle, event, schedules)]));
    return { version, state, length, schedules, events };
  });
  return { ...catalog, timesVersion };
}

/** An event type by its id, whatever its slug and status; undefined if it was deleted. */
export function bookableEventById(snapshot: CatalogSnapshot | undefined, eventTypeId = ""): BookableEvent | undefined {
  return [...(snapshot?.events.values() ?? [])].find(({ event }) => event.eventTypeId === eventTypeId);
}

/** The most bookings of an event type that may start on the local day [from, to) of a start; undefined without a limit. */
export function dayLimitOf({ event: { maxBookingsPerDay: max }, timetable }: BookableEvent, start: number) {
  return max ? { max, ...localDay(timetable.timeZone, start) } : undefined;
}

/** True for an event type that visitors may see and book (docs/reference.md, "Event types"). */
export function isPublicEvent({ event }: BookableEvent): boolean {
  return event.status === "ACTIVE" && !event.hidden;
}

/** An event type with its schedule (docs/reference.md, "Event types"): its own, else the oldest one, else none. */
export function bookableEventOf(
  handle: string,
  event: BookableEvent["event"],
  schedules: StoredSchedule[],
): BookableEvent {
  const schedule = schedules.find(({ scheduleId }) => scheduleId === event.scheduleId) ?? schedules[0];
  const timeZone = storedZone(event.timeZone ?? schedule?.timeZone ?? "UTC");
  return { handle, event, timeZone, timetable: timetableOf(schedule, timeZone) };
}

function slugTaken(): Fail {
  const errors = [{ path: "/slug", message: "is already the slug of another event type" }];
  return new Fail("event_type_slug_taken", { errors });
}
