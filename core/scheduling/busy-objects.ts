import type { Redis } from "ioredis";
import {
  type BusyAnswer,
  type BusyInterval,
  type BusyObject,
  CalendarServerError,
} from "../engines/calendars/calendars.ts";
import { chunksOf } from "../platform/chunks.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { transact } from "../store/redis.ts";

/** Lifetime of a calendar's stored objects in seconds. */
const OBJECTS_TTL_SECONDS = 30 * 86_400;
/** Most stored objects per calendar. */
const MAX_OBJECTS = 40_000;
/** Objects per batch, so that a large calendar doesn't block the event loop. */
const BATCH_SIZE = 250;
/** The field next to the objects; no object has an empty name. */
export const readingField = "";

/** The last reading of a calendar: the provider's mark, with its window and zone. */
export interface Reading {
  mark: string | null;
  from: number;
  to: number;
  zone: string;
  /** Changes with each change of the objects. */
  state: string;
}

interface Change {
  key: string;
  answer: BusyAnswer;
  reading: Reading;
}

/** Everything is new: written to a new key, which then replaces the old one in one step. */
export async function replaceObjects(runtime: Runtime, handle: string, change: Change): Promise<void> {
  const draft = keys.calendarDraft(handle, runtime.id(""));
  try {
    await changeObjects(runtime, { ...change, key: draft });
  } catch (error) {
    await runtime.redis.del(draft);
    throw error;
  }
  await runtime.redis.rename(draft, change.key);
}

/** The mark comes last: objects may be newer than it, because then they are read again, but never older. */
export async function changeObjects({ redis }: Runtime, { key, answer, reading }: Change): Promise<void> {
  for (const some of chunksOf(answer.removed, BATCH_SIZE)) await redis.hdel(key, ...some);
  if ((await redis.hlen(key)) + answer.changed.length > MAX_OBJECTS) await giveUp(redis, key);
  const write = (fields: string[]) =>
    transact(redis, (transaction) => {
      transaction.hset(key, ...fields).expire(key, OBJECTS_TTL_SECONDS);
    });
  for (const some of chunksOf(answer.changed, BATCH_SIZE))
    await write(some.flatMap((one) => [one.objectId, packed(one)]));
  await write([readingField, JSON.stringify(reading)]);
}

/** Gives up on a calendar that is too large. Its last state stays, and it is read as a whole next time. */
async function giveUp(redis: Redis, key: string): Promise<never> {
  await redis.hdel(key, readingField);
  throw new CalendarServerError("limit", `The calendar has more than ${MAX_OBJECTS} events.`);
}

/** Tag, and for each uid its times in sequence. */
type Packed = [tag: string, ...series: [uid: string, ...times: number[]][]];

function packed({ tag, taken }: BusyObject): string {
  const series = new Map<string, number[]>();
  for (const { uid, from, to } of taken) {
    const times = series.get(uid) ?? [];
    times.push(from, to);
    series.set(uid, times);
  }
  return JSON.stringify([tag, ...[...series].map(([uid, times]) => [uid, ...times])]);
}

function unpacked(objectId: string, json: string): BusyObject {
  const [tag, ...series] = JSON.parse(json) as Packed;
  const taken = series.flatMap(([uid, ...times]) =>
    Array.from({ length: times.length / 2 }, (_, at): BusyInterval => {
      return { uid, from: times[at * 2] as number, to: times[at * 2 + 1] as number };
    }),
  );
  return { objectId, tag, taken };
}

/** The tags of the stored objects by their ids. */
export async function tagsIn(runtime: Runtime, key: string): Promise<Map<string, string>> {
  const tags = new Map<string, string>();
  for await (const objects of keptObjects(runtime, key))
    for (const { objectId, tag } of objects) tags.set(objectId, tag);
  return tags;
}

/** The stored objects of a calendar, batch by batch. */
export async function* keptObjects({ redis }: Runtime, key: string): AsyncIterable<BusyObject[]> {
  let cursor = "0";
  do {
    const [next, flat] = await redis.hscan(key, cursor, "COUNT", BATCH_SIZE);
    const names = flat.filter((_, at) => at % 2 === 0);
    yield names.flatMap((name, at) => (name === readingField ? [] : unpacked(name, flat[at * 2 + 1] as string)));
    cursor = next;
  } while (cursor !== "0");
}
