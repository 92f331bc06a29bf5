import { Buffer } from "node:buffer";
import type { ChainableCommander, Redis } from "ioredis";
import * as s from "../../schemas/schema.ts";
import { batchesOf } from "../platform/batches.ts";

/** Text for valid UTF-8, else the bytes in base64. */
const value = s.either(s.string(), s.object({ base64: s.string() }));
export type Value = s.Infer<typeof value>;
const values = s.array(value);
/** An entry of a stream: its id, and names that alternate with values. */
type StreamEntry = [id: string, fields: Value[]];
const streamId = s.string({ pattern: "^\\d{1,19}-\\d{1,19}$" });
const fields = s.array(value, { minItems: 2 });

/** Changes a text of a value. */
export type Rename = (text: string) => string;

/** Members of a key per command. */
const MEMBER_BATCH = 500;

/**
 * One type of Redis value: its form in an export, what else Redis demands of it, and how it is read and written. A zset is a list of
 * members alternating with scores.
 */
interface ValueType {
  form: s.Schema<unknown>;
  isWhole?(value: never): boolean;
  read(redis: Redis, key: string): Promise<unknown>;
  write(pipeline: ChainableCommander, key: string, value: never, rename: Rename): unknown;
}

export const valueTypes: Readonly<Record<string, ValueType>> = {
  string: {
    form: value,
    read: (redis, key) => redis.getBuffer(key),
    write: (pipeline, key, one: Value, rename) => pipeline.set(key, bytesOf(one, rename)),
  },
  list: {
    form: values,
    read: (redis, key) => redis.lrangeBuffer(key, 0, -1),
    write: (pipeline, key, list: Value[], rename) => batches(list, rename).map((some) => pipeline.rpush(key, ...some)),
  },
  set: {
    form: values,
    read: (redis, key) => redis.smembersBuffer(key),
    write: (pipeline, key, list: Value[], rename) => batches(list, rename).map((some) => pipeline.sadd(key, ...some)),
  },
  zset: {
    form: values,
    isWhole: (list: Value[]) => list.length % 2 === 0 && list.every((one, at) => at % 2 === 0 || isScore(one)),
    read: (redis, key) => redis.zrangeBuffer(key, "0", "-1", "WITHSCORES"),
    // Redis expects the score first.
    write: (pipeline, key, list: Value[], rename) =>
      batches(list, rename).map((some) => pipeline.zadd(key, ...batchesOf(some, 2).flatMap((pair) => pair.reverse()))),
  },
  hash: {
    form: s.map(value),
    read: (redis, key) => redis.hgetallBuffer(key),
    write: (pipeline, key, fields: Record<string, Value>, rename) =>
      batches(Object.entries(fields).flat(), rename).map((some) => pipeline.hset(key, ...some)),
  },
  stream: {
    form: s.array({ type: "array", prefixItems: [streamId, fields], items: false, minItems: 2, maxItems: 2 }),
    isWhole: (entries: StreamEntry[]) => entries.every(isNextEntry),
    read: (redis, key) => redis.xrangeBuffer(key, "-", "+"),
    write: (pipeline, key, entries: StreamEntry[], rename) =>
      entries.map(([id, fields]) => pipeline.xadd(key, id, ...fields.map((one) => bytesOf(one, rename)))),
  },
};

/** True for a number as Redis writes it; JavaScript takes the empty text for one, too. */
function isScore(one: Value): boolean {
  return typeof one === "string" && /^-?\d+(\.\d+)?(e[+-]?\d+)?$/.test(one) && Number.isFinite(Number(one));
}

/** True for an entry with whole pairs and a greater id than the one before it. */
function isNextEntry([id, fields]: StreamEntry, at: number, entries: StreamEntry[]): boolean {
  const [ms, sequence] = partsOf(id);
  const [lastMs, lastSequence] = partsOf(entries[at - 1]?.[0] ?? "0-0");
  return fields.length % 2 === 0 && (ms > lastMs || (ms === lastMs && sequence > lastSequence));
}

function partsOf(id: string): [ms: bigint, sequence: bigint] {
  return id.split("-").map(BigInt) as [bigint, bigint];
}

/** A reply of Redis in a form that JSON can represent. */
export function toPlainValue(reply: unknown): unknown {
  if (Buffer.isBuffer(reply)) return textOrBase64(reply);
  if (Array.isArray(reply)) return reply.map(toPlainValue);
  if (typeof reply !== "object" || reply === null) return reply;
  return Object.fromEntries(Object.entries(reply).map(([name, one]) => [name, toPlainValue(one)]));
}

function textOrBase64(bytes: Buffer): Value {
  const text = bytes.toString("utf8");
  return Buffer.from(text, "utf8").equals(bytes) ? text : { base64: bytes.toString("base64") };
}

/** Values as Redis commands take them, in batches. */
function batches(list: Value[], rename: Rename): (string | Buffer)[][] {
  return batchesOf(list, MEMBER_BATCH).map((some) => some.map((one) => bytesOf(one, rename)));
}

function bytesOf(one: Value, rename: Rename): string | Buffer {
  return typeof one === "string" ? rename(one) : Buffer.from(one.base64, "base64");
}
