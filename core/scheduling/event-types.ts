import {
  type Booking,
  type BookingField,
  type eventType,
  type eventTypeChange,
  type newEventType,
  REFUND_MINUTES,
  type StoredEventType,
} from "../../schemas/scheduling.ts";
import type { Infer, Input } from "../../schemas/schema.ts";
import { Fail, invalid } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import type { Listed, ListInput } from "../store/paging.ts";
import type { Versioned } from "../store/records.ts";
import {
  type BookableEvent,
  bookableEventOf,
  eventTypeRecords,
  mustFitCatalog,
  readCatalogSnapshot,
  writeToCatalog,
} from "./catalog.ts";

/** An event type as its owner sees it, with its effective zone. */
type EventType = Infer<typeof eventType>;

type EventTypeName = Input<"handle" | "eventTypeId">;
type EventTypeChange = Input<"handle" | "eventTypeId", typeof eventTypeChange>;
type Stored = Versioned<StoredEventType>;

/** Most event types of a handle: its catalog is read as a whole. */
const MAX_EVENT_TYPES = 500;

/** Creates an event type; `event_type_slug_taken`, `schedule_not_found`. */
export async function createEventType(
  runtime: Runtime,
  input: Input<"handle", typeof newEventType>,
): Promise<{ eventType: EventType }> {
  const { handle, ...fields } = input;
  await checkEventType(runtime, handle, fields);
  const stamp = new Date(runtime.now()).toISOString();
  const id = runtime.id("etp_");
  const value = { ...fields, eventTypeId: id, createdAt: stamp, updatedAt: stamp } as StoredEventType;
  const full = `A handle has at most ${MAX_EVENT_TYPES} event types; delete one first.`;
  await writeToCatalog(runtime, input, async () => {
    await mustFitCatalog(runtime, handle, value);
    await eventTypeRecords.create(runtime, handle, { id, value, at: Date.parse(stamp), max: MAX_EVENT_TYPES, full });
  });
  return { eventType: await toEventType(runtime, handle, { ...value, version: 1 }) };
}

/** Changes the given fields of an event type; `event_type_not_found`, `event_type_slug_taken`, `version_conflict`. */
export async function updateEventType(runtime: Runtime, input: EventTypeChange): Promise<{ eventType: EventType }> {
  const { handle, eventTypeId, expectedVersion, ...changes } = input;
  const change = async (current: Stored): Promise<StoredEventType> => {
    await checkEventType(runtime, handle, changes);
    const next = changedBy(current, changes, runtime.now());
    await mustFitCatalog(runtime, handle, next, current);
    return next;
  };
  const value = await writeToCatalog(runtime, input, () =>
    eventTypeRecords.change(runtime, handle, { id: eventTypeId, expectedVersion, change }),
  );
  if (value === undefined) throw new Fail("event_type_not_found");
  return { eventType: await toEventType(runtime, handle, value) };
}

/** The handle's event types, newest first. */
export async function listEventTypes(runtime: Runtime, input: ListInput): Promise<Listed<"eventTypes", EventType>> {
  const { handle } = input;
  const { records, nextCursor } = await eventTypeRecords.list(runtime, input);
  return { eventTypes: await Promise.all(records.map((stored) => toEventType(runtime, handle, stored))), nextCursor };
}

/** One event type, including hidden ones; `event_type_not_found`. */
export async function readEventType(runtime: Runtime, input: EventTypeName): Promise<{ eventType: EventType }> {
  const { handle, eventTypeId } = input;
  return { eventType: await toEventType(runtime, handle, await eventTypeRecords.read(runtime, handle, eventTypeId)) };
}

/** Removes an event type; its bookings stay. `event_type_not_found`. */
export async function deleteEventType(runtime: Runtime, { handle, eventTypeId }: EventTypeName): Promise<void> {
  if (!(await eventTypeRecords.remove(runtime, handle, eventTypeId))) throw new Fail("event_type_not_found");
}

function eventUrl({ env }: Runtime, handle: string, slug: string): string {
  return `${env.APP_URL}/apps/public/scheduling/${handle}/${slug}`;
}

/** The address where a visitor manages a booking. */
export function manageUrl(
  runtime: Runtime,
  handle: string,
  booking: Pick<Booking, "eventSlug" | "bookingUid">,
): string {
  return `${eventUrl(runtime, handle, booking.eventSlug)}?booking=${booking.bookingUid}`;
}

/** The price of a booking; null if it is free. `payment_provider_not_connected` without price or provider. */
export async function bookingPrice(
  { payments }: Runtime,
  { handle, event }: BookableEvent,
): Promise<{ amountMinor: number; currency: string } | null> {
  const { enabled, amountMinor, currency } = event.payment;
  if (!enabled) return null;
  // Whether a degraded account works again is for its provider to say.
  const status = await payments?.accountStatus(handle);
  if (status === undefined || !amountMinor || !currency) throw new Fail("payment_provider_not_connected");
  return { amountMinor, currency };
}

/** Why an event type can't take its payment, so that its bookings are refused; null if it can. */
export async function paymentProblem(
  { payments }: Runtime,
  handle: string,
  payment: StoredEventType["payment"],
): Promise<EventType["reason"]> {
  if (!payment.enabled) return null;
  if ((await payments?.accountStatus(handle)) !== "OK") return "payment_provider_not_connected";
  return payment.amountMinor && payment.currency ? null : "price_missing";
}

/** Checks what the schema can't express. */
async function checkEventType(
  { redis }: Runtime,
  handle: string,
  given: { bookingFields?: BookingField[] | undefined; scheduleId?: string | null | undefined },
): Promise<void> {
  const { bookingFields = [], scheduleId } = given;
  for (const [at, { id, type, options }] of bookingFields.entries()) {
    if (bookingFields.findIndex((other) => other.id === id) !== at)
      throw invalid(`/bookingFields/${at}/id`, "repeats the id of another field");
    if ((type === "select" || type === "radio") && options === undefined)
      throw invalid(`/bookingFields/${at}/options`, "is required");
  }
  if (scheduleId && !(await redis.exists(keys.schedule(handle, scheduleId)))) throw new Fail("schedule_not_found");
}

function changedBy(current: Stored, changes: Omit<EventTypeChange, keyof EventTypeName>, now: number): Stored {
  const { buffers, payment, ...fields } = changes;
  return {
    ...current,
    ...(fields as Partial<StoredEventType>),
    buffers: { ...current.buffers, ...(buffers as Partial<StoredEventType["buffers"]>) },
    payment: { ...current.payment, ...(payment as Partial<StoredEventType["payment"]>) },
    updatedAt: new Date(now).toISOString(),
  };
}

async function toEventType(runtime: Runtime, handle: string, stored: Stored): Promise<EventType> {
  const schedules = (await readCatalogSnapshot(runtime, handle))?.schedules ?? [];
  const { timeZone } = bookableEventOf(handle, stored, schedules);
  const reason = await paymentProblem(runtime, handle, stored.payment);
  const url = eventUrl(runtime, handle, stored.slug);
  const payment = { refundUntilMinutes: REFUND_MINUTES, ...stored.payment };
  return { ...stored, payment, timeZone, handle, url, bookable: reason === null, reason, revision: stored.version };
}
