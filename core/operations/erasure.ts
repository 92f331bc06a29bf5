import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { DIRTY_SHARDS, keys } from "../store/keys.ts";
import type { Runtime } from "../platform/runtime.ts";
import { disconnectAll } from "../scheduling/face.ts";
import { domainsOf, mustExist, setHandleActive } from "../account/face.ts";
import { removeJobs } from "./handle-jobs.ts";
import { removeKeys } from "./handle-keys.ts";

/** Ms in which a step that was under way has written what it writes. */
const settles = 500;

/**
 * Removes everything that belongs to a handle, its jobs, its memberships and what its account says of it; grants of other services
 * are given back where those answer, unless the handle has moved and uses them elsewhere (`keepGrants`). The handle is switched off first and its record goes last, so that a run that was cut short can
 * be made again. Runs of answers have a tag of their own and go by themselves within ten minutes. Returns the number of keys removed,
 * and the services that didn't take their grants back.
 */
export async function eraseHandle(
  runtime: Runtime,
  handle: string,
  { keepGrants = false } = {},
): Promise<{ handle: string; keys: number; grantsLeft: string[] }> {
  const { redis } = runtime;
  await mustExist(redis, handle);
  await setHandleActive(redis, handle, false);
  const grantsLeft = keepGrants ? [] : await disconnectAll(runtime, handle);
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

/** Takes the handle out of what is kept elsewhere: its users' lists, its account's list and domains, the list of all handles. */
async function unlink(redis: Redis, handle: string): Promise<void> {
  const { account = "", ...fields } = await redis.hgetall(keys.handle(handle));
  const users = Object.keys(fields).flatMap((field) => (field.startsWith("role:") ? [field.slice(5)] : []));
  for (const user of users) await redis.srem(keys.userHandles(user), handle);
  const shown = (await domainsOf(redis, account)).filter((domain) => domain.handle === handle);
  for (const { domain } of shown) await redis.hset(keys.domain(domain), { handle: "", [`claim:${account}`]: "" });
  await redis.srem(keys.accountHandles(account), handle);
  await redis.srem(keys.handles, handle);
}

const sum = (numbers: unknown[]): number => numbers.reduce<number>((total, one) => total + Number(one), 0);
