import type { Redis } from "ioredis";
import type { Booking, BookingAnswer, BookingStatus, StoredBooking } from "../../schemas/scheduling.ts";
import type { WebhookEventType } from "../../schemas/webhooks.ts";
import type { EventJob, Job, Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { readRecord } from "../store/records.ts";
import { scripts } from "../store/scripts.ts";
import { eventJob } from "../webhooks/face.ts";
import { presentPayment } from "./refunds.ts";
import { type Replay, replayRecord } from "./repeats.ts";
import { blockOf } from "./times.ts";
import { attendeeLimited, limitKeys, networkLimited, type Visitor, visitorLimits } from "./visitor-limits.ts";

export type BookingRecord = StoredBooking & { version: number };

/** One change of a booking: the booking afterwards, the fate of its slot, and the resulting events and jobs. */
export interface Transition {
  handle: string;
  booking: StoredBooking;
  /** The booking as read before; absent for a new one. */
  before?: BookingRecord | undefined;
  /** Version of the catalog by which it was judged; absent if the catalog doesn't matter. */
  catalogVersion?: string | undefined;
  /** Claims the slot, which must be free; reclaims it, which succeeds too if the booking still has it; holds it as it is; or releases it. */
  slot: "claim" | "reclaim" | "hold" | "release";
  /** The most bookings of its event type that may start in [from, to). */
  dayLimit?: { max: number; from: number; to: number } | undefined;
  /** Written if the handle has an endpoint for them. */
  events: WebhookEventType[];
  /** The content of the events besides the handle and the booking. */
  about?: Record<string, unknown>;
  jobs: Job[];
  /** The visitor who makes, moves or cancels it; absent for owners and jobs, which have no limits. */
  visitor?: Visitor | undefined;
  replay?: Replay | undefined;
}

/** The result of a transition. `repeated` carries the record of the earlier request. */
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
  const { handle, before } = transition;
  const booking = toBooking(handle, { ...transition.booking, version: (before?.version ?? 0) + 1 }, runtime.now());
  const record = transition.replay && replayRecord(transition.replay, toBookingAnswer(booking));
  const sync = syncJobs(transition, booking);
  const all = [...sync, ...transition.jobs, ...eventJobs(runtime, transition, booking)];
  const names = keysOf(runtime, transition, record?.key);
  const input = { ...inputOf(runtime, transition), record: record?.value };
  const [kind, more = ""] = await runtime.queues.step(handle, all, (outbox, entries) => {
    const jobs = { syncJobs: entries.slice(0, sync.length), jobs: entries.slice(sync.length) };
    return scripts.writeBooking(runtime.redis, { ...names, outbox }, { ...input, ...jobs });
  });
  if (kind === "written") return { kind, booking };
  if (kind === "limited") throw networkLimited(Number(more));
  if (kind === "crowded") throw attendeeLimited(runtime, Number(more));
  return kind === "repeated" ? { kind, record: more } : { kind: kind as "changed" | "taken" | "full" };
}

/** The events of one change, one ms apart. */
function eventJobs(runtime: Runtime, { handle, events, about }: Transition, booking: Booking): EventJob[] {
  const at = runtime.now();
  return events.map((type, place) =>
    eventJob(runtime, handle, { type, data: { handle, booking, ...about }, at: at + place }),
  );
}

/** A stored booking, or undefined. */
export async function findBooking(
  redis: Redis,
  handle: string,
  bookingUid: string,
): Promise<BookingRecord | undefined> {
  return readRecord<StoredBooking>(redis, keys.booking(handle, bookingUid));
}

/** The effective status: an unpaid booking with an expired hold is rejected, even before a job has written that. */
export function statusAt(booking: Pick<StoredBooking, "status" | "holdUntil">, now: number): BookingStatus {
  const { status, holdUntil } = booking;
  const isOver = status === "PENDING_PAYMENT" && holdUntil !== null && Date.parse(holdUntil) <= now;
  return isOver ? "REJECTED" : status;
}

/** A booking as owner and visitor read it. */
export function toBooking(handle: string, booking: BookingRecord, now: number): Booking {
  const { buffers: _buffers, reminderMinutes: _reminder, moves: _moves, everConfirmed: _ever, ...shown } = booking;
  return { ...shown, handle, status: statusAt(booking, now), payment: presentPayment(booking, now) };
}

/** The response to a visitor who has booked, moved or cancelled. */
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
function syncJobs({ handle, booking, before }: Transition, { version }: Booking): Job[] {
  const { bookingUid, status, sequence } = booking;
  const isSame = before?.status === status && before.sequence === sequence;
  if (isSame || (status !== "ACCEPTED" && before?.status !== "ACCEPTED")) return [];
  return [job("scheduling.sync", `sync-${bookingUid}-${version}`, { handle, bookingUid })];
}

type WriteKeys = Parameters<typeof scripts.writeBooking>[1];
type WriteInput = Parameters<typeof scripts.writeBooking>[2];

function keysOf(runtime: Runtime, transition: Transition, record: string | undefined): Omit<WriteKeys, "outbox"> {
  const { handle, booking, before } = transition;
  return {
    booking: keys.booking(handle, booking.bookingUid),
    blocks: keys.blocks(handle),
    busy: keys.busy(handle),
    all: keys.bookings(handle, ALL_STATUSES),
    before: keys.bookings(handle, before?.status ?? booking.status),
    after: keys.bookings(handle, booking.status),
    catalog: keys.catalogVersion(handle),
    times: keys.timesVersion(handle),
    record: record ?? keys.idempotent(handle, "bookings", ""),
    credentials: keys.credentials(handle),
    ...limitKeys(runtime, transition),
  };
}

function inputOf(runtime: Runtime, transition: Transition): Omit<WriteInput, "record" | "jobs" | "syncJobs"> {
  const { booking, before, catalogVersion, slot, dayLimit } = transition;
  const { bookingUid: uid, eventTypeId, status } = booking;
  return {
    version: before?.version ?? 0,
    json: JSON.stringify({ ...booking, version: undefined }),
    ...{ uid, eventTypeId, status, start: Date.parse(booking.start), now: runtime.now() },
    ...{ catalogVersion, slot, dayLimit },
    block: slot === "claim" || slot === "reclaim" ? blockOf(booking) : undefined,
    recordMs: RECORD_TTL_MS,
    ...visitorLimits(runtime, transition),
  };
}
