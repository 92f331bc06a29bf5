import type { Redis } from "ioredis";
import type { ErrorCode } from "../../schemas/errors.ts";
import { Fail } from "../platform/errors.ts";
import type { EventJob, Job, Store } from "../platform/runtime.ts";
import { type Listed, type ListInput, listIds } from "./paging.ts";
import { pipelined } from "./redis.ts";
import { retryOnConflict } from "./retry.ts";
import { scripts } from "./scripts.ts";

/** A record with its version, which every change increments. */
export type Versioned<T> = T & { version: number };

/** A kind of records. All of its keys have the handle's tag. */
interface RecordKind {
  record: (handle: string, id: string) => string;
  list: (handle: string) => string;
  /** The failure of `read`. */
  missing: ErrorCode;
  /** Counts the changes of the list's records, for readers that cache them; a string, or a field of a hash. */
  counter?: { key: (handle: string) => string; field?: string };
  /** The slugs of the list's records, and the failure of a record whose slug another one has. */
  slugs?: { key: (handle: string) => string; taken: () => Fail };
}

/** A further string of the same tag that is written in the same step. */
export interface Companion {
  key: string;
  value: string;
}

interface NewRecord<T> {
  id: string;
  value: T;
  /** Ms by which the list is ordered. */
  at: number;
  jobs?: (Job | EventJob)[];
  companion?: Companion;
  /** Most records of the list, and the detail of the failure if it is full. */
  max?: number;
  full?: string;
}

interface Change<T> {
  id: string;
  expectedVersion?: number | undefined;
  /** The next record; undefined if it stays as it is, and nothing is written. */
  change: (current: Versioned<T>) => T | undefined | Promise<T | undefined>;
  /** The jobs of the change, made of the record after it and before it. */
  jobs?: (next: Versioned<T>, before: Versioned<T>) => (Job | EventJob)[];
  companion?: (next: T) => Companion;
}

export class Records<T> {
  readonly #kind: RecordKind;

  constructor(kind: RecordKind) {
    this.#kind = kind;
  }

