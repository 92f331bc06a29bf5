import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";
import { fileOf } from "../platform/files.ts";

/** A name without the mark of a list: `events[]` is a list, bound as `events`. */
type Bare<N extends string> = N extends `${infer List}[]` ? List : N;
type Named<N extends string, One> = { [Name in N as Bare<Name>]: Name extends `${string}[]` ? readonly One[] : One };
type Value = string | number | Buffer;

/** Optional columns of a script. */
interface Columns<B extends string> {
  /** Preludes that it needs in addition to `prelude.lua`. */
  needs?: readonly string[];
  /** Why it runs on a full Redis too (Redis 7, "Script flags"). */
  runsWhenFull?: string;
  /** Input fields that are bytes or long texts. They are separate arguments; the script finds them in `input` all the same. */
  blobs?: readonly B[];
}

/** A script of core/store/lua. It runs with its keys by name and one input, and resolves with its result. */
export interface Script<K extends string, I, R> {
  (redis: Redis, keys: Named<K, string>, input: I): Promise<R>;
  readonly file: string;
  readonly keys: readonly K[];
  readonly needs: readonly string[];
  readonly sha: string;
}

/**
 * A row of the script table. In Lua the keys are `keys.<name>` and the input is `input.<name>`, decoded from one JSON text. Names that end
 * in `[]` are lists; all lists of a script have the same length. Scripts are deliberately not defined as commands of the connection:
 * ioredis copies each of those onto every pipeline that it creates.
 */
export function defineScript<const K extends string, const B extends string = never>(
  file: string,
  keyNames: readonly K[],
  columns: Columns<B> = {},
): { of: <I extends Named<B, string | Buffer>, R>() => Script<K, I, R> } {
  const { needs = [], blobs = [] } = columns;
  const lua = sourceOf(file, keyNames, { ...columns, needs, blobs });
  const sha = createHash("sha1").update(lua).digest("hex");
  const [keyOrder, blobOrder] = [inOrder(keyNames).map(bare), inOrder(blobs).map(bare)];
  return {
    of: <I extends Named<B, string | Buffer>, R>() => {
      const run = (redis: Redis, keys: Named<K, string>, input: I): Promise<R> => {
        const names = keyOrder.flatMap((name) => (keys as Record<string, string | string[]>)[name] as string);
        return evaluate(redis, { lua, sha }, [names.length, ...names, ...encode(input, blobOrder)]) as Promise<R>;
      };
      return Object.assign(run, { file, keys: keyNames, needs, sha });
    },
  };
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
function encode(input: object, blobs: readonly string[]): Value[] {
  const fields: Record<string, unknown> = { ...input };
  const apart = blobs.flatMap((name) => fields[name] as Value | Value[]);
  for (const name of blobs) fields[name] = undefined;
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
  file: string,
  keyNames: readonly string[],
  { needs, runsWhenFull, blobs }: { needs: readonly string[]; runsWhenFull?: string; blobs: readonly string[] },
): string {
  const shebang = runsWhenFull ? "#!lua flags=allow-oom" : "#!lua";
  const bindings = [
    `local keys = { ${bind(keyNames, "KEYS").join(", ")} }`,
    "local input = cjson.decode(ARGV[1])",
    ...bind(blobs, "ARGV").map((one) => `input.${one}`),
  ];
  return [shebang, read("prelude.lua"), ...bindings, ...needs.map(read), read(file)].join("\n");
}

/** Lua that names the keys, or the arguments after the first: `lead = KEYS[2]`. */
function bind(names: readonly string[], values: "KEYS" | "ARGV"): string[] {
  const [lists, before] = [names.filter(isList), values === "ARGV" ? 1 : 0];
  const ones = names.length - lists.length + before;
  return [
    ...names.filter((name) => !isList(name)).map((name, at) => `${name} = ${values}[${at + 1 + before}]`),
    ...lists.map((name, at) => `${bare(name)} = part(${values}, ${ones}, ${at}, ${lists.length})`),
  ];
}

/** Lists come last: they share the entries after the single values. */
function inOrder(names: readonly string[]): string[] {
  return [...names.filter((name) => !isList(name)), ...names.filter(isList)];
}

function isList(name: string): boolean {
  return name.endsWith("[]");
}

function bare(name: string): string {
  return name.replace("[]", "");
}
