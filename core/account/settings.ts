import type { Redis } from "ioredis";
import type { Settings, settingsChange } from "../../schemas/account.ts";
import type { Input } from "../../schemas/schema.ts";
import type { Runtime } from "../platform/runtime.ts";
import { coalesce } from "../store/coalesce.ts";
import { keys } from "../store/keys.ts";
import { transact } from "../store/redis.ts";
import { pagesCounter } from "./handles.ts";

/** Settings of a handle whose owner has set none. */
const defaults: Settings = { displayName: null, language: null, leadNotifications: true, logoUrl: null };
const names = Object.keys(defaults) as (keyof Settings)[];
const field = (name: string): string => `setting:${name}`;

/** The handle's public name and look, and what its owners are notified about (docs/reference.md, "Handle settings"). */
export async function readSettings({ redis }: Runtime, { handle }: Input<"handle">): Promise<{ settings: Settings }> {
  return { settings: await settingsOf(redis, handle) };
}

/** Changes the given settings; null resets one. Pages that show them are rendered again. */
export async function updateSettings(
  { redis }: Runtime,
  { handle, ...changes }: Input<"handle", typeof settingsChange>,
): Promise<{ settings: Settings }> {
  await transact(redis, (transaction) => {
    for (const [name, value] of Object.entries(changes)) {
      if (value === undefined) continue;
      if (value === null) transaction.hdel(keys.handle(handle), field(name));
      else transaction.hset(keys.handle(handle), field(name), JSON.stringify(value));
    }
    transaction.hincrby(keys.handle(handle), pagesCounter, 1);
  });
  return { settings: await settingsOf(redis, handle) };
}

/** The settings of a handle, or the defaults. */
export function settingsOf(redis: Redis, handle: string): Promise<Settings> {
  return coalesce(redis, `settings ${handle}`, async () => {
    const values = await redis.hmget(keys.handle(handle), ...names.map(field));
    const given = names.flatMap((name, at) => (values[at] == null ? [] : [[name, JSON.parse(values[at])] as const]));
    return { ...defaults, ...Object.fromEntries(given) };
  });
}

export async function displayNameOf(redis: Redis, handle: string): Promise<string> {
  return (await settingsOf(redis, handle)).displayName ?? handle;
}
