import type { Redis } from "ioredis";
import type { ErrorCode } from "../../schemas/errors.ts";
import { Fail } from "../platform/errors.ts";
import type { EventJob, Job, Outbox, Runtime } from "../platform/runtime.ts";
import { cursorAfter, pageOf } from "./paging.ts";
import { pairsOf, pipelined } from "./redis.ts";
import { retryOnConflict } from "./retry.ts";
import { scripts } from "./scripts.ts";

/** The keys of a versioned record: its own, its list, and the counter of its changes; all of one hash tag. */
export interface RecordKeys {
  tag: string;
  key: string;
  list: string;
  member: string;
  counter: string;
  /** The counter's field, if it is in a hash. */
  counterField?: string;
  /** The slugs of the list's records, if they have any, and the failure of a record whose slug another one has. */
  slugs?: { key: string; taken: () => Fail };
}

/** The keys of a handle's record by its id. */
type Places = (handle: string, member: string) => RecordKeys;

/** The keys of a kind of records, by those of one record, of their list, and of the counter of their changes. */
export function placesOf(record: KeyOf<[string, string]>, list: KeyOf<[string]>, counter: KeyOf<[string]>): Places {
  return (tag, member) => ({ tag, key: record(tag, member), list: list(tag), member, counter: counter(tag) });
}

type KeyOf<A extends string[]> = (...parts: A) => string;

interface Store {
  redis: Redis;
  queues: Outbox;
}

/** A further string of the same tag that is written in the same step. */
export interface Companion {
  key: string;
  value: string;
}

/** A change of a record and its jobs. */
interface Change<T> {
  expectedVersion?: number | undefined;
  /** The next record; undefined if it stays as it is, and nothing is written. */
  change: (current: T & { version: number }) => T | undefined | Promise<T | undefined>;
  jobs?: (next: T, before: T) => (Job | EventJob)[];
  beside?: (next: T) => Companion;
}

/** A record and its version, or undefined. */
export async function readRecord<T>(redis: Redis, key: string): Promise<(T & { version: number }) | undefined> {
  const [record] = recordsIn<T>([await redis.hmget(key, "json", "version")]);
  return record;
}

/** A record and its version; fails with a code if there is none. */
export async function requireRecord<T>(redis: Redis, key: string, code: ErrorCode): Promise<T & { version: number }> {
  const record = await readRecord<T>(redis, key);
  if (record === undefined) throw new Fail(code);
  return record;
}

/** Writes version 1 of a record with its jobs; false if it already exists, or if its list has `max` records. */
export async function createRecord<T>(
  store: Store,
  place: RecordKeys,
  made: Omit<RecordWrite<T>, "version">,
): Promise<boolean> {
  return (await put(store, place, { ...made, version: 0 })) === "written";
}

/**
 * Replaces a record atomically by the result of `change`, and retries on conflict. Returns the current record; undefined if there is none;
 * `version_conflict` with the current version if it differs from the expected one.
 */
export async function changeRecord<T>(
  store: Store,
  place: RecordKeys,
  asked: Change<T>,
): Promise<(T & { version: number }) | undefined> {
  const { record } = await retryOnConflict(store.redis, place.key, () => tryChange(store, place, asked));
  return record;
}

/** Removes a record; false if there was none. */
export async function removeRecord({ redis }: Pick<Runtime, "redis">, place: RecordKeys): Promise<boolean> {
  const { member, counterField: field } = place;
  return (await scripts.dropRecord(redis, scriptKeys(place), { member, field })) === 1;
}

/** One page of the ids of a list, newest first, and the cursor of the next page. */
export async function listIds(
  { env, redis }: Pick<Runtime, "env" | "redis">,
  list: string,
  input: { limit: number; cursor?: string | undefined },
): Promise<{ ids: string[]; nextCursor: string | null }> {
  const { limit, after } = pageOf(env, input, list);
  const start = after === undefined ? 0 : await rankAfter(redis, list, after);
  const found = await redis.zrevrange(list, start, start + limit, "WITHSCORES");
  const pairs = pairsOf(found);
  const last = pairs.length > limit ? pairs[limit - 1] : undefined;
  return {
    ids: pairs.slice(0, limit).map(([id]) => id),
    nextCursor: cursorAfter(env, last && `${last[1]} ${last[0]}`, list),
  };
}

