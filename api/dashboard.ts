import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type {
  AppControllerRoute,
  AppViewRoute,
  BullBoardQueues,
  IServerAdapter,
  UIConfig,
} from "@bull-board/api/typings/app";
import type { Context } from "koa";
import { Fail } from "../core/platform/errors.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { escapeHtml } from "../core/platform/words.ts";
import { queueNames } from "../schemas/jobs.ts";
import { object } from "../schemas/schema.ts";
import { admit } from "./access.ts";
import { contentTypes } from "./assets.ts";
import type { HttpReply } from "./reply.ts";
import { metrics, type Row, route, type View } from "./route.ts";
import { Routes } from "./routes.ts";

const boardPath = "/queues";
/** All addresses of the board count as one row of the metrics. */
const row: Row = route(`GET ${boardPath}`, metrics, object({}), async () => undefined, { logged: false, hidden: true });
/** The board runs only its own scripts and can't be framed. */
const headers = {
  "Cache-Control": "no-store",
  "Content-Security-Policy":
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; frame-ancestors 'none'; form-action 'none'",
  "Referrer-Policy": "no-referrer",
};
const boards = new WeakMap<Runtime, Promise<Board>>();

/** True for the board's addresses. */
export function isDashboard(address: string): boolean {
  return address === boardPath || address.startsWith(`${boardPath}/`);
}

/**
 * A read-only bull-board over the service's queues, for operators. METRICS_TOKEN is the bearer token, or the password of a browser's login
 * with any user name. It shows ids only, since jobs contain no content; the admin command retries failed jobs. Only the reading routes
 * exist, so no other site can make a browser change a queue. `@bull-board/koa` would add a body parser and a template engine with over
 * seventy packages, and its page loads fonts from another host.
 */
export async function dashboard(runtime: Runtime, ctx: Context): Promise<HttpReply> {
  ctx.state.row = row;
  if (ctx.method !== "GET" && ctx.method !== "HEAD") {
    ctx.set("Allow", "GET");
    throw new Fail("method_not_allowed");
  }
  if (!(await isAdmitted(runtime, ctx))) return asksForPassword;
  const board = boards.get(runtime) ?? openBoard(runtime);
  boards.set(runtime, board);
  const { type, status = 200, body, ...view } = await viewOf(await board, ctx);
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

/** What bull-board registers with a web framework. */
interface Board {
  queues: BullBoardQueues;
  views: string;
  entry: AppViewRoute;
  data: AppControllerRoute[];
  uiConfig: UIConfig;
  routes: Routes<BoardRoute>;
}

/** An address of the board: the page, or data as JSON. */
interface BoardRoute {
  method: "GET";
  path: string;
  view: (params: Record<string, string>, query: Context["query"]) => Promise<View>;
}

/** Loads the board at the first request, so that other web processes don't carry it. */
async function openBoard({ queues }: Runtime): Promise<Board> {
  const { createBullBoard } = await import("@bull-board/api");
  const { BullMQAdapter } = await import("@bull-board/api/bullMQAdapter");
  const adapters = queueNames.map((name) => new BullMQAdapter(queues.queue(name), { readOnlyMode: true }));
  const uiBasePath = dirname(fileURLToPath(import.meta.resolve("@bull-board/ui/package.json")));
  const options = { uiBasePath, uiConfig: { boardTitle: "Queues", hideDocsLink: true } };
  const board = {} as Board;
  createBullBoard({ queues: adapters, serverAdapter: recorder(board), options });
  return { ...board, routes: new Routes([...pageRoutes(board), ...dataRoutes(board)]) };
}

/** The page, one of its files, or data, by the path below the board's; `not_found` for anything else. */
async function viewOf(board: Board, { path: address, query }: Context): Promise<View> {
  const path = address.slice(boardPath.length) || "/";
  if (path.startsWith("/static/")) return file(board, path);
  const found = board.routes.find(path, "GET");
  if (found === undefined) throw new Fail("not_found");
  return found.row.view(found.parameters, query);
}

function recorder(board: Board): IServerAdapter {
  const keep = (part: Partial<Board>): IServerAdapter => {
    Object.assign(board, part);
    return adapter;
  };
  const adapter: IServerAdapter = {
    setQueues: (queues) => keep({ queues }),
    setViewsPath: (views) => keep({ views }),
    setStaticPath: () => adapter,
    setEntryRoute: (entry) => keep({ entry }),
    setErrorHandler: () => adapter,
    setApiRoutes: (data) => keep({ data }),
    setUIConfig: (uiConfig) => keep({ uiConfig }),
  };
  return adapter;
}

/** The addresses of the page, whose script shows them. */
function pageRoutes({ entry, uiConfig, views }: Board): BoardRoute[] {
  const { name, params } = entry.handler({ basePath: boardPath, uiConfig });
  const template = readFileSync(join(views, name), "utf8").replace(/<link href="https:[^>]*>/g, "");
  const body = filled(template, params as Record<string, string>);
  const view = async (): Promise<View> => ({ type: "text/html; charset=utf-8", body });
  return [entry.route].flat().map((path) => ({ method: "GET", path, view }));
}

function dataRoutes({ data, queues, uiConfig }: Board): BoardRoute[] {
  const reading = data.filter(({ method }) => [method].flat().includes("get"));
  return reading.flatMap(({ route, handler }) => {
    const view: BoardRoute["view"] = async (params, query) => {
      const { status = 200, body } = await handler({ queues, uiConfig, query, params, body: {}, headers: {} });
      return { type: "application/json; charset=utf-8", status, body: JSON.stringify(body) };
    };
    return [route].flat().map((path) => ({ method: "GET" as const, path, view }));
  });
}

function file({ views }: Board, path: string): View {
  const type = contentTypes[extname(path)];
  if (type === undefined || !/^(\/[a-z0-9_-][a-z0-9._-]*)+$/i.test(path)) throw new Fail("not_found");
  try {
    return { type, body: readFileSync(join(views, path)), headers: { "Cache-Control": "private, max-age=86400" } };
  } catch (error) {
    throw new Fail("not_found", {}, error);
  }
}

/** Fills both kinds of placeholders of the page: escaped text, and JSON that is already safe. */
function filled(template: string, values: Record<string, string>): string {
  return template.replace(/<%([=-]) (\w+) %>/g, (_, kind: string, name: string) => {
    const value = values[name] ?? "";
    return kind === "-" ? value : escapeHtml(value);
  });
}
