import type { Redis } from "ioredis";
import { retryOnConflict } from "./retry.ts";
import { Fail } from "../platform/errors.ts";
import { cursorAfter, pageOf } from "./paging.ts";
import type { EventJob, Job, Outbox, Runtime } from "../platform/runtime.ts";
import { pipelined } from "./redis.ts";
import { scripts } from "./scripts.ts";

/** Where a versioned record lives: its key, the list that names it, the counter that its changes move; all of one tag. */
export interface RecordKeys {
  tag: string;
  key: string;
  list: string;
  member: string;
  counter: string;
  /** The counter's field, where it is one of a hash. */
  counterField?: string;
}

interface Store {
  redis: Redis;
  queues: Outbox;
}

/** A further string of the same tag that is written with a record, in the same step. */
export interface Companion {
  key: string;
  value: string;
}

/** What a record becomes, and what that causes. */
interface Change<T> {
  expectedVersion?: number | undefined;
  change: (current: T & { version: number }) => T | Promise<T>;
  jobs?: (next: T) => (Job | EventJob)[];
  beside?: (next: T) => Companion;
}

/** A record and its version, or undefined. */
export async function readRecord<T>(redis: Redis, key: string): Promise<(T & { version: number }) | undefined> {
  const [json, version] = await redis.hmget(key, "json", "version");
  return json ? { ...(JSON.parse(json) as T), version: Number(version) } : undefined;
}

/** Writes version 1 of a record with the jobs that it causes; false when there is one already. */
export async function createRecord<T>(
  store: Store,
  place: RecordKeys,
  made: { value: T; at: number; jobs?: Job[]; beside?: Companion },
): Promise<boolean> {
  return (await put(store, place, { ...made, version: 0 })) === "written";
}

/**
 * Replaces a record by what `change` makes of it, atomically: the change is retried on conflict. Returns the
 * new record, undefined when there is none; `version_conflict` with the current version when it isn't the expected one.
 */
export async function changeRecord<T>(
  store: Store,
  place: RecordKeys,
  asked: Change<T>,
): Promise<(T & { version: number }) | undefined> {
  const { record } = await retryOnConflict(store.redis, place.key, () => tryChange(store, place, asked));
  return record;
}

/** Removes a record with the jobs that this causes; false when there was none. */
export async function removeRecord(store: Store, place: RecordKeys, jobs: Job[] = []): Promise<boolean> {
  const removed = await store.queues.step(place.tag, jobs, (outbox, entries) =>
    scripts.dropRecord(store.redis, recordKeys(place, outbox), {
      member: place.member,
      jobs: entries,
      field: place.counterField,
    }),
  );
  return removed === 1;
}

/** One page of the ids of a list, the newest first, and the cursor that goes on. */
export async function listIds(
  { env, redis }: Pick<Runtime, "env" | "redis">,
  list: string,
  input: { limit: number; cursor?: string | undefined },
): Promise<{ ids: string[]; nextCursor: string | null }> {
  const { limit, after } = pageOf(env, input, list);
  const start = after === undefined ? 0 : await rankAfter(redis, list, after);
  const found = await redis.zrevrange(list, start, start + limit, "WITHSCORES");
  const pairs = Array.from(
    { length: found.length / 2 },
    (_, at) => [found[at * 2] as string, found[at * 2 + 1] as string] as const,
  );
  const last = pairs.length > limit ? pairs[limit - 1] : undefined;
  return {
    ids: pairs.slice(0, limit).map(([id]) => id),
    nextCursor: cursorAfter(env, last && `${last[1]} ${last[0]}`, list),
  };
}

/** One page of the records of a list, the newest first. */
export async function listRecords<T>(
  store: Pick<Runtime, "env" | "redis">,
  list: { key: string; record: (id: string) => string },
  input: { limit: number; cursor?: string | undefined },
): Promise<{ records: (T & { version: number })[]; nextCursor: string | null }> {
  const { ids, nextCursor } = await listIds(store, list.key, input);
  return { records: await readRecords<T>(store.redis, ids.map(list.record)), nextCursor };
}

/** Many records in one round trip; those that are gone are left out. */
export async function readRecords<T>(redis: Redis, recordKeys: string[]): Promise<(T & { version: number })[]> {
  if (recordKeys.length === 0) return [];
  const rows = await pipelined(redis, (pipeline) => {
    for (const key of recordKeys) pipeline.hmget(key, "json", "version");
  });
  return (rows as [string | null, string][]).flatMap(([json, version]) =>
    json ? [{ ...(JSON.parse(json) as T), version: Number(version) }] : [],
  );
}

/** The changed record, or that there is none; undefined where another change came between. */
async function tryChange<T>(
  store: Store,
  place: RecordKeys,
  { expectedVersion, change, jobs, beside }: Change<T>,
): Promise<{ record: (T & { version: number }) | undefined } | undefined> {
  const current = await readRecord<T>(store.redis, place.key);
  if (current === undefined) return { record: undefined };
  if ((expectedVersion ?? current.version) !== current.version) throw conflict(current.version);
  const value = await change(current);
  const more = { jobs: jobs?.(value) ?? [], ...(beside ? { beside: beside(value) } : {}) };
  const result = await put(store, place, { value, at: 0, version: current.version, ...more });
  return result === "written" ? { record: { ...value, version: current.version + 1 } } : undefined;
}

interface RecordWrite<T> {
  value: T;
  at: number;
  version: number;
  jobs?: (Job | EventJob)[];
  beside?: Companion;
}

async function put<T>(store: Store, place: RecordKeys, written: RecordWrite<T>): Promise<string> {
  const { beside } = written;
  const companions = beside ? [beside] : [];
  const input = {
    version: written.version,
    json: JSON.stringify({ ...written.value, version: undefined }),
    member: place.member,
    score: written.at,
    status: statusOf(written.value),
    field: place.counterField,
    companions: companions.map(({ value }) => value),
  };
  return store.queues.step(place.tag, written.jobs ?? [], (outbox, jobs) => {
    const places = { ...recordKeys(place, outbox), companions: companions.map(({ key }) => key) };
    return scripts.putRecord(store.redis, places, { ...input, jobs });
  });
}

function recordKeys({ key, list, counter }: RecordKeys, outbox: string) {
  return { record: key, list, counter, outbox };
}

/** The record's status stands beside its JSON too, for those who need nothing else. */
function statusOf(value: unknown): string {
  return String((value as { status?: unknown }).status ?? "");
}

async function rankAfter(redis: Redis, list: string, place: string): Promise<number> {
  const [score = "", member = ""] = place.split(/ (.*)/s);
  const rank = await redis.zrevrank(list, member);
  return rank === null ? redis.zcount(list, `(${score}`, "+inf") : rank + 1;
}

/** `version_conflict` with the version that is there. */
export function conflict(version: number): Fail {
  return new Fail("version_conflict", {
    detail: `The current version is ${version}.`,
    more: { currentVersion: version },
  });
}
