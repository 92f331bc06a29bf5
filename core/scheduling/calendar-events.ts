import type { JobData } from "../../schemas/jobs.ts";
import type { Booking, StoredBooking } from "../../schemas/scheduling.ts";
import {
  type CalendarEvent,
  ownUid,
  type ProviderAccount,
  providers,
  type WrittenEvent,
  type WrittenMeeting,
} from "../engines/calendars/calendars.ts";
import type { Runtime } from "../platform/runtime.ts";
import { storedZone } from "../platform/zones.ts";
import { keys } from "../store/keys.ts";
import { withLock } from "../store/lock.ts";
import { job } from "../store/outbox.ts";
import { isRedisAway } from "../store/redis.ts";
import { mailJob, refundJobs } from "./booking-jobs.ts";
import { aboutBooking } from "./booking-mails.ts";
import { readBooking } from "./bookings.ts";
import { credentialRecords, failureDetails } from "./credentials.ts";
import { type BookingName, type BookingRecord, changeIfExists, findBooking, statusAt, timestamp } from "./ledger.ts";
import { type Destination, destinationAmong, meetingMaker, selectionsOf } from "./selections.ts";

/** Bookings that one pass of retries covers. */
const MAX_RETRIED_BOOKINGS = 100;

/** One attempt to synchronise a booking, and its results. Each result is stored at once, so that a crash loses little. */
interface Sync {
  runtime: Runtime;
  handle: string;
  stored: BookingRecord;
  /** Nothing is requested or written after the lease has ended. */
  lease: AbortSignal;
  /** The provider's state of the booking, and where that is. */
  written: {
    event?: (WrittenEvent & { credentialId: string; calendarId: string }) | undefined;
    meeting?: (WrittenMeeting & { credentialId: string }) | undefined;
    /** One of them is being created, and may be there without a note. */
    isBegun?: true | undefined;
  };
  meetingUrl?: string | undefined;
  /** The first failed provider. */
  failure?: { account: ProviderAccount; error: Error };
}

/**
 * Job: synchronises calendar and meeting of a booking with its current state: creates, moves or removes them. Repeated calls, in any order and
 * with crashes anywhere, result in one event. A failure marks the booking as DEGRADED and is thrown for a retry, unless the job runs `once`;
 * the change to DEGRADED is reported once, unless the account's failure already was.
 */
export async function syncBooking(
  runtime: Runtime,
  { handle, bookingUid, once }: JobData<"scheduling.sync">,
): Promise<void> {
  const failure = await withLock(runtime.redis, keys.syncLock(handle, bookingUid), async (lease) => {
    const stored = await findBooking(runtime.redis, handle, bookingUid);
    if (stored === undefined) return undefined;
    const written = JSON.parse((await runtime.redis.hget(keys.booking(handle, bookingUid), "written")) ?? "{}");
    const sync: Sync = { runtime, handle, stored, lease, written };
    // First, so that the next pull retries whatever a crash cuts off.
    await runtime.redis.sadd(keys.unsynced(handle), bookingUid);
    await callProviders(sync);
    lease.throwIfAborted();
    await settle(sync);
    return sync.failure;
  });
  // A plain error, so that it is retried: the provider may accept it later, once its owner has reconnected it.
  if (failure && !once) throw new Error(`${failure.account.providerKey}: ${failure.error.message}`);
}

/** Writes a booking again at once, on the owner's request, and tries a due refund again. `booking_not_found`. */
export async function resynchronizeBooking(
  runtime: Runtime,
  { handle, bookingUid }: BookingName,
): Promise<{ booking: Booking }> {
  const found = await readBooking(runtime, { handle, bookingUid });
  const again = runtime.id("-");
  const refunds = refundJobs(handle, found.booking, again);
  await runtime.queues.later(job("scheduling.sync", `sync${again}`, { handle, bookingUid }), ...refunds);
  return found;
}

