import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";
import { fileOf } from "../platform/files.ts";

type Value = string | number | Buffer;

interface Columns {
  /** Preludes that it needs in addition to `prelude.lua`: `run` for `run-prelude.lua`. */
  needs?: readonly string[];
  /** Why it runs on a full Redis too (Redis 7, "Script flags"). */
  runsWhenFull?: string;
  /**
   * Input fields that are bytes or long texts. They are separate arguments; the script finds them in `input` all the same, an absent one as
   * an empty text. The last one may be a list, with `[]` after its name.
   */
  blobs?: readonly string[];
}

/** A script of core/store/lua. It runs with its keys by name and one input, and resolves with its result. */
interface Script<K extends string, I, R> {
  (redis: Redis, keys: Record<K, string>, input: I): Promise<R>;
  readonly file: string;
  readonly keys: readonly K[];
  readonly needs: readonly string[];
  readonly sha: string;
}

/** The scripts of a table: that of `putRecord` is in put-record.lua. */
export function scriptsOf<T extends Record<string, (file: string) => unknown>>(rows: T) {
  const luaFile = (name: string): string => `${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.lua`;
  const named = Object.entries(rows).map(([name, row]) => [name, row(luaFile(name))]);
  return Object.fromEntries(named) as { readonly [N in keyof T]: ReturnType<T[N]> };
}

/**
 * A row of the script table. In Lua the keys are `keys.<name>` and the input is `input.<name>`, decoded from one JSON text. Scripts are
 * deliberately not defined as commands of the connection: ioredis copies each of those onto every pipeline that it creates.
 */
export function script<const K extends string>(keyNames: readonly K[], columns: Columns = {}) {
  const of =
    <I extends object, R>() =>
    (file: string): Script<K, I, R> => {
      const needs = (columns.needs ?? []).map((name) => `${name}-prelude.lua`);
      const lua = sourceOf([...needs, file], keyNames, columns);
      const sha = createHash("sha1").update(lua).digest("hex");
      const run = (redis: Redis, keys: Record<K, string>, input: I): Promise<R> => {
        const names = keyNames.map((name) => keys[name]);
        return evaluate(redis, { lua, sha }, [names.length, ...names, ...encode(input, columns)]) as Promise<R>;
      };
      return Object.assign(run, { file, keys: keyNames, needs, sha });
    };
  return { of };
}

async function evaluate(
  redis: Redis,
  { lua, sha }: { lua: string; sha: string },
  values: [keyCount: number, ...Value[]],
): Promise<unknown> {
  try {
    return await redis.evalsha(sha, ...values);
  } catch (error) {
    if (!/^NOSCRIPT /.test((error as Error).message)) throw error;
    return redis.eval(lua, ...values);
  }
}

/** The input as one JSON text, followed by its blobs. */
function encode(input: object, { blobs = [] }: Columns): Value[] {
  const fields = { ...input } as Record<string, unknown>;
  const names = blobs.map(bare);
  const apart = names.flatMap((name) => (fields[name] ?? "") as Value | Value[]);
  for (const name of names) fields[name] = undefined;
  return [toJson(fields), ...apart];
}

/** JSON that Redis can decode: a lone surrogate becomes U+FFFD, as in UTF-8. */
function toJson(fields: object): string {
  const text = JSON.stringify(fields);
  if (!text.includes("\\ud")) return text;
  return JSON.stringify(fields, (_, value) => (typeof value === "string" ? Buffer.from(value).toString() : value));
}

const folder = fileOf("core/store/lua/");
const read = (file: string): string => readFileSync(new URL(file, folder), "utf8");

/** This first line makes a full, read-only or failing Redis reject the script as a whole, so that it never runs partially. */
function sourceOf(
  files: readonly string[],
  keyNames: readonly string[],
  { runsWhenFull, blobs = [] }: Columns,
): string {
  const shebang = runsWhenFull ? "#!lua flags=allow-oom" : "#!lua";
  const bindings = [
    `local keys = { ${keyNames.map((name, at) => `${name} = KEYS[${at + 1}]`).join(", ")} }`,
    "local input = cjson.decode(ARGV[1])",
    ...blobs.map(
      (name, at) => `input.${bare(name)} = ${name.endsWith("[]") ? `from(ARGV, ${at + 2})` : `ARGV[${at + 2}]`}`,
    ),
  ];
  return [shebang, read("prelude.lua"), ...bindings, ...files.map(read)].join("\n");
}

function bare(name: string): string {
  return name.replace("[]", "");
}
