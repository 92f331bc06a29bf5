import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { pipeline, Readable } from "node:stream";
import { promisify } from "node:util";
import {
  brotliCompress,
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createGzip,
  gzip,
  gzipSync,
} from "node:zlib";
import type { Context } from "koa";
import { lazyByKey } from "../core/platform/lazy.ts";
import { type Coding, codingOf, type Request } from "./request.ts";
import type { View } from "./route.ts";

/** Sends a response through Koa; 304 if the client's copy is current (RFC 9110, section 13). */
export function sendView(ctx: Context, { type, status = 200, headers = {}, body = "" }: View): void {
  ctx.status = status;
  ctx.set(headers);
  if (type) ctx.set("Content-Type", type);
  // `fetch` adds no-cache to a condition; it is meant for caches (RFC 9111, section 5.2.1.4).
  delete ctx.req.headers["cache-control"];
  // If-None-Match wins (RFC 9110, section 13.1.3), and no response has a date of its own.
  delete ctx.req.headers["if-modified-since"];
  if (ctx.req.headers["if-none-match"] && ctx.fresh) ctx.status = 304;
  // Statuses without content (RFC 9110, sections 15.3.5 and 15.4.5).
  if (ctx.status === 204 || ctx.status === 304) return;
  ctx.body = compressed(ctx, typeof body === "string" ? body : bytesOf(body));
}

function bytesOf(body: Uint8Array | AsyncIterable<string>): Buffer | Readable {
  if (Symbol.asyncIterator in body) return Readable.from(body);
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

/** Smaller bodies are sent as they are, in bytes. */
const MIN_COMPRESSED = 1024;
/** Larger bodies are compressed off the event loop, in bytes; up to here a stream occupies it for longer than the compression. */
const MAX_AT_ONCE = 131_072;

/** Media types of texts. A coding would hold back the events of a stream. */
const compressible = /^text\/(?!event-stream$)|json$|xml$|javascript$/;

const brotli = (quality: number) => ({ params: { [constants.BROTLI_PARAM_QUALITY]: quality } });

/**
 * A text in the client's coding: a small one at once, since a stream and its threads cost more, any other as it is sent. What must not be
 * transformed (RFC 9111, section 5.2.2.6) stays as it is.
 */
function compressed(ctx: Context, body: string | Buffer | Readable): string | Buffer | Readable {
  const size = body instanceof Readable ? Number.POSITIVE_INFINITY : Buffer.byteLength(body);
  if (size < MIN_COMPRESSED || ctx.res.hasHeader("Content-Encoding")) return body;
  const isFixed = /no-transform/.test(ctx.response.get("Cache-Control"));
  const coding = compressible.test(ctx.response.type) && !isFixed ? codingOf(ctx) : "identity";
  if (coding === "identity") return body;
  ctx.set("Content-Encoding", coding);
  // The header of the answer to GET, whose length is known only after the coding (RFC 9110, section 8.6).
  if (ctx.method === "HEAD") return body instanceof Readable ? body : Readable.from([]);
  if (!(body instanceof Readable) && size <= MAX_AT_ONCE)
    return coding === "br" ? brotliCompressSync(body, brotli(1)) : gzipSync(body, { level: 1 });
  const encoder = coding === "br" ? createBrotliCompress(brotli(4)) : createGzip();
  // Koa ends the response when its stream fails.
  return pipeline(body instanceof Readable ? body : Readable.from([body]), encoder, () => {});
}

/** For bodies that are sent often. */
const encoders: Record<Coding, (plain: Buffer) => Promise<Buffer>> = {
  br: (plain) => promisify(brotliCompress)(plain, brotli(9)),
  gzip: promisify(gzip),
  identity: async (plain) => plain,
};

/** A view of a body that many requests share, in the smallest coding that the client accepts. */
export type SharedBody = (request: Request, headers: View["headers"]) => Promise<View>;

/** A body of which each content coding is made once, when it is first asked for, with a tag of its own (RFC 9110, section 8.8.3.3). */
export function sharedBody(type: string, plain: string | Buffer): SharedBody {
  const bytes = Buffer.from(plain);
  const encoding = lazyByKey((coding: Coding) => encoded(bytes, coding));
  return async (request, headers) => {
    const coding = bytes.length < MIN_COMPRESSED ? "identity" : request.coding;
    const { body, coded } = await encoding(coding);
    return { type, body, headers: { ...headers, ...coded } };
  };
}

/** The bytes with their entity tag (RFC 9110, section 8.8.3). */
async function encoded(plain: Buffer, coding: Coding) {
  const body = await encoders[coding](plain);
  const tag = createHash("sha256").update(body).digest("base64url").slice(0, 22);
  return { body, coded: { ETag: `"${tag}"`, ...(coding === "identity" ? {} : { "Content-Encoding": coding }) } };
}
