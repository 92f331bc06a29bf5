import type { Redis } from "ioredis";
import type { StoredBooking } from "../../schemas/scheduling.ts";
import { batchesOf } from "../platform/batches.ts";
import { day, type Interval, minute } from "../platform/clock.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { transact } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";
import { versionedCache } from "../store/versioned-cache.ts";

/** The time of a booking with its buffers, in ms. */
interface BookedTime extends Interval {
  /** Ms at which an unpaid hold expires; 0 for none. */
  hold: number;
  start: number;
  eventTypeId: string;
  bookingUid: string;
}

/** A handle's booked and busy times around a window. */
export interface Times {
  blocks: BookedTime[];
  /** Busy time of the selected calendars. */
  busy: Interval[];
}

/** The block of a booking with its buffers, in ms, and its member in the index, as `parsed` reads it. */
export function blockOf(booking: StoredBooking): Interval & { member: string } {
  const { buffers, eventTypeId, bookingUid } = booking;
  const start = Date.parse(booking.start);
  const from = start - buffers.beforeMinutes * minute;
  const to = Date.parse(booking.end) + buffers.afterMinutes * minute;
  const hold = booking.status === "PENDING_PAYMENT" ? Date.parse(booking.holdUntil as string) : 0;
  return { member: [from, to, hold, start, eventTypeId, bookingUid].join(":"), from, to };
}

/** Bytes of times that a process caches, and the approximate bytes of a block and of a busy time. */
const MAX_CACHED_BYTES = 32 * 2 ** 20;
const BLOCK_BYTES = 250;
const BUSY_BYTES = 48;
const timesOf = versionedCache<Times>(
  MAX_CACHED_BYTES,
  ({ blocks, busy }) => blocks.length * BLOCK_BYTES + busy.length * BUSY_BYTES,
);

/** Booked and busy times of an interval, cached in the process; `state` is that of the handle. */
export async function cachedTimes(redis: Redis, handle: string, query: Interval & { state: string }): Promise<Times> {
  // Whole days, so that the windows of many visitors share the cache.
  const from = Math.floor(query.from / day) * day;
  const to = Math.ceil(query.to / day) * day;
  return timesOf(redis).get(`${handle} ${from} ${to}`, query.state, () => readTimes(redis, handle, { from, to }));
}

/** Booked and busy times in [from, to). Neither blocks nor busy times overlap: of the earlier ones only the last may reach in. */
export async function readTimes(redis: Redis, handle: string, { from, to }: Interval): Promise<Times> {
  const before = [`(${from}`, "-inf", "BYSCORE", "REV", "LIMIT", 0, 1] as const;
  const within = [from, `(${to}`, "BYSCORE"] as const;
  const [lastBlock, blocks, lastBusy, busy] = await Promise.all([
    redis.zrange(keys.blocks(handle), ...before),
    redis.zrange(keys.blocks(handle), ...within),
    redis.zrange(keys.busy(handle), ...before),
    redis.zrange(keys.busy(handle), ...within),
  ]);
  const busyTimes = [...lastBusy, ...busy].map(parsed).map(({ from, to }) => ({ from, to }));
  return { blocks: [...lastBlock, ...blocks].map(parsed), busy: busyTimes };
}

/** A reading of the calendars that are selected. */
interface BusyReading {
  /** Busy time without that of own bookings that a calendar echoes; absent: the stored one is current. */
  blocks?: readonly Interval[] | undefined;
  /** Real ms. */
  readAt: number;
  /** What identifies the calendar states; absent if no calendar is selected. */
  source?: string | undefined;
  /** The stored source before the reading, "" without any; absent: whatever it is. */
  last?: string | undefined;
}

/**
 * Replaces the busy times of a handle in one step, or confirms them; overlapping ones are merged. False, without a change, if others were
 * stored since the reading began: they may be newer.
 */
export async function writeBusy(
  { redis, id }: Pick<Runtime, "redis" | "id">,
  handle: string,
  { blocks, ...reading }: BusyReading,
): Promise<boolean> {
  const merged = blocks && mergedBlocks(blocks);
  const draft = keys.busyDraft(handle, id(""));
  for (const some of batchesOf(merged ?? [], BATCH_SIZE)) {
    const members = some.flatMap(({ from, to }) => [from, `${from}:${to}`]);
    await transact(redis, (transaction) => {
      transaction.zadd(draft, ...members).expire(draft, DRAFT_TTL_SECONDS);
    });
  }
  const change = merged === undefined ? "confirm" : merged.length > 0 ? "replace" : "empty";
  const state = { busy: keys.busy(handle), state: keys.busyState(handle), times: keys.timesVersion(handle) };
  return (await scripts.writeBusy(redis, { ...state, draft }, { ...reading, change })) === "written";
}

/** Busy times per batch, and seconds after which those of a crashed process expire. */
const BATCH_SIZE = 1000;
const DRAFT_TTL_SECONDS = 60;

function parsed(member: string): BookedTime {
  const [from, to, hold, start, eventTypeId = "", bookingUid = ""] = member.split(":");
  return { from: Number(from), to: Number(to), hold: Number(hold), start: Number(start), eventTypeId, bookingUid };
}

function mergedBlocks(blocks: readonly Interval[]): Interval[] {
  const merged: Interval[] = [];
  for (const { from, to } of blocks.filter(({ from, to }) => to > from).sort((one, other) => one.from - other.from)) {
    const last = merged.at(-1);
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else merged.push({ from, to });
  }
  return merged;
}
