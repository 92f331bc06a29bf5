import type {
  Booking,
  BookingAnswer,
  bookingListing,
  cancellation,
  declining,
  PublicEvent,
  StoredBooking,
  schedulingVisit,
} from "../../schemas/scheduling.ts";
import type { Infer, Input } from "../../schemas/schema.ts";
import { settingsOf } from "../account/face.ts";
import type { CalendarFile } from "../engines/calendars/calendars.ts";
import { batchesOf } from "../platform/batches.ts";
import { Fail, insteadOf } from "../platform/errors.ts";
import type { Caller, Runtime, Store } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { type Listed, listIds } from "../store/paging.ts";
import { readRecords, requireRecord } from "../store/records.ts";
import { openJobs } from "./booking-jobs.ts";
import { fileFor, mailsVisitors } from "./booking-mails.ts";
import { bookableEventById, readCatalogSnapshot } from "./catalog.ts";
import { paymentProblem } from "./event-types.ts";
import {
  ALL_STATUSES,
  type BookingName,
  type BookingRecord,
  changeBooking,
  findBooking,
  statusAt,
  timestamp,
  toBooking,
  toBookingAnswer,
  type Visitor,
} from "./ledger.ts";
import { readPublicEventType } from "./public-events.ts";

type PublicBookingPath = Input<"handle" | "eventSlug" | "bookingUid">;

/** A booking for the visitor with its uid; `booking_not_found`, also under another event type's slug. */
export async function readPublicBooking(runtime: Runtime, input: PublicBookingPath): Promise<{ booking: Booking }> {
  return { booking: toBooking(input.handle, await findPublicBooking(runtime, input), runtime.now()) };
}

/** The initial contents of the visitor's page. */
export interface EventPage {
  handle: string;
  host: { name: string; logoUrl: string | null };
  eventSlug: string;
  /** Null if the event type is hidden or deleted: then only the booking is shown. */
  event: PublicEvent | null;
  /** True if the payment of the event can't be taken now: then its bookings are refused. */
  isUnpayable: boolean;
  /** True if visitors are mailed about their bookings. */
  isMailed: boolean;
  booking: Booking | null;
  /** Domain time in ms, by which the page corrects the visitor's clock. */
  now: number;
  isEmbedded: boolean;
}

/**
 * An event type for its page, and the booking of the uid, which can be read and cancelled even if the event type is hidden.
 * `event_type_not_found`, `booking_not_found`.
 */
export async function visitEvent(
  runtime: Runtime,
  input: Input<"handle" | "eventSlug", typeof schedulingVisit>,
): Promise<EventPage> {
  const { handle, booking: bookingUid } = input;
  const booking = bookingUid ? (await readPublicBooking(runtime, { ...input, bookingUid })).booking : null;
  const { eventSlug, event } = booking
    ? await eventOfBooking(runtime, input, booking)
    : { ...input, ...(await readPublicEventType(runtime, input)) };
  const { displayName, logoUrl = null } = await settingsOf(runtime.redis, handle);
  const host = { name: displayName ?? handle, logoUrl };
  const payment = { enabled: event?.paymentRequired ?? false, ...event?.price };
  const isUnpayable = (await paymentProblem(runtime, handle, payment)) !== null;
  const isMailed = await mailsVisitors(runtime, handle);
  const isEmbedded = input.embed === "1";
  return { handle, host, eventSlug, event, isUnpayable, isMailed, booking, now: runtime.now(), isEmbedded };
}

/** A booking's own event type, which may have another slug by now; null if it is hidden or deleted, whatever has its slug. */
async function eventOfBooking(
  runtime: Runtime,
  { handle, eventSlug }: Input<"handle" | "eventSlug">,
  { eventTypeId }: Booking,
): Promise<Pick<EventPage, "eventSlug" | "event">> {
  const slug = bookableEventById(await readCatalogSnapshot(runtime, handle), eventTypeId)?.event.slug;
  if (slug === undefined) return { eventSlug, event: null };
  const reading = readPublicEventType(runtime, { handle, eventSlug: slug });
  const { event } = await reading.catch(insteadOf("event_type_not_found", { event: null }));
  return { eventSlug: slug, event };
}

/** A booking as a calendar file, for callers with access. */
export async function readCalendarFile(runtime: Runtime, input: PublicBookingPath): Promise<CalendarFile> {
  const stored = await findPublicBooking(runtime, input);
  return fileFor(runtime, input.handle, { stored, recipient: "visitor" });
}

/**
 * The visitor cancels, and is refunded if the terms allow it; idempotent. `booking_not_found`, `booking_not_cancellable`, `rate_limited`.
 */
export async function cancelPublicBooking(
  runtime: Runtime,
  input: PublicBookingPath & Infer<typeof cancellation>,
  visitor: Caller,
): Promise<BookingAnswer> {
  await findPublicBooking(runtime, input);
  return toBookingAnswer(await cancel(runtime, { ...input, visitor }));
}

/** The owner cancels, and a payment is refunded; idempotent. `booking_not_found`, `booking_not_cancellable`. */
export async function cancelBooking(
  runtime: Runtime,
  input: BookingName & Infer<typeof cancellation>,
): Promise<{ booking: Booking }> {
  return { booking: await cancel(runtime, input) };
}

/** A request as its owner saw it; a move makes it another request. */
interface Seen {
  sequence?: number;
}

