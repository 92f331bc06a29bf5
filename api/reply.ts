import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import type { Context } from "koa";

/** What a request is answered with. A stream may be the body. */
export interface Reply {
  status: number;
  headers: Readonly<Record<string, string | string[]>>;
  body?: string | Uint8Array | AsyncIterable<string>;
}

/** Gives a reply to Koa, with the headers that every response has; 304 if the client has it already (RFC 9110, section 13). */
export function sendReply(ctx: Context, { status, headers, body = "" }: Reply): void {
  ctx.status = status;
  ctx.set({ ...common(ctx), ...headers });
  if (ctx.fresh) ctx.status = 304;
  if (isEmpty(ctx.status)) return;
  const type = ctx.response.get("Content-Type");
  ctx.body = isStream(body) ? Readable.from(body) : bytes(body);
  // Koa names a type by the kind of the body; ours says it itself, or has none.
  if (type === "") ctx.remove("Content-Type");
}

/** Headers of every answer. */
export function common(ctx: Context): Record<string, string> {
  return { "X-Request-Id": ctx.state.requestId, "X-Content-Type-Options": "nosniff" };
}

/** The entity tag of a body (RFC 9110, section 8.8.3), made of nothing but its bytes. */
export function entityTag(body: Uint8Array): string {
  return `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
}

/** True for the statuses that have no content (RFC 9110, sections 15.3.5 and 15.4.5). */
function isEmpty(status: number): boolean {
  return status === 204 || status === 304;
}

function bytes(body: string | Uint8Array): string | Buffer {
  return typeof body === "string" ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

function isStream(body: NonNullable<Reply["body"]>): body is AsyncIterable<string> {
  return typeof body === "object" && Symbol.asyncIterator in body;
}
