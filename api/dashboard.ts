import { Buffer } from "node:buffer";
import type { Context } from "koa";
import { Fail } from "../core/platform/errors.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { object } from "../schemas/schema.ts";
import { admit } from "./access.ts";
import type { openQueueBoard } from "./queue-board.ts";
import type { HttpReply } from "./reply.ts";
import { metrics, type Row, route } from "./route.ts";

const path = "/queues";
/** All addresses of the board count as one row of the metrics. */
const row: Row = route(`GET ${path}`, metrics, object({}), async () => undefined, { logged: false, hidden: true });
/** The board runs only its own scripts and can't be framed. */
const headers = {
  "Cache-Control": "no-store",
  "Content-Security-Policy":
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; frame-ancestors 'none'; form-action 'none'",
  "Referrer-Policy": "no-referrer",
};
type QueueBoard = ReturnType<typeof openQueueBoard>;
const boards = new WeakMap<Runtime, Promise<QueueBoard>>();

/** True for the board's addresses. */
export function isDashboard(address: string): boolean {
  return address === path || address.startsWith(`${path}/`);
}

/**
 * The queue board for operators, at `/queues`. METRICS_TOKEN is the bearer token, or the password of a browser's login with any user name.
 * The board is loaded at the first request, so that other web processes don't carry it.
 */
export async function dashboard(runtime: Runtime, ctx: Context): Promise<HttpReply> {
  ctx.state.row = row;
  if (ctx.method !== "GET" && ctx.method !== "HEAD") {
    ctx.set("Allow", "GET");
    throw new Fail("method_not_allowed");
  }
  if (!(await isAdmitted(runtime, ctx))) return asksForPassword;
  const board = await boardOf(runtime);
  const view = await board(ctx.path.slice(path.length) || "/", ctx.query);
  const { type, status = 200, body } = view;
  return { status, headers: { ...headers, ...view.headers, "Content-Type": type }, body };
}

const asksForPassword: HttpReply = {
  status: 401,
  headers: {
    ...headers,
    "WWW-Authenticate": 'Basic realm="queues", charset="UTF-8"',
    "Content-Type": "text/plain; charset=utf-8",
  },
  body: "METRICS_TOKEN is the password.\n",
};

/** False if the browser must ask for the password. */
async function isAdmitted(runtime: Runtime, ctx: Context): Promise<boolean> {
  try {
    await admit(runtime, metrics, { authorization: asBearer(ctx.get("authorization")), handle: undefined });
    return true;
  } catch (error) {
    if (!(error instanceof Fail) || error.status !== 401) throw error;
    return false;
  }
}

/** The browser's password as a bearer token. */
function asBearer(authorization: string): string {
  const [, encoded] = /^Basic +([A-Za-z0-9+/=]+)$/i.exec(authorization) ?? [];
  if (encoded === undefined) return authorization;
  const [, password = ""] = /^[^:]*:(.*)$/s.exec(Buffer.from(encoded, "base64").toString("utf8")) ?? [];
  return `Bearer ${password}`;
}

function boardOf(runtime: Runtime): Promise<QueueBoard> {
  const board = boards.get(runtime) ?? import("./queue-board.ts").then(({ openQueueBoard }) => openQueueBoard(runtime));
  boards.set(runtime, board);
  return board;
}