  find({ redis }: Store, handle: string, id: string): Promise<Versioned<T> | undefined> {
    return readRecord<T>(redis, this.#kind.record(handle, id));
  }

  /** A record; fails if there is none. */
  read({ redis }: Store, handle: string, id: string): Promise<Versioned<T>> {
    return requireRecord<T>(redis, this.#kind.record(handle, id), this.#kind.missing);
  }

  /** All records of a handle, oldest first. */
  async all(store: Store, handle: string): Promise<Versioned<T>[]> {
    return this.named(store, handle, await store.redis.zrange(this.#kind.list(handle), 0, "-1"));
  }

  /** The records of these ids in one round trip, without missing ones. */
  named({ redis }: Store, handle: string, ids: string[]): Promise<Versioned<T>[]> {
    return readRecords<T>(redis, ids, (id) => this.#kind.record(handle, id));
  }

  /** One page of a handle's records, newest first. */
  async list(store: Store, input: ListInput): Promise<Listed<"records", Versioned<T>>> {
    const { ids, nextCursor } = await listIds(store, this.#kind.list(input.handle), input);
    return { records: await this.named(store, input.handle, ids), nextCursor };
  }

  /** Writes version 1 of a record with its jobs; false if it already exists. If its list is full: `invalid_request`, or false without `full`. */
  async create(store: Store, handle: string, record: NewRecord<T>): Promise<boolean> {
    const result = await this.#put(store, handle, { ...record, version: 0 });
    if (result === "full" && record.full) throw new Fail("invalid_request", { detail: record.full });
    return result === "written";
  }

  /**
   * Replaces a record atomically by the result of `change`, and retries on conflict. Returns the current record; undefined if there is none;
   * `version_conflict` with the current version if it differs from the expected one.
   */
  async change(store: Store, handle: string, change: Change<T>): Promise<Versioned<T> | undefined> {
    const key = this.#kind.record(handle, change.id);
    const { record } = await retryOnConflict(store.redis, key, () => this.#tryChange(store, handle, change));
    return record;
  }

  /** Removes a record; false if there was none. */
  async remove({ redis }: Store, handle: string, id: string): Promise<boolean> {
    const input = { member: id, field: this.#kind.counter?.field };
    return (await scripts.dropRecord(redis, this.#scriptKeys(handle, id), input)) === 1;
  }

  /** The current record, or that there is none; undefined after a conflicting change. */
  async #tryChange(
    store: Store,
    handle: string,
    { id, expectedVersion, change, jobs, companion }: Change<T>,
  ): Promise<{ record: Versioned<T> | undefined } | undefined> {
    const current = await this.find(store, handle, id);
    if (current === undefined) return { record: undefined };
    const { version } = current;
    if ((expectedVersion ?? version) !== version) throw conflict(version);
    const value = await change(current);
    if (value === undefined) return { record: current };
    const next: Versioned<T> = { ...value, version: version + 1 };
    const more = { jobs: jobs?.(next, current) ?? [], ...(companion ? { companion: companion(value) } : {}) };
    const result = await this.#put(store, handle, { id, value, at: 0, version, ...more });
    return result === "written" ? { record: next } : undefined;
  }

  async #put(store: Store, handle: string, written: Versioned<NewRecord<T>>): Promise<string> {
    const { id: member, value, version, at: score, jobs = [], companion, max } = written;
    const { counter, slugs } = this.#kind;
    const json = JSON.stringify({ ...value, version: undefined });
    const record = { version, json, member, score, ...lookupFields(value, slugs) };
    const input = { ...record, field: counter?.field, companion: companion?.value, max };
    const result = await store.queues.step(handle, jobs, (outbox, entries) => {
      const scriptKeys = this.#scriptKeys(handle, member);
      const all = { ...scriptKeys, outbox, companion: companion?.key ?? scriptKeys.record };
      return scripts.putRecord(store.redis, all, { ...input, jobs: entries });
    });
    if (result === "taken" && slugs) throw slugs.taken();
    return result;
  }

  /** Without a counter or slugs their key is that of the list, which the scripts then leave alone. */
  #scriptKeys(handle: string, id: string) {
    const { record, list, counter, slugs } = this.#kind;
    const others = { counter: (counter?.key ?? list)(handle), slugs: (slugs?.key ?? list)(handle) };
    return { record: record(handle, id), list: list(handle), ...others };
  }
}

export async function readRecord<T>(redis: Redis, key: string): Promise<Versioned<T> | undefined> {
  const [record] = recordsIn<T>([key], [await redis.hmget(key, "json", "version")]);
  return record;
}

/** A record and its version; fails with a code if there is none. */
export async function requireRecord<T>(redis: Redis, key: string, code: ErrorCode): Promise<Versioned<T>> {
  const record = await readRecord<T>(redis, key);
  if (record === undefined) throw new Fail(code);
  return record;
}

/** The records of these ids in one round trip, without missing ones; `record` gives the key of an id. */
export async function readRecords<T>(
  redis: Redis,
  ids: string[],
  record: (id: string) => string,
): Promise<Versioned<T>[]> {
  if (ids.length === 0) return [];
  const rows = await pipelined(redis, (pipeline) => {
    for (const id of ids) pipeline.hmget(record(id), "json", "version");
  });
  return recordsIn(ids.map(record), rows as (string | null)[][]);
}

/** The records of replies with the fields json and version. */
function recordsIn<T>(keys: string[], rows: (string | null)[][]): Versioned<T>[] {
  return rows.flatMap(([json, version], at) =>
    json ? [{ ...parseStored<T>(keys[at] as string, json), version: Number(version) }] : [],
  );
}

/** A stored value; throws the key of a broken one, not its content. */
export function parseStored<T>(key: string, json: string): T {
  try {
    return JSON.parse(json) as T;
  } catch {
    throw new Error(`The record ${key} is no JSON.`);
  }
}

/** Status and slug are also stored next to the JSON: the status for readers that need nothing else. */
function lookupFields(value: unknown, slugs: RecordKind["slugs"]): { status: string; slug: string | undefined } {
  const { status = "", slug } = value as { status?: unknown; slug?: string };
  return { status: String(status ?? ""), slug: slugs && slug };
}

/** `version_conflict` with the current version. */
export function conflict(version: number): Fail {
  return new Fail("version_conflict", {
    detail: `The resource has changed: its version is ${version}. Read it again and retry.`,
    more: { currentVersion: version },
  });
}
