import { Buffer } from "node:buffer";
import { createReadStream } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { Redis } from "ioredis";
import * as s from "../../schemas/schema.ts";
import { domainForm, entitlementsOf, membersOf, mustExist } from "../account/face.ts";
import { exportDomains } from "../email/face.ts";
import { invalid } from "../platform/errors.ts";
import type { Store } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { carriage, isOfHandle, keysOf, kindOf } from "./handle-keys.ts";
import { toPlainValue, valueTypes } from "./key-values.ts";

/** Version of the format of the lines. */
const EXPORT_VERSION = 2;

/** Ids and domains become parts of keys. */
const id = s.string({ pattern: "^[^\\s{}]{1,255}$" });
const domain = s.string({ pattern: domainForm.source });
const jsonObject = s.string({ pattern: "^\\{" });

/** The first line: the handle, and the data from outside its keys that an import needs. */
const headerLine = s.object({
  format: s.oneOf("handle-export"),
  version: { const: EXPORT_VERSION } as s.Schema<number>,
  handle: s.handle,
  account: id,
  exportedAt: s.string({ pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$" }),
  // The base URL of the installation, with which the handle's own URLs in its content begin.
  baseUrl: s.string(),
  // Its public domain; null or, in earlier files, absent without one.
  publicDomain: s.optional(s.nullable(s.string())),
  entitlements: s.array(s.string()),
  members: s.array(s.object({ userId: id, role: s.string(), email: s.nullable(s.string()) })),
  domains: s.array(s.object({ domain, isHost: s.boolean, identity: s.nullable(jsonObject) })),
});
export type ExportHeader = s.Infer<typeof headerLine>;

/** One key of a handle with its value. */
export interface ExportedKey {
  key: string;
  type: string;
  /** Milliseconds until the key expires, or null. */
  expiresInMs: number | null;
  value: unknown;
}
const lifetime = s.integer(0, Number.MAX_SAFE_INTEGER);
const keyLine: s.Schema<ExportedKey> = {
  oneOf: Object.entries(valueTypes).map(([type, { form }]) =>
    s.object({ key: s.string(), type: s.oneOf(type), expiresInMs: s.nullable(lifetime), value: form }),
  ),
};

/** The last line, by which a truncated file is detected. */
const endLine = s.object({ end: { const: true } as s.Schema<true>, keys: s.integer() });
type ExportEnd = s.Infer<typeof endLine>;

/**
 * The lines of an export: header, every key of the handle with its value, and the end; `not_found` for an unknown handle. Reads the whole
 * key space: not for requests. It is not a snapshot: deactivate the handle first.
 */
export async function* exportHandle(
  store: Store,
  handle: string,
): AsyncGenerator<ExportHeader | ExportedKey | ExportEnd> {
  const { redis } = store;
  await mustExist(redis, handle);
  yield await headerOf(store, handle);
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

async function headerOf(store: Store, handle: string): Promise<ExportHeader> {
  const { redis, env } = store;
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
    domains: await exportDomains(store, { handle, account }),
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

/** Maximum bytes of a line: a key with its whole value. */
const MAX_LINE_BYTES = 256 * 2 ** 20;

/** Compiles a shape at its first use, and no meta-schema: both would delay the start of every process. */
const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, meta: false, validateSchema: false });

/**
 * Opens a file that `exportHandle` wrote: its header, and its keys in their order. `invalid_request` with the number of the offending line:
 * invalid JSON, also in a record, another format or version, a key of another handle or of an unknown kind, a missing end or one that
 * counts other keys.
 */
export async function openExport(file: string) {
  const lines = linesOf(file);
  const first = await lines.next();
  if (first.done) throw wrong(1, "the file is empty");
  const header = parsed(1, first.value);
  if ((header as ExportHeader | null)?.format !== "handle-export") throw wrong(1, "this is no export of a handle");
  const { version } = header as ExportHeader;
  if (version !== EXPORT_VERSION) throw wrong(1, `the version is ${version}, not ${EXPORT_VERSION}: export again`);
  if (!ajv.validate<ExportHeader>(headerLine, header) || Number.isNaN(Date.parse(header.exportedAt)))
    throw wrong(1, "this is no header of an export");
  for (const { identity } of header.domains) if (identity !== null) parsed(1, identity);
  return { header, keys: keysIn(lines, header.handle) };
}

async function* keysIn(lines: AsyncGenerator<string>, handle: string): AsyncGenerator<ExportedKey> {
  let [number, count] = [1, 0];
  for await (const line of lines) {
    number++;
    const one = parsed(number, line);
    if (ajv.validate<ExportEnd>(endLine, one)) return await mustEnd(lines, { number, count, end: one });
    if (!ajv.validate<ExportedKey>(keyLine, one) || valueTypes[one.type]?.isWhole?.(one.value as never) === false)
      throw wrong(number, "this is no key of an export");
    if (carriage[kindOf(one.key)] === undefined)
      throw wrong(number, `${kindOf(one.key)} is a kind of key unknown here, not a key of ${handle}`);
    if (!isOfHandle(one.key, handle)) throw wrong(number, `${one.key} is not a key of ${handle}`);
    // Slugs are names of fields there, and may be "json".
    if (one.key !== keys.eventTypeSlugs(handle)) parsed(number, recordOf(one), one.key);
    count++;
    yield one;
  }
  throw wrong(number + 1, "the end is missing: the file was cut short");
}

/** The JSON of a record, which many jobs read; of another key, one that is valid. */
function recordOf({ type, value }: ExportedKey): string {
  const { json = "{}" } = (type === "hash" ? value : {}) as Record<string, unknown>;
  return String(json);
}

async function mustEnd(
  lines: AsyncGenerator<string>,
  { number, count, end }: { number: number; count: number; end: ExportEnd },
): Promise<void> {
  if (end.keys !== count) throw wrong(number, `the end counts ${end.keys} keys, the file has ${count}`);
  if (!(await lines.next()).done) throw wrong(number + 1, "there is more behind the end");
}

function parsed(number: number, text: string, what = "this"): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw wrong(number, `${what} is no JSON`, error);
  }
}

/** The lines of a file; `invalid_request` if a line is too long or not UTF-8, or if there is no file. */
async function* linesOf(file: string): AsyncGenerator<string> {
  let [number, pending]: [number, Buffer[]] = [1, []];
  for await (const chunk of readParts(file)) {
    let from = 0;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, from)) {
      yield textOf(number++, Buffer.concat([...pending, chunk.subarray(from, at)]));
      [from, pending] = [at + 1, []];
    }
    pending.push(chunk.subarray(from));
    if (pending.reduce((sum, part) => sum + part.length, 0) > MAX_LINE_BYTES)
      throw wrong(number, `the line is longer than ${MAX_LINE_BYTES / 2 ** 20} MiB`);
  }
  const last = Buffer.concat(pending);
  if (last.length > 0) yield textOf(number, last);
}

async function* readParts(file: string): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(file, { highWaterMark: 2 ** 20 }) as AsyncIterable<Buffer>;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    throw invalid("/file", `can't be read: ${(error as NodeJS.ErrnoException).code}`, error);
  }
}

function textOf(number: number, bytes: Buffer): string {
  const line = bytes.toString("utf8");
  if (!Buffer.from(line, "utf8").equals(bytes)) throw wrong(number, "this is no UTF-8");
  return line;
}

function wrong(number: number, what: string, cause?: unknown): Error {
  return invalid("/file", `is wrong at line ${number}: ${what}`, cause);
}
