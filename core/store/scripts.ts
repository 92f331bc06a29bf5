import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import type { Redis } from "ioredis";
import { fileOf } from "../platform/files.ts";

/**
 * Runs a script of core/store/lua with its keys and values: `claim-run.lua` is `claimRun`. The prelude's `outbox(key, jobs)` is there for
 * all; a script that says `-- Needs x-prelude.lua` has that before it too; one that says `-- Runs on a full Redis` does. Scripts are deliberately not defined as commands of the
 * connection: ioredis copies each of those onto every pipeline that it makes.
 */
export async function script<T>(
  redis: Redis,
  name: string,
  keyNames: string[],
  values: (string | number | Buffer)[],
): Promise<T> {
  const known = scripts.get(name);
  if (!known) throw new Error(`No script ${name} in core/store/lua`);
  try {
    return (await redis.evalsha(known.sha, keyNames.length, ...keyNames, ...values)) as T;
  } catch (error) {
    if (!/^NOSCRIPT /.test((error as Error).message)) throw error;
    return (await redis.eval(known.lua, keyNames.length, ...keyNames, ...values)) as T;
  }
}

const folder = fileOf("core/store/lua/");
const source = (file: string) => readFileSync(new URL(file, folder), "utf8");
const files = readdirSync(folder).filter((file) => file.endsWith(".lua") && !file.endsWith("prelude.lua"));
const scripts = new Map(files.map((file) => [nameOf(file), hashed(withPreludes(source(file)))]));

function hashed(lua: string): { lua: string; sha: string } {
  return { lua, sha: createHash("sha1").update(lua).digest("hex") };
}

function withPreludes(lua: string): string {
  const needed = [...lua.matchAll(/^-- Needs (\S+)$/gm)].map(([, file]) => source(file as string));
  return [shebang(lua), source("prelude.lua"), ...needed, lua].join("\n");
}

/** Redis refuses a script as a whole where it is full, read-only or can't write its disk (Redis 7, "Script flags"): no script runs by half. */
function shebang(lua: string): string {
  return /^-- Runs on a full Redis/m.test(lua) ? "#!lua flags=allow-oom" : "#!lua";
}

function nameOf(file: string): string {
  return file.replace(/\.lua$/, "").replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
