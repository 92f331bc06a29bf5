import type { JobData } from "../../schemas/jobs.ts";
import type { Booking, bookingPath, StoredBooking } from "../../schemas/scheduling.ts";
import type { Infer } from "../../schemas/schema.ts";
import {
  type CalendarEvent,
  ownUid,
  type Provider,
  type ProviderAccount,
  providers,
  type WrittenEvent,
  type WrittenMeeting,
} from "../engines/calendars/calendars.ts";
import type { Job, Runtime } from "../platform/runtime.ts";
import { storedZone } from "../platform/zones.ts";
import { keys } from "../store/keys.ts";
import { withLock } from "../store/lock.ts";
import { job } from "../store/outbox.ts";
import { aboutBooking } from "./booking-mails.ts";
import { readBooking } from "./bookings.ts";
import { pauseCalendars, pausedUntil } from "./calendar-pauses.ts";
import { credentialsOf, failureDetails } from "./credentials.ts";
import { type BookingRecord, changeIfKept, findBooking, statusAt, timestamp } from "./ledger.ts";
import { meetingMaker } from "./meetings.ts";
import { presentableName } from "./names.ts";
import { type Destination, destinationAmong, opened, selectionsOf } from "./selections.ts";

/** Bookings that one pass of retries covers. */
const MAX_RETRIED_BOOKINGS = 100;

/** The provider's state of a booking. */
interface SyncedEvent {
  event?: WrittenEvent;
  meeting?: WrittenMeeting;
}

/** A failed provider. */
interface SyncFailure {
  account: ProviderAccount;
  error: Error;
}

/**
 * Job: synchronises calendar and meeting of a booking with its current state. During a pause of the handle's calendar servers, and if an
 * earlier attempt hangs with its process, it waits for the end of the pause.
 */
export async function syncBooking(
  runtime: Runtime,
  data: JobData<"scheduling.sync">,
  { hung = false }: { hung?: boolean } = {},
): Promise<void> {
  const { handle, bookingUid } = data;
  const until = hung ? await pauseCalendars(runtime, handle) : await pausedUntil(runtime, handle);
  if (until === 0) return syncNow(runtime, data);
  const delay = Math.max(1, until - Date.now());
  await runtime.queues.later(job("scheduling.sync", `sync-${bookingUid}-paused-${until}`, data, { delay }));
}

/**
 * Synchronises calendar and meeting of a booking with its current state: creates, moves or removes them. Repeated calls, in any order and
 * with crashes anywhere, result in one event. A failure marks the booking as DEGRADED and is thrown for a retry, unless the job runs `once`;
 * the change to DEGRADED is reported once.
 */
async function syncNow(runtime: Runtime, { handle, bookingUid, once }: JobData<"scheduling.sync">): Promise<void> {
  const trouble = await withLock(runtime.redis, keys.syncLock(handle, bookingUid), async (lease) => {
    const kept = await findBooking(runtime.redis, handle, bookingUid);
    if (kept === undefined) return undefined;
    const sync = new Sync(runtime, { handle, kept, lease });
    await sync.run();
    lease.throwIfAborted();
    await settle(runtime, handle, { bookingUid, meetingUrl: sync.meetingUrl, trouble: sync.trouble });
    return sync.trouble;
  });
  // A plain error, so that it is retried: the provider may accept it later, once its owner has reconnected it.
  if (trouble && !once) throw new Error(`${trouble.account.credential.providerKey}: ${trouble.error.message}`);
}

/** Writes a booking again at once, on the owner's request. `booking_not_found`. */
export async function resynchronizeBooking(
  runtime: Runtime,
  { handle, bookingUid }: Infer<typeof bookingPath>,
): Promise<{ booking: Booking }> {
  const found = await readBooking(runtime, { handle, bookingUid });
  await runtime.queues.later(job("scheduling.sync", `sync-${runtime.id("")}`, { handle, bookingUid }));
  return found;
}

/** Retries failed writes, once per `turn`. */
export async function resyncAll(runtime: Runtime, handle: string, turn: number): Promise<void> {
  const left = await runtime.redis.srandmember(keys.unsynced(handle), MAX_RETRIED_BOOKINGS);
  await runtime.queues.later(
    ...left.map((bookingUid) =>
      job("scheduling.sync", `sync-${bookingUid}-turn-${turn}`, { handle, bookingUid, once: true }),
    ),
  );
}

