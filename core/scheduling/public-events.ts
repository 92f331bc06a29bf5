import { createHash } from "node:crypto";
import { type PublicEvent, publicEvent as publicEventShape, type slotQuery } from "../../schemas/scheduling.ts";
import { type Input, onlyOf } from "../../schemas/schema.ts";
import { takeHandleToken } from "../account/face.ts";
import {
  type AvailableSlots,
  availableSlots,
  bookingNonces,
  reachOf,
  type SlotRequest,
  slotBytes,
} from "../engines/slots/slots.ts";
import { day, type Interval, minute } from "../platform/clock.ts";
import { Fail, invalid } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { versionedCache } from "../store/versioned-cache.ts";
import { type BookableEvent, type CatalogSnapshot, isPublicEvent, readCatalogSnapshot } from "./catalog.ts";
import { cachedTimes, type Times } from "./times.ts";

/** Longest window of one query, in ms (docs/reference.md, "Slots"). */
const MAX_WINDOW_MS = 62 * day;
const MAX_SLOTS = 5000;
/**
 * Bytes of answers that a process caches, for the current minute. More would cost a fifth of the requests per second that no cache answers:
 * answers that outlive V8's young objects make it collect the old ones, too.
 */
const MAX_CACHED_BYTES = 2 * 2 ** 20;

/** Takes one token of a handle if PUBLIC_SCHEDULING_RATE is set (docs/reference.md, "Abuse limits"). */
export async function admitVisitor(runtime: Runtime, { handle = "" }: Record<string, string>): Promise<void> {
  const { PUBLIC_SCHEDULING_RATE: rate, PUBLIC_SCHEDULING_BURST: burst } = runtime.env;
  if (rate === undefined) return;
  await takeHandleToken(runtime, handle, { name: "scheduling", rate, burst: burst ?? rate });
}

/** The public event types of a handle, oldest first; `not_found` for an unknown or inactive handle. */
export async function listPublicEventTypes(
  runtime: Runtime,
  { handle }: Input<"handle">,
): Promise<{ events: PublicEvent[] }> {
  const snapshot = await readCatalogSnapshot(runtime, handle);
  if (snapshot === undefined) throw new Fail("not_found");
  return { events: [...snapshot.events.values()].filter(isPublicEvent).map(publicEvent) };
}

/** One public event type; `event_type_not_found` for an unknown, hidden or inactive one. */
export async function readPublicEventType(
  runtime: Runtime,
  { handle, eventSlug }: Input<"handle" | "eventSlug">,
): Promise<{ event: PublicEvent }> {
  return { event: publicEvent(await findBookableEvent(runtime, handle, eventSlug)) };
}

/** Fails with `event_type_not_found` if a path names no public event type. */
export async function mustBePublic(runtime: Runtime, path: Record<string, string>): Promise<void> {
  await findBookableEvent(runtime, path.handle ?? "", path.eventSlug ?? "");
}

/** An event type with the snapshot of the catalog from which it was read. */
export interface CatalogEvent extends BookableEvent {
  snapshot: CatalogSnapshot;
}

/** A public event type; `event_type_not_found`. */
export async function findBookableEvent(runtime: Runtime, handle: string, slug: string): Promise<CatalogEvent> {
  const snapshot = await readCatalogSnapshot(runtime, handle);
  const bookable = snapshot?.events.get(slug);
  if (snapshot === undefined || bookable === undefined || !isPublicEvent(bookable))
    throw new Fail("event_type_not_found");
  return { ...bookable, snapshot };
}

/** An answer as bytes, and the tag that changes when they do. */
export interface SlotAnswer {
  body: Uint8Array;
  etag: string;
}

/**
 * The slots of an event type that start in [start, end), and the zone in which to show them, as JSON (docs/reference.md, "Slots"). A repeated
 * answer is cached in the process until the catalog, a booking, busy time or the minute changes it. `event_type_not_found`,
 * `invalid_request` at `/end` for more than 5,000 slots.
 */