/** One page of a handle's records of a kind, newest first. */
export async function listRecords<T>(
  store: Pick<Runtime, "env" | "redis">,
  placeOf: Places,
  input: { handle: string; limit: number; cursor?: string | undefined },
): Promise<{ records: (T & { version: number })[]; nextCursor: string | null }> {
  const { ids, nextCursor } = await listIds(store, placeOf(input.handle, "").list, input);
  const records = await readRecords<T>(store.redis, ids, (id) => placeOf(input.handle, id).key);
  return { records, nextCursor };
}

/** All records of a list, oldest first; `record` gives the key of an id. */
export async function allRecords<T>(
  redis: Redis,
  list: string,
  record: (id: string) => string,
): Promise<(T & { version: number })[]> {
  return readRecords<T>(redis, await redis.zrange(list, 0, "-1"), record);
}

/** The records of these ids in one round trip, without missing ones; `record` gives the key of an id. */
export async function readRecords<T>(
  redis: Redis,
  ids: string[],
  record: (id: string) => string,
): Promise<(T & { version: number })[]> {
  if (ids.length === 0) return [];
  const rows = await pipelined(redis, (pipeline) => {
    for (const id of ids) pipeline.hmget(record(id), "json", "version");
  });
  return recordsIn(rows as (string | null)[][]);
}

/** The records of replies with the fields json and version. */
function recordsIn<T>(rows: (string | null)[][]): (T & { version: number })[] {
  return rows.flatMap(([json, version]) => (json ? [{ ...(JSON.parse(json) as T), version: Number(version) }] : []));
}

/** The current record, or that there is none; undefined after a conflicting change. */
async function tryChange<T>(
  store: Store,
  place: RecordKeys,
  { expectedVersion, change, jobs, beside }: Change<T>,
): Promise<{ record: (T & { version: number }) | undefined } | undefined> {
  const current = await readRecord<T>(store.redis, place.key);
  if (current === undefined) return { record: undefined };
  if ((expectedVersion ?? current.version) !== current.version) throw conflict(current.version);
  const value = await change(current);
  if (value === undefined) return { record: current };
  const more = { jobs: jobs?.(value, current) ?? [], ...(beside ? { beside: beside(value) } : {}) };
  const result = await put(store, place, { value, at: 0, version: current.version, ...more });
  return result === "written" ? { record: { ...value, version: current.version + 1 } } : undefined;
}

interface RecordWrite<T> {
  value: T;
  at: number;
  version: number;
  jobs?: (Job | EventJob)[];
  beside?: Companion;
  /** Most records of the list, for a new one. */
  max?: number;
}

async function put<T>(store: Store, place: RecordKeys, written: RecordWrite<T>): Promise<string> {
  const { beside } = written;
  const input = {
    version: written.version,
    json: JSON.stringify({ ...written.value, version: undefined }),
    member: place.member,
    score: written.at,
    ...lookupFields(written.value, place),
    field: place.counterField,
    companion: beside?.value,
    max: written.max,
  };
  const result = await store.queues.step(place.tag, written.jobs ?? [], (outbox, jobs) => {
    const places = { ...scriptKeys(place), outbox, companion: beside?.key ?? place.key };
    return scripts.putRecord(store.redis, places, { ...input, jobs });
  });
  if (result === "taken" && place.slugs) throw place.slugs.taken();
  return result;
}

/** A key that a kind of records doesn't have is that of the list, which the scripts then leave alone. */
function scriptKeys({ key: record, list, counter, slugs }: RecordKeys) {
  return { record, list, counter, slugs: slugs?.key ?? list };
}

/** Status and slug are also stored next to the JSON: the status for readers that need nothing else. */
function lookupFields(value: unknown, { slugs }: RecordKeys): { status: string; slug: string | undefined } {
  const { status = "", slug } = value as { status?: unknown; slug?: string };
  return { status: String(status ?? ""), slug: slugs && slug };
}

/** The rank in a list, newest first, of what follows a position, `score member`; also if that member is gone. */
export async function rankAfter(redis: Redis, list: string, place: string): Promise<number> {
  const [score = "", member = ""] = place.split(/ (.*)/s);
  const rank = await redis.zrevrank(list, member);
  return rank === null ? redis.zcount(list, `(${score}`, "+inf") : rank + 1;
}

/** `version_conflict` with the current version. */
export function conflict(version: number): Fail {
  return new Fail("version_conflict", {
    detail: `The current version is ${version}.`,
    more: { currentVersion: version },
  });
}