/** One attempt to synchronise a booking. Each result is stored at once, so that a crash loses little. */
class Sync {
  readonly #runtime: Runtime;
  readonly #handle: string;
  readonly #kept: BookingRecord;
  readonly #lease: AbortSignal;
  #written: SyncedEvent = {};
  /** The first failed provider. */
  trouble: SyncFailure | undefined;
  /** The new meeting link, if one was created. */
  meetingUrl: string | undefined;

  /** Nothing is requested or written after the lease has ended. */
  constructor(runtime: Runtime, { handle, kept, lease }: { handle: string; kept: BookingRecord; lease: AbortSignal }) {
    this.#runtime = runtime;
    this.#handle = handle;
    this.#kept = kept;
    this.#lease = lease;
  }

  async run(): Promise<void> {
    const key = keys.booking(this.#handle, this.#kept.bookingUid);
    this.#written = JSON.parse((await this.#runtime.redis.hget(key, "written")) ?? "{}") as SyncedEvent;
    if (statusAt(this.#kept, this.#runtime.now()) !== "ACCEPTED") {
      await this.#dropEvent();
      await this.#dropMeeting();
      return;
    }
    const selections = await selectionsOf(this.#runtime, this.#handle);
    const target = destinationAmong(selections) ?? (await this.#lastPlace());
    await this.#putMeeting();
    if (target) await this.#putEvent(target);
  }

  async #putMeeting(): Promise<void> {
    const maker = await meetingMaker(this.#runtime, this.#handle, this.#kept);
    if (maker === undefined) return;
    const { account, meetings } = maker;
    const { meeting } = this.#written;
    const earlier = meeting?.credentialId === account.credential.credentialId ? { earlier: meeting } : {};
    await this.#attempt(account, async () => {
      const event = await eventOf(this.#runtime, this.#handle, { kept: this.#kept, meeting: null });
      const made = await meetings.put(this.#runtime, account, { event, ...earlier });
      this.meetingUrl = made.url;
      return { ...this.#written, meeting: made };
    });
  }

  async #putEvent({ account, calendars, calendarId }: Destination): Promise<void> {
    const { event: before } = this.#written;
    const isSame = before?.credentialId === account.credential.credentialId && before.calendarId === calendarId;
    if (before && !isSame) await this.#dropEvent();
    if (this.#written.event && !isSame) return;
    await this.#attempt(account, async () => {
      const { location } = this.#kept;
      const meetingUrl = this.meetingUrl ?? this.#kept.meetingUrl;
      const meeting = calendars.meeting && calendars.meeting === location?.type ? calendars.meeting : null;
      const event = await eventOf(this.#runtime, this.#handle, { kept: { ...this.#kept, meetingUrl }, meeting });
      const made = await calendars.put(this.#runtime, account, {
        calendarId,
        event,
        ...(isSame ? { earlier: before } : {}),
      });
      this.meetingUrl ??= made.meetingUrl ?? undefined;
      return { ...this.#written, event: made };
    });
  }

  /** The calendar of the existing event, if no other is the destination now. */
  async #lastPlace(): Promise<Destination | undefined> {
    const { event } = this.#written;
    const account = event && (await this.#account(event.credentialId));
    const calendars = account && providerOf(account)?.calendars;
    return event && account && calendars && { account, calendars, calendarId: event.calendarId };
  }

  async #dropEvent(): Promise<void> {
    const { event, ...rest } = this.#written;
    if (event === undefined) return;
    const account = await this.#account(event.credentialId);
    await this.#attempt(account, async () => {
      if (account) await providerOf(account)?.calendars?.remove(this.#runtime, account, event);
      return rest;
    });
  }

  async #dropMeeting(): Promise<void> {
    const { meeting, ...rest } = this.#written;
    if (meeting === undefined) return;
    const account = await this.#account(meeting.credentialId);
    await this.#attempt(account, async () => {
      if (account) await providerOf(account)?.meetings?.remove(this.#runtime, account, meeting);
      return rest;
    });
  }