export async function listSlots(
  runtime: Runtime,
  input: Input<"handle" | "eventSlug", typeof slotQuery>,
): Promise<SlotAnswer> {
  const window = windowOf(input);
  const bookable = await findBookableEvent(runtime, input.handle, input.eventSlug);
  const { handle, eventSlug, timeZone: clock = bookable.timeZone, bookingUid: except } = input;
  const now = runtime.now();
  const state = `${bookable.snapshot.state} ${bookable.snapshot.timesVersion}`;
  const times = await cachedTimes(runtime.redis, handle, { state, ...reachOf(bookable.event, window) });
  // Slots start, and booking windows end, at whole minutes: between two of them the same slots are far enough ahead.
  const minutes = `${Math.floor(now / minute)} ${Math.ceil(now / minute)}`;
  const holds = times.blocks.filter(({ hold }) => hold > now).length;
  const name = [handle, eventSlug, window.from, window.to, clock, except ?? ""].join(" ");
  return answersOf(runtime.redis).get(name, `${state} ${minutes} ${holds}`, async () => {
    const request = slotRequestOf(bookable, times, { clock, now, except });
    return slotAnswerOf(runtime, bookable, { request, window });
  });
}

/** The input of the slot search: hours, rules, and booked and busy times now. */
export function slotRequestOf(
  { event, timetable }: BookableEvent,
  times: Times,
  { clock, now, except }: { clock: string; now: number; except?: string | undefined },
): SlotRequest {
  // Without expired holds, and without a booking that is being moved.
  const held = times.blocks.filter(({ hold, bookingUid }) => (hold === 0 || hold > now) && bookingUid !== except);
  const booked = held.filter(({ eventTypeId }) => eventTypeId === event.eventTypeId).map(({ start }) => start);
  const busy = [...held, ...times.busy].sort((one, other) => one.from - other.from);
  return { event, timetable, clock, busy, booked, now };
}

function publicEvent({ handle, event, timeZone }: BookableEvent): PublicEvent {
  const { enabled: paymentRequired, amountMinor, currency } = event.payment;
  return onlyOf(publicEventShape, {
    ...event,
    handle,
    duration: event.durationMinutes,
    timeZone,
    paymentRequired,
    price: paymentRequired && amountMinor && currency ? { amountMinor, currency } : null,
    availableActions: ["book", "cancel", "reschedule"],
  });
}

function windowOf({ start, end }: { start: string; end: string }): Interval {
  const window = { from: Date.parse(start), to: Date.parse(end) };
  if (window.to < window.from) throw invalid("/end", "must not be before start");
  if (window.to - window.from > MAX_WINDOW_MS) throw invalid("/end", "must be at most 62 days after start");
  return window;
}

const answersOf = versionedCache<SlotAnswer>(MAX_CACHED_BYTES, ({ body }) => body.length);

function slotAnswerOf(
  { env }: Runtime,
  { handle, event }: BookableEvent,
  { request, window }: { request: SlotRequest; window: Interval },
): SlotAnswer {
  const { clock } = request;
  const offered = availableSlots(request, { ...window, maxStarts: MAX_SLOTS + 1 });
  if (offered.at.length > MAX_SLOTS)
    throw invalid("/end", `is too far from start: an answer holds at most ${MAX_SLOTS} slots`);
  const duration = event.durationMinutes * minute;
  const issuer = { handle, eventTypeId: event.eventTypeId, revision: event.version };
  const nonces = bookingNonces(env, issuer, offered.at, duration);
  const body = slotBytes({ offered, duration, timeZone: clock, nonces });
  return { body, etag: tagOf(event, { offered, clock }) };
}

/**
 * A digest of the answer's parts, which are a twentieth of its bytes. It is weak, since the content codings of an answer have other bytes
 * (RFC 9110, section 8.8.1).
 */
function tagOf(event: BookableEvent["event"], { offered, clock }: { offered: AvailableSlots; clock: string }): string {
  // Each kind applies until the next entry.
  const isEntry = (_: unknown, at: number): boolean => offered.kinds[at] !== offered.kinds[at - 1];
  const kinds = [...offered.kinds.filter(isEntry), ...offered.at.filter(isEntry)].join(" ");
  const digest = createHash("sha1").update(`${event.eventTypeId} ${event.version} ${clock} ${kinds}`);
  return `W/"${digest.update(new Float64Array(offered.at)).digest("base64url")}"`;
}
