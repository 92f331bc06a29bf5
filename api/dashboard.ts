import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { BullBoardQueues, IServerAdapter, UIConfig } from "@bull-board/api/typings/app";
import Router from "@koa/router";
import type { Context } from "koa";
import { Fail } from "../core/platform/errors.ts";
import { escapeHtml } from "../core/platform/escaping.ts";
import { perObject } from "../core/platform/lazy.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { queueNames } from "../schemas/jobs.ts";
import { nothing } from "../schemas/schema.ts";
import { admit } from "./access.ts";
import { contentTypes } from "./assets.ts";
import { operatorTexts } from "./failure-view.ts";
import { sendView } from "./reply.ts";
import { metrics, type Row, route, type View } from "./route.ts";

const boardPath = "/queues";
/** All addresses of the board count as one row of the metrics. */
const row: Row = route(`GET ${boardPath}`, metrics, nothing, async () => undefined, {
  logged: false,
  hidden: true,
  failureTexts: operatorTexts,
});
/** The board runs only its own scripts and can't be framed. */
const headers = {
  "Cache-Control": "no-store",
  "Content-Security-Policy":
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; frame-ancestors 'none'; form-action 'none'",
  "Referrer-Policy": "no-referrer",
};
/** Loaded at the first request, so that other web processes don't carry it. */
const boardOf = perObject(openBoard);

export function isDashboard(address: string): boolean {
  return address === boardPath || address.startsWith(`${boardPath}/`);
}

/**
 * A read-only bull-board over the service's queues, for operators. METRICS_TOKEN is the bearer token, or the password of a browser's login
 * with any user name. It shows ids only, since jobs contain no content; the admin command retries failed jobs. Only the reading routes
 * exist, so no other site can make a browser change a queue. `@bull-board/koa` would add a body parser and a template engine with over
 * seventy packages, and its page loads fonts from another host.
 */
export async function dashboard(runtime: Runtime, ctx: Context): Promise<void> {
  ctx.state.row = row;
  if (ctx.method !== "GET" && ctx.method !== "HEAD") {
    ctx.set("Allow", "HEAD, GET");
    throw new Fail("method_not_allowed");
  }
  await admitOrAskPassword(runtime, ctx.get("authorization"));
  const board = await boardOf(runtime);
  await board.routes()(ctx as never, async () => {
    throw new Fail("not_found");
  });
}

/** A browser that is not admitted asks for the password. */
async function admitOrAskPassword(runtime: Runtime, authorization: string): Promise<void> {
  try {
    await admit(runtime, metrics, { authorization: asBearer(authorization), handle: "" });
  } catch (error) {
    if (!(error instanceof Fail) || error.status !== 401) throw error;
    const challenge = 'Basic realm="queues", charset="UTF-8"';
    throw new Fail(error.code, { detail: "METRICS_TOKEN is the password.", challenge });
  }
}

/** The browser's password as a bearer token. */
function asBearer(authorization: string): string {
  const [, encoded] = /^Basic +([A-Za-z0-9+/=]+)$/i.exec(authorization) ?? [];
  if (encoded === undefined) return authorization;
  const [, password = ""] = /^[^:]*:(.*)$/s.exec(Buffer.from(encoded, "base64").toString("utf8")) ?? [];
  return `Bearer ${password}`;
}

async function openBoard({ queues }: Runtime): Promise<Router> {
  const { createBullBoard } = await import("@bull-board/api");
  const { BullMQAdapter } = await import("@bull-board/api/bullMQAdapter");
  const adapters = queueNames.map((name) => new BullMQAdapter(queues.queue(name), { readOnlyMode: true }));
  const uiBasePath = dirname(fileURLToPath(import.meta.resolve("@bull-board/ui/package.json")));
  const options = { uiBasePath, uiConfig: { boardTitle: "Queues", hideDocsLink: true } };
  const router = new Router({ prefix: boardPath });
  createBullBoard({ queues: adapters, serverAdapter: boardRoutes(router), options });
  return router;
}

/** Registers the board's page, its files and its reading routes. */
function boardRoutes(router: Router): IServerAdapter {
  const board = {} as { queues: BullBoardQueues; views: string; uiConfig: UIConfig };
  const show = (path: string, view: (ctx: Context & { params: Record<string, string> }) => View | Promise<View>) =>
    router.get(path, async (ctx) => {
      const { headers: own, ...answer } = await view(ctx as never);
      sendView(ctx as never, { ...answer, headers: { ...headers, ...own } });
    });
  const set = (part: Partial<typeof board>): IServerAdapter => {
    Object.assign(board, part);
    return adapter;
  };
  const adapter: IServerAdapter = {
    setQueues: (queues) => set({ queues }),
    setViewsPath: (views) => set({ views }),
    setUIConfig: (uiConfig) => set({ uiConfig }),
    setErrorHandler: () => adapter,
    setStaticPath(path, folder) {
      show(`${path}/*file`, ({ params: { file = "" } }) => fileView(folder, file));
      return adapter;
    },
    setEntryRoute({ route, handler }) {
      const { name, params } = handler({ basePath: boardPath, uiConfig: board.uiConfig });
      for (const path of [route].flat()) show(path, () => pageView(join(board.views, name), params as PageValues));
      return adapter;
    },
    setApiRoutes(rows) {
      for (const { route, handler } of rows.filter(({ method }) => [method].flat().includes("get")))
        for (const path of [route].flat())
          show(path, async ({ params, query }) => {
            const { status = 200, body } = await handler({ ...board, query, params, body: {}, headers: {} });
            return { type: "application/json; charset=utf-8", status, body: JSON.stringify(body) };
          });
      return adapter;
    },
  };
  return adapter;
}

function fileView(folder: string, file: string): View {
  const type = contentTypes[extname(file)];
  if (type === undefined || !/^[a-z0-9_-][a-z0-9._-]*(\/[a-z0-9_-][a-z0-9._-]*)*$/i.test(file))
    throw new Fail("not_found");
  try {
    return { type, body: readFileSync(join(folder, file)), headers: { "Cache-Control": "private, max-age=86400" } };
  } catch (error) {
    throw new Fail("not_found", {}, error);
  }
}

type PageValues = Record<string, string>;

/** The page, with both kinds of placeholders filled: escaped text, and JSON that is already safe. */
function pageView(template: string, values: PageValues): View {
  const text = readFileSync(template, "utf8").replace(/<link href="https:[^>]*>/g, "");
  const body = text.replace(/<%([=-]) (\w+) %>/g, (_, kind: string, name: string) => {
    const value = values[name] ?? "";
    return kind === "-" ? value : escapeHtml(value);
  });
  return { type: "text/html; charset=utf-8", body };
}
