import { readFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import type {
  AppControllerRoute,
  AppViewRoute,
  BullBoardQueues,
  IServerAdapter,
  UIConfig,
} from "@bull-board/api/typings/app";
import { Fail } from "../core/platform/errors.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { escapeHtml } from "../core/platform/words.ts";
import { queueNames } from "../schemas/jobs.ts";
import { contentTypes } from "./assets.ts";
import type { View } from "./route.ts";
import { Routes } from "./routes.ts";

type Query = Record<string, string | string[] | undefined>;

/** Path of the board. */
const boardPath = "/queues";

/** What bull-board registers with a web framework. */
interface Registered {
  queues: BullBoardQueues;
  views: string;
  entry: AppViewRoute;
  data: AppControllerRoute[];
  uiConfig: UIConfig;
}

/** An address of the board: the page, or data as JSON. */
interface BoardRoute {
  method: "GET";
  path: string;
  view: (params: Record<string, string>, query: Query) => Promise<View>;
}

/**
 * A read-only bull-board over the service's queues: answers the page, one of its files, or data, by the path below `/queues`; `not_found`
 * for anything else. It shows ids only, since jobs contain no content; the admin command retries failed jobs. Only the reading routes
 * exist, so no other site can make a browser change a queue. `@bull-board/koa` would add a body parser and a template engine with over
 * seventy packages, and its page loads fonts from another host.
 */
export function openQueueBoard({ queues }: Pick<Runtime, "queues">): (path: string, query: Query) => Promise<View> {
  const adapters = queueNames.map((name) => new BullMQAdapter(queues.queue(name), { readOnlyMode: true }));
  const uiBasePath = dirname(fileURLToPath(import.meta.resolve("@bull-board/ui/package.json")));
  const options = { uiBasePath, uiConfig: { boardTitle: "Queues", hideDocsLink: true } };
  const board = {} as Registered;
  createBullBoard({ queues: adapters, serverAdapter: recorder(board), options });
  const routes = new Routes([...pageRoutes(board), ...dataRoutes(board)]);
  return async (path, query) => {
    if (path.startsWith("/static/")) return file(board, path);
    const found = routes.find(path, "GET");
    if (found === undefined) throw new Fail("not_found");
    return found.row.view(found.parameters, query);
  };
}

function recorder(board: Registered): IServerAdapter {
  const keep = (part: Partial<Registered>): IServerAdapter => {
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
function pageRoutes({ entry, uiConfig, views }: Registered): BoardRoute[] {
  const { name, params } = entry.handler({ basePath: boardPath, uiConfig });
  const template = readFileSync(join(views, name), "utf8").replace(/<link href="https:[^>]*>/g, "");
  const body = filled(template, params as Record<string, string>);
  const view = async (): Promise<View> => ({ type: "text/html; charset=utf-8", body });
  return [entry.route].flat().map((path) => ({ method: "GET", path, view }));
}

function dataRoutes({ data, queues, uiConfig }: Registered): BoardRoute[] {
  const reading = data.filter(({ method }) => [method].flat().includes("get"));
  return reading.flatMap(({ route, handler }) => {
    const view: BoardRoute["view"] = async (params, query) => {
      const { status = 200, body } = await handler({ queues, uiConfig, query, params, body: {}, headers: {} });
      return { type: "application/json; charset=utf-8", status, body: JSON.stringify(body) };
    };
    return [route].flat().map((path) => ({ method: "GET" as const, path, view }));
  });
}

function file({ views }: Registered, path: string): View {
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
