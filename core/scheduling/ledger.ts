import type { Redis } from "ioredis";
import type { Booking, BookingAnswer, BookingStatus, StoredBooking } from "../../schemas/scheduling.ts";
import type { WebhookEventType } from "../../schemas/webhooks.ts";
import { job, outboxEntries } from "../store/outbox.ts";
import type { Job, Runtime } from "../platform/runtime.ts";
import { readRecord } from "../store/records.ts";
import { keys } from "../store/keys.ts";
import { scripts } from "../store/scripts.ts";
import { dispatchJobs, EVENT_TTL_MS, type WebhookEvent, webhookEvent } from "../webhooks/face.ts";
import { presentPayment } from "./refunds.ts";
import { bookedTimeOf } from "./times.ts";
import { attendeeLimited, limitKeys, networkLimited, type Visitor, visitorLimits } from "./visitor-limits.ts";

export type BookingRecord = StoredBooking & { version: number };

/** One entry of a handle's ledger of bookings: the booking as it will be, what becomes of its time, and what all this causes. */
export interface Transition {
  handle: string;
  booking: StoredBooking;
  /** As it was read; absent for a new one. */
  before?: BookingRecord | undefined;
  /** Version of the catalog by which the entry was judged; absent where the catalog doesn't matter. */
  catalogVersion?: string | undefined;
  /** Whether its time must be free ("take"), must be free unless it still holds it ("settle"), stays ("keep") or ends ("free"). */
  time: "take" | "settle" | "keep" | "free";
  /** The most bookings of its event type that may start in [from, to). */
  dayLimit?: { max: number; from: number; to: number } | undefined;
  /** Written where the handle has an endpoint that could be told. */
  events: WebhookEventType[];
  /** What the events tell beside the handle and the booking. */
  about?: Record<string, unknown>;
  /** True where nobody listened a moment ago: then events aren't even made. */
  isUnheard?: boolean;
  jobs: Job[];
  /** The visitor who makes, moves or cancels it, where a visitor does: visitors are limited. */
  visitor?: Visitor | undefined;
  /** What a repeated request with the same idempotency key shall find; `forget` removes it. */
  record?: { key: string; value: string } | undefined;
}

/** What became of an entry. `repeated` carries the record that an earlier request left. */
export type CommitResult =
  | { kind: "written"; booking: Booking }
  | { kind: "changed" | "taken" | "full" }
  | { kind: "repeated"; record: string };

/** Value of a record that is to be removed. */
export const forget = "forget";
/** Real ms for which the answers to idempotency keys are kept (docs/reference.md, "Idempotency"). */
const RECORD_TTL_MS = 86_400_000;

/**
 * Writes an entry with its events and jobs in one atomic step: the only way a booking changes, so that no two bookings of a handle
 * ever overlap, nor one made with busy time that was known. `rate_limited` where a visitor has reached a limit.
 */
export async function commitBooking(runtime: Runtime, entry: Transition): Promise<CommitResult> {
  const { handle, booking, jobs, about } = entry;
  const version = (entry.before?.version ?? 0) + 1;
  const next = toBooking(handle, { ...booking, version }, runtime.now());
  // The events of one change happen one after another, each a ms after the one before it.
  const at = runtime.now();
  const events = (entry.isUnheard ? [] : entry.events).map((type, place) =>
    webhookEvent(runtime, handle, { type, data: { handle, booking: next, ...about }, at: at + place }),
  );
  const syncs = syncJobs(entry, version);
  const caused = [...jobs, ...syncs, ...dispatchJobs(handle, events)];
  const [kind, more = ""] = await runtime.queues.step(handle, caused, (outbox) => {
    const places = { ...keysOf(runtime, entry), outbox, events: events.map(({ key }) => key) };
    return scripts.writeBooking(runtime.redis, places, inputOf(runtime, entry, { events, syncs }));
  });
  if (kind === "written") return { kind, booking: next };
  if (kind === "limited") throw networkLimited(Number(more));
  if (kind === "crowded") throw attendeeLimited(runtime, Number(more));
  return kind === "repeated" ? { kind, record: more } : { kind: kind as "changed" | "taken" | "full" };
}

/** A booking as it is stored, or undefined. */
export async function findBooking(
  redis: Redis,
  handle: string,
  bookingUid: string,
): Promise<BookingRecord | undefined> {
  return readRecord<StoredBooking>(redis, keys.booking(handle, bookingUid));
}

