import { LRUCache } from "lru-cache";
import type { SelectedCalendars } from "../../schemas/integrations.ts";
import type { JobData } from "../../schemas/jobs.ts";
import {
  type BusyInterval,
  CalendarServerError,
  ownUid,
  type ProviderAccount,
} from "../engines/calendars/calendars.ts";
import { day, nextTurn, waitAtMost } from "../platform/clock.ts";
import { digestOf } from "../platform/digest.ts";
import { perObject } from "../platform/lazy.ts";
import type { Job, JobAttempt, Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { isRedisAway, pipelined } from "../store/redis.ts";
import { retryOnConflict } from "../store/retry.ts";
import { readingField, type StoredReading, storedObjects, tagsIn, writeReading } from "./busy-objects.ts";
import { resyncAll } from "./calendar-events.ts";
import { readCatalogSnapshot } from "./catalog.ts";
import { updateHealth } from "./credentials.ts";
import { type Selection, type StoredSelection, selectionsOf } from "./selections.ts";
import { writeBusy } from "./times.ts";

/** Real ms between two pulls of a handle's calendars, and age of busy times that a booking has read again (docs/reference.md, "Slots"). */
const PULL_INTERVAL_MS = 5 * 60_000;
const BUSY_FRESH_MS = 10_000;
/** Ms of the busy window before and after a period of days in which it stays the same. */
const LOOK_BACK_MS = 2 * day;
const LOOK_AHEAD_MS = 400 * day;
const PERIOD_MS = 28 * day;
/**
 * Accounts of a handle that are read concurrently, and concurrent calendar reads of each: a reading may take some ten megabytes, and
 * Microsoft allows four calls per mailbox, of which one is left for a booking.
 */
const MAX_CONCURRENT_ACCOUNTS = 2;
const MAX_CONCURRENT_READS = 3;
/** Real ms between two updates of the busy times while an account is slow to answer: a fraction of what a booking waits. */
const UPDATE_INTERVAL_MS = 400;
/** Ms for which a booking, and a change of the selection, wait for the reading; a slow calendar is read on afterwards. */
const BOOKING_TIMEOUT_MS = 1_500;
const SELECTION_TIMEOUT_MS = 20_000;
/** How often a pull reads a calendar that other processes read meanwhile; the next pull reads it anyway. */
const MAX_READINGS = 3;
/** Longest mark of a provider in characters; without one, a calendar is read as a whole each time. */
const MAX_MARK_LENGTH = 262_144;
/** Most instances in one handle's busy times. */
const MAX_INSTANCES = 100_000;

/** Job: pulls a handle's calendars and schedules the next pull while any calendar is selected. */
export async function pullCalendars(
  runtime: Runtime,
  { handle }: JobData<"scheduling.pull">,
  { due }: Pick<JobAttempt, "due">,
): Promise<void> {
  // A pull that was running when the last calendar went may have written its times afterwards.
  if ((await runtime.redis.hlen(keys.selectedCalendars(handle))) === 0) return updateBusy(runtime, handle);
  await pullNow(runtime, handle, due);
}

/** Replaces the selection of an account, and reads the selected calendars. The first pull is written with the selection. */
export async function changeSelection(runtime: Runtime, handle: string, selected: SelectedCalendars): Promise<void> {
  const stored: StoredSelection = { ...selected, at: Date.now() };
  await runtime.queues.commit(handle, [nextPull(handle, stored.at)], (transaction) =>
    transaction.hset(keys.selectedCalendars(handle), selected.credentialId, JSON.stringify(stored)),
  );
  await readSelected(runtime, handle);
}

/** Reads the selected calendars of a handle after a change of the selection: a reading that is running may not know it. */
export async function readSelected(runtime: Runtime, handle: string): Promise<void> {
  const reading = Promise.resolve(pullsOf(runtime.redis).get(handle)).then(() => refreshBusy(runtime, handle));
  await waitAtMost(reading, SELECTION_TIMEOUT_MS);
}

/**
 * Refreshes busy times that are too old for a booking. Does nothing if no calendar is selected. A slow provider is read on in the
 * background, and the booking uses its last known times.
 */
export async function refreshOldBusy(runtime: Runtime, handle: string): Promise<void> {
  const at = await runtime.redis.hget(keys.busyState(handle), "at");
  if (at === null || Date.now() - Number(at) <= BUSY_FRESH_MS) return;
  await waitAtMost(refreshBusy(runtime, handle), BOOKING_TIMEOUT_MS);
}

const pullsOf = perObject(() => new Map<string, Promise<void>>());

/**
 * The end of a running pull of this process, or of a new one. Never fails: slots stay bookable while a calendar server is away, and its last
 * known busy times count.
 */
export function refreshBusy(runtime: Runtime, handle: string): Promise<void> {
  const pulls = pullsOf(runtime.redis);
  const start = (): Promise<void> =>
    pullNow(runtime, handle)
      .catch((error: Error) => runtime.log.warn({ handle, error: error.message }, "calendar.pull_failed"))
      .finally(() => pulls.delete(handle));
  const running = pulls.get(handle) ?? start();
  pulls.set(handle, running);
  return running;
}

/**
 * Reads the selected calendars of a handle and retries failed writes. The next pull is scheduled first, so that no failure and no crash
 * ends the pulls of a handle.
 */
async function pullNow(runtime: Runtime, handle: string, due = 0): Promise<void> {
  await scheduleNextPull(runtime, { handle }, { due });
  await pull(runtime, handle);
  await resyncAll(runtime, handle, nextTurn(handle, { intervalMs: PULL_INTERVAL_MS, after: Date.now() }));
}

/**
 * Schedules the next pull of a handle's calendars, also for a pull that stalled before it did. A pull that begins before it is `due` is
 * followed by the next one, not by itself. Idempotent.
 */
export async function scheduleNextPull(
  { queues }: Pick<Runtime, "queues">,
  { handle }: JobData<"scheduling.pull">,
  { due }: Pick<JobAttempt, "due">,
): Promise<void> {
  await queues.later(nextPull(handle, Math.max(Date.now(), due)));
}

/** Pulls the selected calendars of an imported handle, which schedules all further pulls. */
export async function resumePulls({ redis, queues }: Pick<Runtime, "redis" | "queues">, handle: string): Promise<void> {
  if (await redis.exists(keys.selectedCalendars(handle)))
    await queues.later(job("scheduling.pull", `pull-${handle}-imported-${Date.now()}`, { handle }));
}

function nextPull(handle: string, after: number): Job {
  const due = nextTurn(handle, { intervalMs: PULL_INTERVAL_MS, after });
  return job("scheduling.pull", `pull-${handle}-${due}`, { handle }, { delay: Math.max(1, due - Date.now()) });
}

async function pull(runtime: Runtime, handle: string): Promise<void> {
  const readAt = Date.now();
  const selections = (await selectionsOf(runtime, handle)).filter(({ busyCalendarIds }) => busyCalendarIds.length > 0);
  // For calendars without a zone: that of the handle's oldest schedule.
  const zone = (await readCatalogSnapshot(runtime, handle))?.schedules[0]?.timeZone ?? "UTC";
  // Accounts that failed last time wait, then slow ones, so that they delay no other.
  const left = [...selections].sort((one, other) => effortOf(one) - effortOf(other));
  const pullNext = async (): Promise<void> => {
    for (let selection = left.shift(); selection !== undefined; selection = left.shift()) {
      const begunAt = Date.now();
      await pullAccount(runtime, { selection, zone });
      lastTook.set(selection.account.credentialId, Date.now() - begunAt);
    }
  };
  const pulling = Promise.all(Array.from({ length: MAX_CONCURRENT_ACCOUNTS }, pullNext));
  while (!(await waitAtMost(pulling, UPDATE_INTERVAL_MS))) await updateBusy(runtime, handle);
  await updateBusy(runtime, handle, readAt);
}

/** Ms of the last reading of an account in this process. */
const lastTook = new LRUCache<string, number>({ max: 10_000 });

function effortOf({ account: { status, credentialId } }: Selection): number {
  return status === "DEGRADED" ? Number.MAX_SAFE_INTEGER : (lastTook.get(credentialId) ?? 0);
}

/**
 * Brings busy times to the stored objects of the calendars that are selected now, since the selection may change during a long pull; again
 * if another process stores some meanwhile. Without `at`, the instant of their reading, some are not read yet, and the times age on.
 */
async function updateBusy(runtime: Runtime, handle: string, at?: number): Promise<void> {
  const update = async (): Promise<true | undefined> => (await tryUpdate(runtime, handle, at)) || undefined;
  await retryOnConflict(runtime.redis, keys.busyState(handle), update);
}

/** False if other busy times were stored meanwhile. */
async function tryUpdate(runtime: Runtime, handle: string, at: number | undefined): Promise<boolean> {
  // First, so that whatever is stored after the reads below begin is noticed.
  const [storedAt, last] = await runtime.redis.hmget(keys.busyState(handle), "at", "source");
  const objects = (await selectionsOf(runtime, handle)).flatMap(({ account, busyCalendarIds }) =>
    busyCalendarIds.map((calendarId) => objectsOf(account, calendarId)),
  );
  const source = objects.length === 0 ? undefined : await sourceOf(runtime, objects);
  const busy: BusyInterval[] = [];
  if (source !== last) for (const key of objects) await addBusy(runtime, key, busy);
  const blocks = source === last ? undefined : await othersAmong(runtime, handle, busy);
  return writeBusy(runtime, handle, { blocks, source, last: last ?? "", readAt: at ?? Number(storedAt ?? 0) });
}

/** Adds the busy times of a calendar. One that exceeds the handle's limit is left out and read as a whole next time. */
async function addBusy(runtime: Runtime, key: string, busy: BusyInterval[]): Promise<void> {
  const before = busy.length;
  for await (const objects of storedObjects(runtime, key)) {
    for (const one of objects) busy.push(...one.busy);
    if (busy.length <= MAX_INSTANCES) continue;
    busy.length = before;
    await runtime.redis.del(key);
    runtime.log.warn({ instances: MAX_INSTANCES }, "calendar.instances_exceeded");
    return;
  }
}

/** A digest of the calendar states behind the busy times; an unreachable calendar counts with its last known state. */
async function sourceOf({ redis }: Runtime, objects: string[]): Promise<string> {
  const readings = await pipelined(redis, (pipeline) => {
    for (const key of objects) pipeline.hget(key, readingField);
  });
  const states = readings.map(
    (json) => (JSON.parse((json as string | null) ?? "{}") as Partial<StoredReading>).state ?? "",
  );
  return digest(states.join(" "));
}

/** Without events that this handle's own bookings caused, here or as an invitation: the ledger has their time. */
async function othersAmong(runtime: Runtime, handle: string, busy: BusyInterval[]): Promise<BusyInterval[]> {
  const ending = ownUid(runtime.env, "");
  const uids = [...new Set(busy.map(({ uid }) => uid).filter((uid) => uid.endsWith(ending)))];
  if (uids.length === 0) return busy;
  const found = await pipelined(runtime.redis, (pipeline) => {
    for (const uid of uids) pipeline.exists(keys.booking(handle, uid.slice(0, -ending.length)));
  });
  const own = new Set(uids.filter((_, at) => found[at] === 1));
  return busy.filter(({ uid }) => !own.has(uid));
}

/**
 * Reads the calendars of an account, some at a time. The first failure degrades the account. If the server doesn't respond, its other
 * calendars are skipped, since each would take as long.
 */
async function pullAccount(
  runtime: Runtime,
  { selection, zone }: { selection: Selection; zone: string },
): Promise<void> {
  const { account } = selection;
  const left = [...selection.busyCalendarIds];
  let isHealthy = true;
  const fail = async (failure: Error): Promise<void> => {
    // Failures of Redis and of a stopping process don't count against the provider.
    if (isRedisAway(failure) || runtime.shutdownController.signal.aborted) throw failure;
    if (isHealthy) await updateHealth(runtime, account, failure);
    isHealthy = false;
    if (isSilent(failure)) left.length = 0;
  };
  const readNext = async (): Promise<void> => {
    for (let calendarId = left.shift(); calendarId !== undefined; calendarId = left.shift())
      await readCalendar(runtime, selection, { calendarId, zone }).catch(fail);
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT_READS }, readNext));
  if (isHealthy && account.status !== "OK") await updateHealth(runtime, account, undefined);
}

