import type { ServerResponse } from "node:http";
import type { Context } from "koa";
import type { RunChunk } from "../core/platform/runtime.ts";

/** Ms between keep-alive comments, so that proxies don't close a silent stream (docs/reference.md, "Chat stream"). */
const KEEP_ALIVE_MS = 10_000;

/** Ms within which a reader must accept sent data; then its stream is closed, so that no buffer grows. */
const TIMEOUT_MS = 30_000;

const headers = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  "x-vercel-ai-ui-message-stream": "v1",
  "x-accel-buffering": "no",
};

/** Sends chunks as events as they arrive, and then `[DONE]`. Ends the iteration when the reader disconnects. */
export async function sendStream(ctx: Context, events: AsyncIterable<RunChunk>): Promise<void> {
  ctx.respond = false;
  const { res } = ctx;
  res.writeHead(200, headers);
  res.write(": open\n\n");
  const keepAlive = setInterval(() => res.write(": pulse\n\n"), KEEP_ALIVE_MS);
  try {
    await forward(res, events);
    res.end("data: [DONE]\n\n");
  } finally {
    clearInterval(keepAlive);
    if (!res.writableEnded) res.destroy();
  }
}

async function forward(res: ServerResponse, events: AsyncIterable<RunChunk>): Promise<void> {
  const iterator = events[Symbol.asyncIterator]();
  const leave = (): void => void iterator.return?.();
  res.once("close", leave);
  // No event comes for a reader that left before the answer began.
  if (res.destroyed) leave();
  try {
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
      if (res.destroyed) return;
      if (!res.write(`id: ${next.value.id}\ndata: ${next.value.chunk}\n\n`)) await drained(res);
    }
  } finally {
    res.off("close", leave);
    await iterator.return?.();
  }
}

function drained(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => res.destroy(), TIMEOUT_MS);
    const done = (): void => {
      clearTimeout(timer);
      res.off("drain", done).off("close", done);
      resolve();
    };
    res.once("drain", done).once("close", done);
  });
}