/** The status that holds now: an unpaid hold that has ended is a rejection, whether or not somebody has written it down. */
export function statusAt(
  { status, holdUntil }: Pick<StoredBooking, "status" | "holdUntil">,
  now: number,
): BookingStatus {
  const isOver = status === "PENDING_PAYMENT" && holdUntil !== null && Date.parse(holdUntil) <= now;
  return isOver ? "REJECTED" : status;
}

/** A booking as owner and visitor read it. */
export function toBooking(handle: string, kept: BookingRecord, now: number): Booking {
  const { buffers: _buffers, reminderMinutes: _reminder, moves: _moves, everConfirmed: _ever, ...booking } = kept;
  return { ...booking, handle, status: statusAt(kept, now), payment: presentPayment(kept, now) };
}

/** The answer to a visitor who has booked, moved or cancelled. */
export function toBookingAnswer(booking: Booking): BookingAnswer {
  const { bookingUid, status, payment } = booking;
  const url = status === "PENDING_PAYMENT" ? payment?.checkoutUrl : undefined;
  return { bookingUid, status, booking, ...(url ? { nextAction: { type: "redirect_to_checkout", url } } : {}) };
}

/** Domain time as a stored stamp. */
export function timestamp({ now }: Pick<Runtime, "now">): string {
  return new Date(now()).toISOString();
}

/** The list of all bookings, beside those by status. */
export const ALL_STATUSES = "ALL";

/** What calendars and meetings must be told: that a booking began to stand, moved, or stands no longer. */
function syncJobs({ handle, booking, before }: Transition, version: number): Job[] {
  const { bookingUid, status, sequence } = booking;
  const isSame = before?.status === status && before.sequence === sequence;
  if (isSame || (status !== "ACCEPTED" && before?.status !== "ACCEPTED")) return [];
  return [job("scheduling.sync", `sync-${bookingUid}-${version}`, { handle, bookingUid })];
}

type WriteKeys = Parameters<typeof scripts.writeBooking>[1];
type WriteInput = Parameters<typeof scripts.writeBooking>[2];

function keysOf(
  runtime: Runtime,
  { handle, booking, before, record, visitor }: Transition,
): Omit<WriteKeys, "outbox" | "events"> {
  return {
    booking: keys.booking(handle, booking.bookingUid),
    blocks: keys.blocks(handle),
    busy: keys.busy(handle),
    all: keys.bookings(handle, ALL_STATUSES),
    before: keys.bookings(handle, before?.status ?? booking.status),
    after: keys.bookings(handle, booking.status),
    catalog: keys.catalogVersion(handle),
    times: keys.timesVersion(handle),
    record: record?.key ?? keys.idempotent(handle, "bookings", ""),
    webhooks: keys.webhooks(handle),
    credentials: keys.credentials(handle),
    ...limitKeys(runtime, handle, { visitor, booking }),
  };
}

function inputOf(
  runtime: Runtime,
  entry: Transition,
  { events, syncs }: { events: WebhookEvent[]; syncs: Job[] },
): WriteInput {
  const { booking, before, catalogVersion, time, dayLimit, record } = entry;
  const { bookingUid: uid, eventTypeId, status } = booking;
  return {
    version: before?.version ?? 0,
    json: JSON.stringify({ ...booking, version: undefined }),
    ...{ uid, eventTypeId, status, start: Date.parse(booking.start), now: runtime.now() },
    ...{ catalogVersion, time, dayLimit },
    block: time === "take" || time === "settle" ? blockOf(booking) : undefined,
    ...{ record: record?.value, recordMs: RECORD_TTL_MS, eventMs: EVENT_TTL_MS },
    jobs: outboxEntries(entry.jobs),
    eventJobs: entry.isUnheard ? undefined : outboxEntries(dispatchJobs(entry.handle, events)),
    syncJobs: syncs.length === 0 ? undefined : outboxEntries(syncs),
    ...visitorLimits(runtime, entry.visitor),
    contents: events.map(({ content }) => content),
  };
}

/** What a booking takes of its owner's time, and how that is stored. */
function blockOf(booking: StoredBooking): WriteInput["block"] {
  const { member, from, to } = bookedTimeOf(booking);
  return { member, from, to };
}