function isSilent(failure: Error): boolean {
  return failure instanceof CalendarServerError && ["timeout", "unreachable"].includes(failure.reason);
}

/** Updates the stored objects of a calendar to the provider's current state, again if another process stored its reading meanwhile. */
async function readCalendar(
  runtime: Runtime,
  { account, calendars }: Selection,
  { calendarId, zone }: { calendarId: string; zone: string },
): Promise<void> {
  const key = objectsOf(account, calendarId);
  const begins = Math.floor(runtime.now() / PERIOD_MS) * PERIOD_MS;
  const window = { from: begins - LOOK_BACK_MS, to: begins + PERIOD_MS + LOOK_AHEAD_MS, zone };
  for (let readings = 0; readings < MAX_READINGS; readings++) {
    const stored = (await runtime.redis.hget(key, readingField)) ?? "";
    const last = JSON.parse(stored || "{}") as Partial<StoredReading>;
    const isSame = last.from === window.from && last.to === window.to && last.zone === zone;
    const known = isSame && last.mark ? { known: { mark: last.mark, tags: () => tagsIn(runtime, key) } } : {};
    const answer = await calendars.busy(runtime, account, { calendarId, ...window, ...known });
    const isChanged = answer.isWhole || answer.changed.length + answer.removed.length > 0;
    const state = !isChanged && last.state ? last.state : runtime.id("");
    const mark = answer.mark !== null && answer.mark.length > MAX_MARK_LENGTH ? null : answer.mark;
    const reading: StoredReading = { ...window, mark, state };
    if (await writeReading(runtime, account.handle, { key, last: stored, answer, reading })) return;
  }
}

/** Key of a calendar's objects. Servers that know each user's calendars by the same URLs are common. */
function objectsOf({ handle, credentialId }: ProviderAccount, calendarId: string): string {
  return keys.calendarObjects(handle, digest(`${credentialId} ${calendarId}`));
}

const digest = (text: string): string => digestOf(text).slice(0, 22);
