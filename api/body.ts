import type { Buffer } from "node:buffer";
import { Writable } from "node:stream";
import type { Context } from "koa";
import { koaBody } from "koa-body";
import { Fail, invalid } from "../core/platform/errors.ts";
import { lazyByKey } from "../core/platform/lazy.ts";
import type { Row } from "./route.ts";

/** Default body limits in bytes (docs/reference.md, "Requests"), for rows without a limit of their own. */
const limits = { owner: 1_048_576, public: 65_536 };
/** Ms within which a body must arrive. */
const TIMEOUT_MS = 10_000;
/** The content types of each kind of body: what is accepted here is what the parser reads. */
const types = {
  json: ["json", "+json"],
  urlencoded: ["application/x-www-form-urlencoded"],
  multipart: ["multipart/form-data"],
};
const forms = [...types.urlencoded, ...types.multipart];
const FORM_EXPECTED =
  "The content type of the request body is not supported; send application/x-www-form-urlencoded or application/json.";
const CODING_EXPECTED = "The content coding of the request body is not supported; use gzip, deflate, br or none.";
/** Deepest nesting of a body, and most values in it, both far above any schema's: code walks a body recursively, and each value can be a fault. */
const MAX_DEPTH = 64;
const MAX_VALUES = 50_000;

/** Reads the body as the row allows: an object, or a raw body as it arrives. An absent body is `{}`. */
export async function readBody(ctx: Context, row: Row): Promise<Record<string, unknown>> {
  if (!hasBody(ctx) && !row.consumes) return {};
  const limit = row.limit ?? (row.access.kind === "public" ? limits.public : limits.owner);
  if ((ctx.request.length ?? 0) > limit) throw new Fail("payload_too_large");
  if (row.consumes) return { body: bytes(ctx, limit), headers: ctx.headers };
  try {
    return await parsedBody(ctx, row, limit);
  } catch (error) {
    // The rest is dropped as it arrives: unread, it would hold up the next request on the connection.
    ctx.req.unpipe().resume();
    throw error;
  }
}

async function parsedBody(ctx: Context, row: Row, limit: number): Promise<Record<string, unknown>> {
  if (!isAccepted(ctx, row)) {
    if (await inTime(ctx, isEmpty(ctx))) return {};
    const isForm = row.accepts === "form";
    ctx.set("Accept", ["application/json", ...(isForm ? forms : [])].join(", "));
    throw new Fail("unsupported_media_type", isForm ? { detail: FORM_EXPECTED } : {});
  }
  // The names of codings ignore case, and x-gzip is gzip (RFC 9110, section 8.4.1).
  ctx.req.headers["content-encoding"] = ctx.get("content-encoding").toLowerCase().replace("x-gzip", "gzip");
  await inTime(
    ctx,
    parserOf(limit)(ctx, async () => {}),
  );
  const isForm = ctx.request.is(forms);
  return plain(isForm ? formFields(ctx.request.body as FormBody) : ctx.request.body, row.maxValues);
}

/** A form as the parser reads it: the text of one that is URL-encoded, the fields of one in parts. */
type FormBody = string | Record<string, string | string[]>;

/** The fields of the query; a repeated one is a list. Linear in its length, as Koa's own parser is not. */
export function readQuery({ querystring }: Context): Record<string, unknown> {
  const found = grouped(new URLSearchParams(querystring));
  return Object.fromEntries([...found].map(([name, all]) => [name, oneOrList(all)]));
}

/**
 * The fields of a form, whatever its type: a repeated name, `days[]` and `days[0]` are a list, and `fields[size]` is the field `size` of
 * `fields`. A value without a name is dropped.
 */
function formFields(body: FormBody): Record<string, unknown> {
  const pairs = typeof body === "string" ? [...new URLSearchParams(body)] : pairsOf(body);
  const named = pairs.filter(([name]) => name !== "").map(([name, value]) => fieldOf(name, value));
  return Object.fromEntries([...grouped(named)].map(([name, parts]) => [name, wholeOf(parts)]));
}

