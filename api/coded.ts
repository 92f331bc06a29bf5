import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { brotliCompress, brotliCompressSync, constants, gzip, gzipSync } from "node:zlib";
import type { Context } from "koa";
import type { Request, View } from "./route.ts";

/** Smaller bodies are sent as they are, in bytes. */
export const MIN_COMPRESSED = 1024;
/** Larger bodies are compressed off the event loop, in bytes. */
const MAX_AT_ONCE = 32_768;

const codings = ["br", "gzip"] as const;
type Coding = (typeof codings)[number] | "identity";

const brotli = (quality: number) => ({ params: { [constants.BROTLI_PARAM_QUALITY]: quality } });
/** For bodies that are sent often. */
const encoders: Record<Coding, (plain: Uint8Array) => Promise<Uint8Array>> = {
  br: (plain) => promisify(brotliCompress)(plain, brotli(9)),
  gzip: promisify(gzip),
  identity: async (plain) => plain,
};

/** The first of these content codings that the client accepts (RFC 9110, section 12.5.3). */
export function acceptedCoding<C extends string>(ctx: Context, known: readonly C[]): C | "identity" {
  return known.find((coding) => ctx.acceptsEncodings(coding) === coding) ?? "identity";
}

/**
 * Compresses a small text at once and names its coding. koa-compress, which takes all others, makes a stream and a task for another thread
 * of each body: a fifth of the bench row "knowledge/query, limit 10".
 */
export function compressed(ctx: Context, body: string | Buffer): string | Buffer {
  const size = Buffer.byteLength(body);
  if (size < MIN_COMPRESSED || size > MAX_AT_ONCE || ctx.method === "HEAD") return body;
  if (ctx.response.get("Content-Encoding") !== "" || !/^text\/|json$/.test(ctx.response.type)) return body;
  const coding = acceptedCoding(ctx, codings);
  if (coding === "identity") return body;
  ctx.set("Content-Encoding", coding);
  return coding === "br" ? brotliCompressSync(body, brotli(1)) : gzipSync(body, { level: 1 });
}

/** A body that many requests share: each content coding is made once, when it is first asked for (RFC 9110, section 8.4.1). */
export class CodedBody {
  readonly #type: string;
  readonly #plain: Uint8Array;
  readonly #coded = new Map<Coding, ReturnType<typeof encoded>>();

  constructor(type: string, plain: string | Uint8Array) {
    this.#type = type;
    this.#plain = Buffer.from(plain);
  }

  /** The body in the smallest coding that the client accepts, with the entity tag of these bytes. */
  async view(request: Request, headers: View["headers"]): Promise<View> {
    const coding = this.#plain.length < MIN_COMPRESSED ? "identity" : request.coding(codings);
    const { body, coded } = await (this.#coded.get(coding) ?? this.#encode(coding));
    return { type: this.#type, body, headers: { ...headers, ...coded } };
  }

  #encode(coding: Coding): ReturnType<typeof encoded> {
    const encoding = encoded(this.#plain, coding);
    this.#coded.set(coding, encoding);
    // The next request tries again.
    encoding.catch(() => this.#coded.delete(coding));
    return encoding;
  }
}

async function encoded(plain: Uint8Array, coding: Coding) {
  const body = await encoders[coding](plain);
  const coded = { ETag: entityTag(body), ...(coding === "identity" ? {} : { "Content-Encoding": coding }) };
  return { body, coded };
}

/** The entity tag of a body (RFC 9110, section 8.8.3), computed from its bytes. */
function entityTag(body: Uint8Array): string {
  return `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
}
