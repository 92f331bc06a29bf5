import type { Redis } from "ioredis";
import type { Booking, BookingAnswer, BookingStatus, StoredBooking } from "../../schemas/scheduling.ts";
import type { WebhookEventType } from "../../schemas/webhooks.ts";
import { encodeJobs, job } from "../store/outbox.ts";
import type { Job, Runtime } from "../platform/runtime.ts";
import { readRecord } from "../store/records.ts";
import { keys } from "../store/keys.ts";
import { script } from "../store/scripts.ts";
import { dispatchJobs, EVENT_TTL_MS, type WebhookEvent, webhookEvent } from "../webhooks/face.ts";
import { presentPayment } from "./refunds.ts";
import { type Replay, replayRecord } from "./repeats.ts";
import { bookedTimeOf } from "./times.ts";
import { attendeeLimited, limitKeys, limitValues, networkLimited, type Visitor } from "./visitor-limits.ts";

export type BookingRecord = StoredBooking & { version: number };
type ReplayRecord = ReturnType<typeof replayRecord>;

/** One change of a booking: the booking as it will be, what becomes of its slot, and what all this causes. */
export interface Transition {
  handle: string;
  booking: StoredBooking;
  /** As it was read; absent for a new one. */
  before?: BookingRecord | undefined;
  /** Version of the catalog by which it was judged; absent if the catalog doesn't matter. */
  catalogVersion?: string | undefined;
  /** Whether its time must be free ("take"), must be free unless it still holds it ("settle"), stays ("keep") or ends ("free"). */
  time: "take" | "settle" | "keep" | "free";
  /** Most bookings of its event type that start in [from, to). */
  dayLimit?: { most: number; from: number; to: number } | undefined;
  /** Written if the handle has an endpoint for them. */
  events: WebhookEventType[];
  /** The content of the events besides the handle and the booking. */
  about?: Record<string, unknown>;
  /** True if the handle had no endpoint a moment ago: then the events aren't made at all. */
  isUnheard?: boolean;
  jobs: Job[];
  /** The visitor who makes, moves or cancels it; absent for owners and jobs, which have no limits. */
  visitor?: Visitor | undefined;
  replay?: Replay | undefined;
}

/** What became of a transition. `repeated` carries the record that an earlier request left. */
export type CommitResult =
  | { kind: "written"; booking: Booking }
  | { kind: "changed" | "taken" | "full" }
  | { kind: "repeated"; record: string };

/** Real ms for which the answers to idempotency keys are stored (docs/reference.md, "Idempotency"). */
const RECORD_TTL_MS = 86_400_000;

/**
 * Writes a transition with its events and jobs in one atomic step: the only way a booking changes, so that no two bookings of a handle
 * ever overlap, nor a new one with known busy time. `rate_limited` if the visitor has reached a limit.
 */
export async function commitBooking(runtime: Runtime, transition: Transition): Promise<CommitResult> {
  const { handle, booking, jobs, about, replay } = transition;
  const version = (transition.before?.version ?? 0) + 1;
  const next = toBooking(handle, { ...booking, version }, runtime.now());
  // The events of one change happen one after another, each a ms after the one before it.
  const at = runtime.now();
  const events = (transition.isUnheard ? [] : transition.events).map((type, place) =>
    webhookEvent(runtime, handle, { type, data: { handle, booking: next, ...about }, at: at + place }),
  );
  const syncs = syncJobs(transition, version);
  const record = replay && replayRecord(replay, toBookingAnswer(next));
  const caused = [...jobs, ...syncs, ...dispatchJobs(handle, events)];
  const [kind, more = ""] = await runtime.queues.stepInGroups(handle, caused, (outboxKey) => {
    const names = keyNames(runtime, transition, { events, outboxKey, record });
    const values = valuesOf(runtime, transition, { events, syncs, record });
    return script<[string, string?]>(runtime.redis, "writeBooking", names, values);
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

/** The status that holds now: an unpaid hold that has ended is a rejection, even before a job has written that. */
export function statusAt(
  { status, holdUntil }: Pick<StoredBooking, "status" | "holdUntil">,
  now: number,
): BookingStatus {
  const isOver = status === "PENDING_PAYMENT" && holdUntil !== null && Date.parse(holdUntil) <= now;
  return isOver ? "REJECTED" : status;
}

/** A booking as owner and visitor read it. */
export function toBooking(handle: string, record: BookingRecord, now: number): Booking {
  const { buffers: _buffers, reminderMinutes: _reminder, moves: _moves, everConfirmed: _ever, ...booking } = record;
  return { ...booking, handle, status: statusAt(record, now), payment: presentPayment(record, now) };
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

/** The list of all bookings; the others are by status. */
export const ALL_STATUSES = "ALL";

/** The job that tells calendars and meetings of a booking that was accepted, moved, or ended. */
function syncJobs({ handle, booking, before }: Transition, version: number): Job[] {
  const { bookingUid, status, sequence } = booking;
  const isSame = before?.status === status && before.sequence === sequence;
  if (isSame || (status !== "ACCEPTED" && before?.status !== "ACCEPTED")) return [];
  return [job("scheduling.sync", `sync-${bookingUid}-${version}`, { handle, bookingUid })];
}

function keyNames(
  runtime: Runtime,
  { handle, booking, before, visitor }: Transition,
  { events, outboxKey, record }: { events: WebhookEvent[]; outboxKey: string; record: ReplayRecord | undefined },
): string[] {
  return [
    keys.booking(handle, booking.bookingUid),
    keys.blocks(handle),
    keys.busy(handle),
    keys.bookings(handle, ALL_STATUSES),
    keys.bookings(handle, before?.status ?? booking.status),
    keys.bookings(handle, booking.status),
    keys.catalogVersion(handle),
    keys.timesVersion(handle),
    outboxKey,
    record?.key ?? keys.idempotent(handle, "bookings", ""),
    keys.webhooks(handle),
    keys.credentials(handle),
    ...limitKeys(runtime, handle, { visitor, booking }),
    ...events.map(({ key }) => key),
  ];
}

function valuesOf(
  runtime: Runtime,
  transition: Transition,
  { events, syncs, record }: { events: WebhookEvent[]; syncs: Job[]; record: ReplayRecord | undefined },
): (string | number)[] {
  const { booking, before, catalogVersion, time, dayLimit } = transition;
  const block = time === "take" || time === "settle" ? bookedTimeOf(booking) : { member: "", from: 0, to: 0 };
  return [
    ...[before?.version ?? 0, catalogVersion ?? "", JSON.stringify({ ...booking, version: undefined })],
    ...[booking.status, booking.bookingUid, Date.parse(booking.start), runtime.now()],
    ...[time, block.member, block.from, block.to, booking.eventTypeId],
    ...[dayLimit?.most ?? 0, dayLimit?.from ?? 0, dayLimit?.to ?? 0],
    ...[record?.value ?? "", RECORD_TTL_MS, EVENT_TTL_MS, encodeJobs(transition.jobs)],
    transition.isUnheard ? "" : encodeJobs(dispatchJobs(transition.handle, events)),
    syncs.length === 0 ? "" : encodeJobs(syncs),
    ...limitValues(runtime, transition.visitor),
    ...events.map(({ content }) => content),
  ];
}
