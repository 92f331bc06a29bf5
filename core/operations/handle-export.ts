import type { Redis } from "ioredis";
import { entitlementsOf, membersOf, mustExist } from "../account/face.ts";
import { exportDomains } from "../email/face.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { EXPORT_VERSION, type ExportEnd, type ExportedKey, type ExportHeader } from "./export-file.ts";
import { keysOf } from "./handle-keys.ts";
import { toPlainValue, valueTypes } from "./key-values.ts";

/**
 * The lines of an export: header, every key of the handle with its value, and the end; `not_found` for an unknown handle. Reads the whole
 * key space: not for requests. It is not a snapshot: deactivate the handle first.
 */
export async function* exportHandle(
  { redis, env }: Pick<Runtime, "redis" | "env">,
  handle: string,
): AsyncGenerator<ExportHeader | ExportedKey | ExportEnd> {
  await mustExist(redis, handle);
  yield await headerOf({ redis, env }, handle);
  // A scan may return a key twice.
  const seen = new Set<string>();
  let count = 0;
  for await (const found of keysOf(redis, handle))
    for (const key of found.filter((one) => !seen.has(one))) {
      seen.add(key);
      for (const one of await exported(redis, key)) {
        count++;
        yield one;
      }
    }
  yield { end: true, keys: count };
}

async function headerOf({ redis, env }: Pick<Runtime, "redis" | "env">, handle: string): Promise<ExportHeader> {
  const account = (await redis.hget(keys.handle(handle), "account")) ?? "";
  return {
    format: "handle-export",
    version: EXPORT_VERSION,
    handle,
    account,
    exportedAt: new Date().toISOString(),
    baseUrl: env.BASE_URL,
    publicDomain: env.PUBLIC_DOMAIN ?? null,
    entitlements: await entitlementsOf(redis, account),
    members: await membersOf(redis, handle),
    domains: await exportDomains({ redis }, { handle, account }),
  };
}

async function exported(redis: Redis, key: string): Promise<ExportedKey[]> {
  const type = await redis.type(key);
  const known = valueTypes[type];
  if (known === undefined) return [];
  const [value, left] = await Promise.all([known.read(redis, key), redis.pttl(key)]);
  // -2: it has expired since it was found. Read after the value, which is whole then.
  return left === -2 ? [] : [{ key, type, expiresInMs: left === -1 ? null : left, value: toPlainValue(value) }];
}
