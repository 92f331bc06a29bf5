import type { Redis } from "ioredis";
import {
  type BusyAnswer,
  type BusyInterval,
  type BusyObject,
  CalendarServerError,
} from "../engines/calendars/calendars.ts";
import { batchesOf } from "../platform/batches.ts";
import type { Interval } from "../platform/clock.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { pairsOf, transact } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";

/** Lifetime of a calendar's stored objects in seconds, and of the draft of a crashed process. */
const OBJECTS_TTL_SECONDS = 30 * 86_400;
const DRAFT_TTL_SECONDS = 3600;
/** Most stored objects per calendar. */
const MAX_OBJECTS = 40_000;
/** Objects per batch, so that a large calendar doesn't block the event loop. */
const BATCH_SIZE = 250;
/** The field next to the objects; no object has an empty name. */
export const readingField = "";

/** The last reading of a calendar: the provider's mark, with its window and zone. */
export interface StoredReading extends Interval {
  mark: string | null;
  zone: string;
  /** Changes with each change of the objects. */
  state: string;
}

/** What a reading found, and the reading that was stored when it started, as JSON; empty without one. */
interface ReadingWrite {
  key: string;
  last: string;
  answer: BusyAnswer;
  reading: StoredReading;
}

/**
 * Stores a reading with its objects in one step, by a draft. False if another reading was stored since this one started: that may be
 * newer, and this one is dropped.
 */
export async function writeReading(runtime: Runtime, handle: string, change: ReadingWrite): Promise<boolean> {
  const { redis } = runtime;
  const { key, last, answer } = change;
  const { isWhole, removed, changed } = answer;
  const others = isWhole ? 0 : (await redis.hlen(key)) - removed.length;
  if (others + changed.length > MAX_OBJECTS) {
    // Its last state stays, and it is read as a whole next time.
    await redis.hdel(key, readingField);
    throw new CalendarServerError("limit", `The calendar has more than ${MAX_OBJECTS} events.`);
  }
  const draft = keys.calendarDraft(handle, runtime.id(""));
  try {
    await writeDraft(redis, draft, change);
    const input = { last, isWhole, removed, keepSeconds: OBJECTS_TTL_SECONDS };
    return (await scripts.writeReading(redis, { objects: key, draft }, input)) === "written";
  } catch (error) {
    // It may be what fills Redis: until it expired, every other write would be refused too.
    await redis.del(draft);
    throw error;
  }
}

async function writeDraft(redis: Redis, draft: string, { answer, reading }: ReadingWrite): Promise<void> {
  const write = (fields: string[]) =>
    transact(redis, (transaction) => {
      transaction.hset(draft, ...fields).expire(draft, DRAFT_TTL_SECONDS);
    });
  for (const some of batchesOf(answer.changed, BATCH_SIZE))
    await write(some.flatMap((one) => [one.objectId, packed(one)]));
  await write([readingField, JSON.stringify(reading)]);
}

/** Tag, and for each uid its times in sequence. */
type Packed = [tag: string, ...series: [uid: string, ...times: number[]][]];

function packed({ tag, busy }: BusyObject): string {
  const series = new Map<string, number[]>();
  for (const { uid, from, to } of busy) {
    const times = series.get(uid) ?? [];
    times.push(from, to);
    series.set(uid, times);
  }
  return JSON.stringify([tag, ...[...series].map(([uid, times]) => [uid, ...times])]);
}

function unpacked(objectId: string, json: string): BusyObject {
  const [tag, ...series] = JSON.parse(json) as Packed;
  const busy = series.flatMap(([uid, ...times]) =>
    (batchesOf(times, 2) as [number, number][]).map(([from, to]): BusyInterval => ({ uid, from, to })),
  );
  return { objectId, tag, busy };
}

/** The tags of the stored objects by their ids. */
export async function tagsIn(runtime: Runtime, key: string): Promise<Map<string, string>> {
  const tags = new Map<string, string>();
  for await (const objects of storedObjects(runtime, key))
    for (const { objectId, tag } of objects) tags.set(objectId, tag);
  return tags;
}

/** The stored objects of a calendar, batch by batch. */
export async function* storedObjects({ redis }: Runtime, key: string): AsyncIterable<BusyObject[]> {
  let cursor = "0";
  do {
    const [next, flat] = await redis.hscan(key, cursor, "COUNT", BATCH_SIZE);
    yield pairsOf(flat).flatMap(([name, json]) => (name === readingField ? [] : unpacked(name, json)));
    cursor = next;
  } while (cursor !== "0");
}