/** Retries failed writes, once before the next `turn`. */
export async function resyncAll(runtime: Runtime, handle: string, turn: number): Promise<void> {
  const left = await runtime.redis.srandmember(keys.unsynced(handle), MAX_RETRIED_BOOKINGS);
  await runtime.queues.later(
    ...left.map((bookingUid) =>
      job("scheduling.sync", `sync-${bookingUid}-turn-${turn}`, { handle, bookingUid, once: true }),
    ),
  );
}

async function callProviders(sync: Sync): Promise<void> {
  const { runtime, stored } = sync;
  const isAccepted = statusAt(stored, runtime.now()) === "ACCEPTED";
  // Writing it again finds what a crash left without a note.
  if (isAccepted || sync.written.isBegun) await putBoth(sync);
  if (isAccepted) return;
  await remove(sync, "event");
  await remove(sync, "meeting");
}

async function putBoth(sync: Sync): Promise<void> {
  const target = destinationAmong(await selectionsOf(sync.runtime, sync.handle)) ?? (await lastDestination(sync));
  await putMeeting(sync);
  if (target) await putEvent(sync, target);
}

async function putMeeting(sync: Sync): Promise<void> {
  const { runtime, handle, stored, written } = sync;
  const maker = await meetingMaker(runtime, handle, stored);
  if (maker === undefined) return;
  const { account, meetings } = maker;
  const { meeting: last } = written;
  const { credentialId } = account;
  const earlier = last?.credentialId === credentialId ? { earlier: last } : {};
  if (!earlier.earlier) await note(sync, { isBegun: true });
  await attempt(sync, account, async () => {
    const event = await eventOf(runtime, handle, { stored, meeting: null });
    const meeting = await meetings.put(runtime, account, { event, ...earlier });
    sync.meetingUrl = meeting.url;
    return { meeting: { credentialId, ...meeting } };
  });
}

async function putEvent(sync: Sync, { account, calendars, calendarId }: Destination): Promise<void> {
  const { runtime, handle, written } = sync;
  const before = written.event;
  const { credentialId } = account;
  const isSame = before?.credentialId === credentialId && before.calendarId === calendarId;
  if (!isSame) await remove(sync, "event");
  if (sync.written.event && !isSame) return;
  if (!isSame) await note(sync, { isBegun: true });
  await attempt(sync, account, async () => {
    const stored = { ...sync.stored, meetingUrl: sync.meetingUrl ?? sync.stored.meetingUrl };
    const meeting = calendars.meeting && calendars.meeting === stored.location?.type ? calendars.meeting : null;
    const content = await eventOf(runtime, handle, { stored, meeting });
    const earlier = isSame ? { earlier: before } : {};
    const event = await calendars.put(runtime, account, { calendarId, event: content, ...earlier });
    sync.meetingUrl ??= event.meetingUrl ?? undefined;
    return { event: { credentialId, calendarId, ...event } };
  });
}

/** The calendar of the existing event, if no other is the destination now. */
async function lastDestination(sync: Sync): Promise<Destination | undefined> {
  const { event } = sync.written;
  const account = event && (await findAccount(sync, event.credentialId));
  const calendars = account && providers[account.providerKey]?.calendars;
  return calendars && { account, calendars, calendarId: event.calendarId };
}

/** Removes the event or the meeting of a booking; those of a disconnected account are no longer ours and are only forgotten. */
async function remove(sync: Sync, part: "event" | "meeting"): Promise<void> {
  const written = sync.written[part];
  if (written === undefined) return;
  const account = await findAccount(sync, written.credentialId);
  await attempt(sync, account, async () => {
    const { calendars, meetings } = (account && providers[account.providerKey]) ?? {};
    if (account && "eventId" in written) await calendars?.remove(sync.runtime, account, written);
    if (account && "meetingId" in written) await meetings?.remove(sync.runtime, account, written);
    return { [part]: undefined };
  });
}

