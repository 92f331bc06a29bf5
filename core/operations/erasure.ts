import { Buffer } from "node:buffer";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { DIRTY_SHARDS, isOfHandle, keys } from "../store/keys.ts";
import { mastersOf, pipelined } from "../store/redis.ts";
import type { Runtime } from "../platform/runtime.ts";
import { disconnectAll } from "../scheduling/face.ts";
import { domainsOf, mustExist, setHandleActive } from "../account/face.ts";
import { removeJobs } from "./handle-jobs.ts";

/** Text for valid UTF-8, else the bytes in base64. */
export type Value = string | { base64: string };

/** One key of a handle. `value` follows the key's type; a zset alternates members and scores. */
export interface ExportedKey {
  key: string;
  type: string;
  /** Milliseconds until the key expires, or null. */
  expiresInMs: number | null;
  value: unknown;
}

type Store = Pick<Runtime, "redis">;

/** Keys per round trip. */
const batch = 200;
/** Ms after which a running step has finished its writes. */
const settles = 500;

/** Every key of a handle with its value; `not_found` for an unknown handle. Scans the whole key space, so no request may call it. */
export async function* exportHandle({ redis }: Store, handle: string): AsyncGenerator<ExportedKey> {
  await mustExist(redis, handle);
  for await (const found of keysOf(redis, handle)) for (const key of found) yield* await exported(redis, key);
}

/**
 * Removes everything that belongs to a handle: its keys, its jobs, its memberships and its account's references to it. Revokes its grants
 * at providers that answer. The handle is deactivated first and its record is removed last, so that an interrupted run can be repeated.
 * Runs of answers have their own tag and expire within ten minutes. Returns the number of removed keys, and the providers that did not
 * revoke their grants.
 */
export async function eraseHandle(
  runtime: Runtime,
  handle: string,
): Promise<{ handle: string; keys: number; grantsLeft: string[] }> {
  const { redis } = runtime;
  await mustExist(redis, handle);
  await setHandleActive(redis, handle, false);
  const grantsLeft = await disconnectAll(runtime, handle);
  let removed = 0;
  // Steps that were running at the deactivation may still write: repeat until two passes find nothing.
  for (let quiet = 0; quiet < 2; await sleep(settles)) {
    const names = await removeKeys(redis, handle);
    const others = (await removeJobs(runtime, handle)) + (await leaveLines(redis, handle));
    quiet = names + others === 0 ? quiet + 1 : 0;
    removed += names;
  }
  await unlink(redis, handle);
  return { handle, keys: removed + (await redis.del(keys.handle(handle))), grantsLeft };
}

/** Removes the handle from the fair queues and from the sweeper's list. */
async function leaveLines(redis: Redis, handle: string): Promise<number> {
  const shards = Array.from({ length: DIRTY_SHARDS }, (_, shard) => keys.dirty(shard));
  const lines = [keys.emailTurns("normal"), keys.emailTurns("urgent"), keys.farTurns, ...shards];
  return sum(await Promise.all(lines.map((line) => redis.zrem(line, handle))));
}

async function removeKeys(redis: Redis, handle: string): Promise<number> {
  const message = keys.message(handle, "");
  let removed = 0;
  for await (const found of keysOf(redis, handle)) {
    const names = found.filter((key) => key !== keys.handle(handle));
    // A message's own tag holds the handle that owns it.
    const messages = names.filter((key) => key.startsWith(message)).map((key) => key.slice(message.length));
    await Promise.all(messages.map((id) => redis.unlink(keys.messageOwner(id))));
    removed += sum(await pipelined(redis, (pipeline) => names.forEach((key) => void pipeline.unlink(key))));
  }
  return removed;
}

/** Removes references to the handle elsewhere: users' lists, the account's list and domains, the list of all handles. */
async function unlink(redis: Redis, handle: string): Promise<void> {
  const { account = "", ...fields } = await redis.hgetall(keys.handle(handle));
  const users = Object.keys(fields).flatMap((field) => (field.startsWith("role:") ? [field.slice(5)] : []));
  for (const user of users) await redis.srem(keys.userHandles(user), handle);
  const shown = (await domainsOf(redis, account)).filter((domain) => domain.handle === handle);
  for (const { domain } of shown) await redis.hset(keys.domain(domain), { handle: "", [`claim:${account}`]: "" });
  await redis.srem(keys.accountHandles(account), handle);
  await redis.srem(keys.handles, handle);
}

/** The keys of a handle in batches. Keys of other kinds may use the same word as their tag; they are skipped. */
async function* keysOf(redis: Redis, handle: string): AsyncGenerator<string[]> {
  for (const server of mastersOf(redis)) {
    const seen = server.scanStream({ match: `*:{${handle}}*`, count: 1000 });
    for await (const found of seen as AsyncIterable<string[]>) {
      const names = found.filter((key) => isOfHandle(key, handle));
      for (let at = 0; at < names.length; at += batch) yield names.slice(at, at + batch);
    }
  }
}

async function exported(redis: Redis, key: string): Promise<ExportedKey[]> {
  const type = await redis.type(key);
  const read = readers[type];
  if (read === undefined) return [];
  const [value, left] = await Promise.all([read(redis, key), redis.pttl(key)]);
  return [{ key, type, expiresInMs: left < 0 ? null : left, value }];
}

const readers: Record<string, (redis: Redis, key: string) => Promise<unknown>> = {
  string: async (redis, key) => toPlainValue(await redis.getBuffer(key)),
  list: async (redis, key) => toPlainValue(await redis.lrangeBuffer(key, 0, -1)),
  set: async (redis, key) => toPlainValue(await redis.smembersBuffer(key)),
  zset: async (redis, key) => toPlainValue(await redis.zrangeBuffer(key, "0", "-1", "WITHSCORES")),
  hash: async (redis, key) => toPlainValue(await redis.hgetallBuffer(key)),
  stream: async (redis, key) => toPlainValue(await redis.xrangeBuffer(key, "-", "+")),
};

/** Redis replies as JSON values. */
function toPlainValue(reply: unknown): unknown {
  if (Buffer.isBuffer(reply)) return textOrBase64(reply);
  if (Array.isArray(reply)) return reply.map(toPlainValue);
  if (typeof reply !== "object" || reply === null) return reply;
  return Object.fromEntries(Object.entries(reply).map(([name, value]) => [name, toPlainValue(value)]));
}

function textOrBase64(bytes: Buffer): Value {
  const text = bytes.toString("utf8");
  return Buffer.from(text, "utf8").equals(bytes) ? text : { base64: bytes.toString("base64") };
}

const sum = (numbers: unknown[]): number => numbers.reduce<number>((total, one) => total + Number(one), 0);