function fieldOf(name: string, value: string): [name: string, part: [name: string, value: string]] {
  const single = name.replace(/\[\d*\]$/, "");
  const [, outer = single, inner = ""] = /^([^[]+)\[(.+)\]$/.exec(single) ?? [];
  return [outer, [inner, value]];
}

/** The parts of a field; the one without a name is its own value. */
function wholeOf(parts: [name: string, value: string][]): unknown {
  const { "": own, ...rest } = Object.fromEntries([...grouped(parts)].map(([name, all]) => [name, oneOrList(all)]));
  return Object.keys(rest).length > 0 ? rest : own;
}

function pairsOf(fields: Record<string, string | string[]>): [name: string, value: string][] {
  return Object.entries(fields).flatMap(([name, all]) => [all].flat().map((value): [string, string] => [name, value]));
}

function grouped<V>(pairs: Iterable<[name: string, value: V]>): Map<string, V[]> {
  const found = new Map<string, V[]>();
  for (const [name, value] of pairs) {
    const all = found.get(name);
    if (all) all.push(value);
    else found.set(name, [value]);
  }
  return found;
}

function oneOrList(all: string[]): string | string[] | undefined {
  return all.length > 1 ? all : all[0];
}

function hasBody(ctx: Context): boolean {
  return ctx.headers["transfer-encoding"] !== undefined || (ctx.request.length ?? 0) > 0;
}

function isAccepted(ctx: Context, row: Row): boolean {
  return Boolean(ctx.request.is([...types.json, ...(row.accepts === "form" ? forms : [])]));
}

/** True if a chunked body (RFC 9112) turns out to be empty. */
async function isEmpty({ req }: Context): Promise<boolean> {
  if (req.headers["transfer-encoding"] === undefined) return false;
  for await (const part of req.iterator({ destroyOnReturn: false })) if (part.length > 0) return false;
  return true;
}

/** koa-body checks its options whenever a parser is made, so there is one for each limit. */
const parserOf = lazyByKey((limit: number) =>
  koaBody({
    // Its own parser drops the twenty-first value of a name.
    urlencoded: false,
    multipart: true,
    jsonTypes: types.json,
    textTypes: types.urlencoded,
    multipartTypes: types.multipart,
    jsonLimit: limit,
    textLimit: limit,
    formidable: {
      maxFieldsSize: limit,
      maxFields: 200,
      maxFiles: 0,
      // By default each refused file would leave one on the disk.
      fileWriteStreamHandler: () => new Writable({ write: (_part, _encoding, done) => done() }),
      onPart: (part, handle) => handle(readPart(part)),
    },
  }),
);

/**
 * A part without a file name is a field, whatever its type (RFC 7578, section 4.4); an empty file input has an empty one. The parser has
 * decoded the part, and would take the name of its transfer encoding for that of a character set.
 */
function readPart<P extends { originalFilename: string | null; mimetype: string | null }>(part: P): P {
  const mimetype = part.originalFilename ? part.mimetype : null;
  return Object.assign(part, { mimetype, transferEncoding: "utf-8" });
}

/** Maps the parsers' and the connection's errors: bytes that break off or can't be decoded or parsed are a client error. */
function asClientError(ctx: Context, error: Error & { status?: number; httpCode?: number }): Error {
  const status = error.status ?? error.httpCode;
  if (status === 413) return new Fail("payload_too_large", {}, error);
  if (status === 415) {
    ctx.set("Accept-Encoding", "gzip, deflate, br");
    return new Fail("unsupported_media_type", { detail: CODING_EXPECTED }, error);
  }
  return new Fail("invalid_request", { detail: parsingFault(error.message) }, error);
}

function parsingFault(message: string): string {
  const [, position] = /in JSON at position (\d+)/.exec(message) ?? [];
  if (position) return `The body is not valid JSON at position ${position}.`;
  const isCut = message === "Unexpected end of JSON input";
  return isCut ? "The body is not valid JSON: it ends too early." : "The body cannot be parsed.";
}

/** The parts of a body as they arrive: at most `limit` bytes, and all of them in time. */
async function* bytes(ctx: Context, limit: number): AsyncGenerator<Buffer> {
  const parts: AsyncIterator<Buffer> = ctx.req[Symbol.asyncIterator]();
  const late = performance.now() + TIMEOUT_MS;
  for (let size = 0; ; ) {
    const { done, value: part } = await inTime(ctx, parts.next(), late - performance.now());
    if (done) return;
    size += part.length;
    if (size > limit) {
      ctx.set("Connection", "close");
      throw new Fail("payload_too_large");
    }
    yield part;
  }
}

async function inTime<T>(ctx: Context, reading: Promise<T>, timeoutMs = TIMEOUT_MS): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      ctx.set("Connection", "close");
      reject(new Fail("invalid_request", { detail: "The request body did not arrive in time." }));
    }, timeoutMs);
  });
  const read = reading.catch((error) => Promise.reject(asClientError(ctx, error)));
  return Promise.race([read, late]).finally(() => clearTimeout(timer));
}

function plain(body: unknown, maxValues?: number): Record<string, unknown> {
  if (body === undefined || body === null || body === "") return {};
  if (typeof body !== "object" || Array.isArray(body)) throw invalid("", "must be an object");
  mustBeBounded(body, maxValues);
  return body as Record<string, unknown>;
}

/** Throws `invalid_request` for a value that is nested too deep or holds too many values. */
export function mustBeBounded(value: unknown, maxValues = MAX_VALUES): void {
  let count = 0;
  const visit = (one: unknown, depth: number): void => {
    if (++count > maxValues) throw invalid("", `must hold at most ${maxValues} values`);
    if (typeof one !== "object" || one === null) return;
    if (depth === MAX_DEPTH) throw invalid("", `must be nested at most ${MAX_DEPTH} levels deep`);
    for (const member of Object.values(one)) visit(member, depth + 1);
  };
  visit(value, 0);
}