  /** Undefined if the account was disconnected: its events are no longer ours. */
  async #account(id: string): Promise<ProviderAccount | undefined> {
    const all = await credentialsOf(this.#runtime, this.#handle);
    const credential = all.find(({ credentialId }) => credentialId === id);
    return credential && opened(this.#runtime, this.#handle, credential);
  }

  /** Calls a provider and stores its new state; records its failure. */
  async #attempt(account: ProviderAccount | undefined, work: () => Promise<SyncedEvent>): Promise<void> {
    this.#lease.throwIfAborted();
    try {
      this.#written = await work();
    } catch (error) {
      // Without an account no provider was called.
      if (account === undefined) throw error;
      this.trouble ??= { account, error: error as Error };
      return;
    }
    this.#lease.throwIfAborted();
    const key = keys.booking(this.#handle, this.#kept.bookingUid);
    await this.#runtime.redis.hset(key, "written", JSON.stringify(this.#written));
  }
}

function providerOf({ credential }: ProviderAccount): Provider | undefined {
  return providers[credential.providerKey];
}

/** A booking as a calendar event. */
export async function eventOf(
  runtime: Runtime,
  handle: string,
  { kept, meeting }: { kept: BookingRecord; meeting: CalendarEvent["meeting"] },
): Promise<CalendarEvent> {
  const { bookingUid, sequence, title, start, end, attendee, location, meetingUrl, updatedAt } = kept;
  const timeZone = storedZone(kept.timeZone);
  return {
    ...{ bookingUid, uid: ownUid(runtime.env, bookingUid), sequence, start, end, timeZone, meeting, updatedAt },
    // Guests see the title of a meeting too.
    title: `${title} with ${presentableName(attendee.name) ?? attendee.email}`,
    description: await aboutBooking(runtime, handle, kept),
    location: meetingUrl ?? (location?.label || null),
  };
}

interface Outcome {
  bookingUid: string;
  meetingUrl: string | undefined;
  trouble: SyncFailure | undefined;
}

/** Stores the outcome of an attempt, with an event if it became degraded. */
async function settle(runtime: Runtime, handle: string, outcome: Outcome): Promise<void> {
  const { bookingUid, trouble } = outcome;
  const left = keys.unsynced(handle);
  if (trouble) await runtime.redis.sadd(left, bookingUid);
  let unsent: Job | undefined;
  await changeIfKept(runtime, { handle, bookingUid }, async (before) => {
    // The meeting of a booking that was moved or ended meanwhile is about to be removed.
    const meetingUrl = (before.status === "ACCEPTED" && outcome.meetingUrl) || before.meetingUrl;
    const syncStatus = trouble ? "DEGRADED" : "OK";
    const isLinked = meetingUrl !== before.meetingUrl;
    unsent = undefined;
    if (syncStatus === before.syncStatus && !isLinked) return undefined;
    const updatedAt = isLinked ? timestamp(runtime) : before.updatedAt;
    const booking: StoredBooking = { ...before, meetingUrl, syncStatus, updatedAt };
    // Recipients of a mail without a link, or with another one, get the new link.
    const isLate = before.meetingUrl !== null || (await wentWithoutLink(runtime, handle, bookingUid));
    const jobs = isLinked ? [linkMail(handle, booking, before.version + 1)] : [];
    if (!isLate) unsent = jobs[0];
    const step = trouble && before.syncStatus === "OK" ? "degraded" : "noted";
    return { step, booking, about: trouble ? describeFailure(trouble) : {}, jobs: isLate ? jobs : [] };
  });
  // The mail may have been sent between the check and the write.
  if (unsent && (await wentWithoutLink(runtime, handle, bookingUid))) await runtime.queues.later(unsent);
  if (!trouble) await runtime.redis.srem(left, bookingUid);
}

/** A link may change again, each time with the version of the booking. */
function linkMail(handle: string, { bookingUid, sequence }: StoredBooking, version: number): Job {
  return job("scheduling.mail", `mail-${bookingUid}-link-${version}`, { handle, bookingUid, kind: "link", sequence });
}

async function wentWithoutLink({ redis }: Runtime, handle: string, bookingUid: string): Promise<boolean> {
  return (await redis.hget(keys.booking(handle, bookingUid), "linkless")) !== null;
}

function describeFailure({ account, error }: SyncFailure): Record<string, unknown> {
  const { providerKey, credentialId } = account.credential;
  return { providerKey, credentialId, ...failureDetails(error) };
}