/** Undefined if the account was disconnected. */
async function findAccount({ runtime, handle }: Sync, id: string): Promise<ProviderAccount | undefined> {
  const credential = await credentialRecords.find(runtime, handle, id);
  return credential && { handle, ...credential };
}

/** Calls a provider and stores its new state; records its failure. */
async function attempt(
  sync: Sync,
  account: ProviderAccount | undefined,
  work: () => Promise<Sync["written"]>,
): Promise<void> {
  sync.lease.throwIfAborted();
  let state: Sync["written"];
  try {
    state = await work();
  } catch (error) {
    // Without an account no provider was called; failures of Redis don't count against it.
    if (account === undefined || isRedisAway(error)) throw error;
    sync.failure ??= { account, error: error as Error };
    return;
  }
  // The other one, which has failed, may be there all the same.
  await note(sync, { ...state, isBegun: sync.failure && sync.written.isBegun });
}

/** Stores a change of the provider's state. */
async function note(sync: Sync, change: Sync["written"]): Promise<void> {
  const { runtime, handle, stored, lease } = sync;
  lease.throwIfAborted();
  sync.written = { ...sync.written, ...change };
  await runtime.redis.hset(keys.booking(handle, stored.bookingUid), "written", JSON.stringify(sync.written));
}

/** A booking as a calendar event. */
export async function eventOf(
  runtime: Runtime,
  handle: string,
  { stored, meeting }: { stored: BookingRecord; meeting: CalendarEvent["meeting"] },
): Promise<CalendarEvent> {
  const { bookingUid, sequence, start, end, location, meetingUrl, updatedAt } = stored;
  const timeZone = storedZone(stored.timeZone);
  return {
    ...{ bookingUid, uid: ownUid(runtime.env, bookingUid), sequence, start, end, timeZone, meeting, updatedAt },
    ...(await aboutBooking(runtime, handle, stored)),
    location: meetingUrl ?? (location?.label || null),
  };
}

/** Stores the outcome of an attempt, with an event if it became degraded by an account that wasn't. */
async function settle({ runtime, handle, stored, failure, ...sync }: Sync): Promise<void> {
  const { bookingUid } = stored;
  await changeIfExists(runtime, { handle, bookingUid }, async (before) => {
    // The meeting of a booking that was moved or ended meanwhile is about to be removed.
    const meetingUrl = (before.status === "ACCEPTED" && sync.meetingUrl) || before.meetingUrl;
    const syncStatus = failure ? "DEGRADED" : "OK";
    const isLinked = meetingUrl !== before.meetingUrl;
    if (syncStatus === before.syncStatus && !isLinked) return undefined;
    const updatedAt = isLinked ? timestamp(runtime) : before.updatedAt;
    const booking: StoredBooking = { ...before, meetingUrl, syncStatus, updatedAt };
    // Recipients of a mail with another link get the new one.
    if (isLinked && before.meetingUrl) await runtime.redis.hset(keys.booking(handle, bookingUid), "linkless", 1);
    // It is sent if a mail went without the link, which may change again, each time with another version of the booking.
    const mail = { ...mailJob(handle, before, { kind: "link" }), id: `mail-${bookingUid}-link-${before.version + 1}` };
    const isNew = before.syncStatus === "OK" && failure && !(await isDegraded(runtime, failure.account));
    const step = isNew ? "degraded" : "updated";
    return { step, booking, about: failure && describeFailure(failure), jobs: isLinked ? [mail] : [] };
  });
  if (!failure) await runtime.redis.srem(keys.unsynced(handle), bookingUid);
}

/** True for an account whose failure is known: it was reported then. */
async function isDegraded(runtime: Runtime, { handle, credentialId }: ProviderAccount): Promise<boolean> {
  return (await credentialRecords.find(runtime, handle, credentialId))?.status === "DEGRADED";
}

function describeFailure({ account, error }: NonNullable<Sync["failure"]>): Record<string, unknown> {
  const { providerKey, credentialId } = account;
  return { providerKey, credentialId, ...failureDetails(error) };
}
