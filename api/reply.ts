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

/**
 * Sends a reply with the headers that every answer has. Bytes go out with their head in one write, past Koa: it would check and
 * copy each header by itself, which takes as long as all else that a page needs.
 */
export function sendReply(ctx: Context, { status, headers, body = "" }: Reply): void {
  if (isStream(body)) {
    ctx.status = status;
    ctx.set({ ...common(ctx), ...headers });
    ctx.body = Readable.from(body);
    return;
  }
  ctx.respond = false;
  const head = ["X-Request-Id", ctx.state.requestId, "X-Content-Type-Options", "nosniff"];
  for (const name in headers) for (const value of [headers[name] as string].flat()) head.push(name, value);
  if (!isEmpty(status)) head.push("Content-Length", String(Buffer.byteLength(body)));
  ctx.res.writeHead(status, head).end(body);
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

function isStream(body: NonNullable<Reply["body"]>): body is AsyncIterable<string> {
  return typeof body === "object" && Symbol.asyncIterator in body;
}