/** The owner accepts a request; `booking_not_pending` unless it awaits this, or once its time has begun. */
export async function confirmBooking(runtime: Runtime, input: BookingName & Seen): Promise<{ booking: Booking }> {
  const booking = await changeBooking(runtime, input, (stored) => {
    mustBePending(stored, input, runtime.now());
    if (Date.parse(stored.start) <= runtime.now())
      throw new Fail("booking_not_pending", {
        detail: "The booking's time has begun; it can't be confirmed any more.",
      });
    const at = timestamp(runtime);
    return { step: "confirmed", booking: { ...stored, status: "ACCEPTED", confirmedAt: at, updatedAt: at } };
  });
  return { booking };
}

/** The owner declines a request: its slot is free again and a payment goes back; `booking_not_pending`. */
export async function declineBooking(
  runtime: Runtime,
  input: BookingName & Infer<typeof declining> & Seen,
): Promise<{ booking: Booking }> {
  const booking = await changeBooking(runtime, input, (stored) => {
    mustBePending(stored, input, runtime.now());
    const why = {
      cancellationReason: input.reason ?? null,
      cancelledBy: "owner",
      updatedAt: timestamp(runtime),
    } as const;
    const payment = endedPayment(stored, true);
    return { step: "declined", booking: { ...stored, ...why, status: "REJECTED", payment } };
  });
  return { booking };
}

/** A booking as its owner sees it; `booking_not_found`. */
export async function readBooking(runtime: Runtime, input: BookingName): Promise<{ booking: Booking }> {
  const { handle, bookingUid } = input;
  const key = keys.booking(handle, bookingUid);
  const stored = await requireRecord<StoredBooking>(runtime.redis, key, "booking_not_found");
  return { booking: toBooking(handle, stored, runtime.now()) };
}

/** The handle's bookings by start, latest first or, with `order=asc`, earliest first. */
export async function listBookings(
  runtime: Runtime,
  input: Input<"handle", typeof bookingListing>,
): Promise<Listed<"bookings", Booking>> {
  const { handle, status, from = "0000", to = "9999-12-31T23:59:59.999Z", order, ...page } = input;
  const { ids, nextCursor } = await listIds(runtime, keys.bookings(handle, status ?? ALL_STATUSES), {
    ...page,
    name: keys.bookings(handle, ALL_STATUSES),
    range: { from: Date.parse(from), to: Date.parse(to) - 1, order },
  });
  const records = await readRecords<StoredBooking>(runtime.redis, ids, (uid) => keys.booking(handle, uid));
  const bookings = records.map((stored) => toBooking(handle, stored, runtime.now()));
  return { bookings: bookings.filter((booking) => status === undefined || booking.status === status), nextCursor };
}

const RESUME_BATCH_SIZE = 200;

/**
 * Schedules the jobs of an imported handle's bookings, since jobs are not exported: reminders, ends of unpaid holds, and due refunds.
 * Idempotent. Returns the number of reminders.
 */
export async function resumeBookings(store: Store, handle: string): Promise<number> {
  const { redis, queues } = store;
  const uids = await redis.zrange(keys.bookings(handle, ALL_STATUSES), 0, "-1");
  let count = 0;
  for (const some of batchesOf(uids, RESUME_BATCH_SIZE)) {
    const found = await readRecords<StoredBooking>(redis, some, (uid) => keys.booking(handle, uid));
    const jobs = found.flatMap((booking) => openJobs(store, handle, booking));
    // The original handle may exist here too, with jobs of the same names.
    await queues.later(...jobs.map((one) => ({ ...one, id: `${one.id}-${handle}` })));
    count += jobs.filter(({ name }) => name === "scheduling.mail").length;
  }
  return count;
}

/** The booking of a public path; `booking_not_found` for all that is unknown there. */
async function findPublicBooking(runtime: Runtime, input: PublicBookingPath): Promise<BookingRecord> {
  const { handle, eventSlug, bookingUid } = input;
  const [snapshot, stored] = await Promise.all([
    readCatalogSnapshot(runtime, handle),
    findBooking(runtime.redis, handle, bookingUid),
  ]);
  const slugs = [stored?.eventSlug, bookableEventById(snapshot, stored?.eventTypeId)?.event.slug];
  if (snapshot === undefined || stored === undefined || !slugs.includes(eventSlug)) throw new Fail("booking_not_found");
  return stored;
}

function cancel(
  runtime: Runtime,
  input: BookingName & Infer<typeof cancellation> & { visitor?: Visitor },
): Promise<Booking> {
  const { visitor } = input;
  return changeBooking(runtime, input, (stored) => {
    if (stored.status === "CANCELLED") return undefined;
    const isOver = statusAt(stored, runtime.now()) === "REJECTED" || Date.parse(stored.start) <= runtime.now();
    if (isOver) throw new Fail("booking_not_cancellable");
    const why = {
      cancellationReason: input.cancellationReason ?? null,
      cancelledBy: visitor ? ("visitor" as const) : ("owner" as const),
      updatedAt: timestamp(runtime),
    };
    const isDue = visitor === undefined || toBooking(input.handle, stored, runtime.now()).payment?.refundable === true;
    const booking: StoredBooking = { ...stored, ...why, status: "CANCELLED", payment: endedPayment(stored, isDue) };
    const step = visitor ? "cancelledByVisitor" : "cancelledByOwner";
    return { step: stored.status === "PENDING_PAYMENT" ? "endedUnpaid" : step, booking, visitor };
  });
}

/** The payment of a booking that ends: a paid one must be refunded if that is due. */
function endedPayment({ payment }: StoredBooking, isDue: boolean): StoredBooking["payment"] {
  return payment?.status === "PAID" && isDue ? { ...payment, status: "REFUND_DUE" } : payment;
}

function mustBePending(stored: BookingRecord, { sequence = stored.sequence }: Seen, now: number): void {
  if (statusAt(stored, now) !== "PENDING" || sequence !== stored.sequence) throw new Fail("booking_not_pending");
}
