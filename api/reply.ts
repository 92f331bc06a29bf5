import { Buffer } from "node:buffer";
import { Readable } from "node:stream";
import type { Context } from "koa";
import { compressed } from "./coded.ts";

/** A response. The body may be a stream. */
export interface HttpReply {
  status: number;
  headers: Readonly<Record<string, string | string[]>>;
  body?: string | Uint8Array | AsyncIterable<string>;
}

/** Sends a reply through Koa, with the common headers; 304 if the client's copy is current (RFC 9110, section 13). */
export function sendReply(ctx: Context, { status, headers, body = "" }: HttpReply): void {
  ctx.status = status;
  ctx.set({ ...common(ctx), ...headers });
  if (ctx.fresh) ctx.status = 304;
  if (isEmpty(ctx.status)) return;
  const type = ctx.response.get("Content-Type");
  ctx.body = isStream(body) ? Readable.from(body) : compressed(ctx, bytes(body));
  // Koa would guess a type from the body; a reply names its type or has none.
  if (type === "") ctx.remove("Content-Type");
}

/** Headers of every response. */
export function common(ctx: Context): Record<string, string> {
  return { "X-Request-Id": ctx.state.requestId, "X-Content-Type-Options": "nosniff" };
}

/** True for statuses without content (RFC 9110, sections 15.3.5 and 15.4.5). */
function isEmpty(status: number): boolean {
  return status === 204 || status === 304;
}

function bytes(body: string | Uint8Array): string | Buffer {
  return typeof body === "string" ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

function isStream(body: NonNullable<HttpReply["body"]>): body is AsyncIterable<string> {
  return typeof body === "object" && Symbol.asyncIterator in body;
}
