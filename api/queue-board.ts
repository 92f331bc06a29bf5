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
import { queueNames } from "../schemas/jobs.ts";
import type { View } from "./route.ts";
import { escapeHtml } from "./shell.ts";

/** A request to the board: the path below `/queues`, and the query. */
interface BoardRequest {
  path: string;
  query: Record<string, string | string[] | undefined>;
}

type Match = { route: AppControllerRoute; params: Record<string, string> };

const types: Record<string, string> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".json": "application/json",
  ".map": "application/json",
};
/** Path of the board. */
const boardPath = "/queues";

/**
 * A read-only bull-board over the service's queues. It shows ids only, since jobs contain no content; the admin command retries failed
 * jobs. Only the reading routes exist, so no other site can make a browser change a queue. `@bull-board/koa` would add a second router, a
 * body parser and a template engine with over seventy packages, and its page loads fonts from another host.
 */
export class QueueBoard {
  #queues: BullBoardQueues = new Map();
  #views = "";
  #entry: AppViewRoute | undefined;
  #routes: AppControllerRoute[] = [];
  #settings: UIConfig = {};

  constructor({ queues }: Pick<Runtime, "queues">) {
    const adapters = queueNames.map((name) => new BullMQAdapter(queues.queue(name), { readOnlyMode: true }));
    const uiBasePath = dirname(fileURLToPath(import.meta.resolve("@bull-board/ui/package.json")));
    const options = { uiBasePath, uiConfig: { boardTitle: "Queues", hideDocsLink: true } };
    createBullBoard({ queues: adapters, serverAdapter: this.#adapter(), options });
  }

  /** The page, one of its files, or data as JSON; `not_found` for anything else. */
  async answer({ path, query }: BoardRequest): Promise<View> {
    if (path.startsWith("/static/")) return this.#file(path);
    const found = this.#find(path);
    if (found === undefined) return this.#page(path);
    const { route, params } = found;
    const asked = { queues: this.#queues, uiConfig: this.#settings, query, params, body: {}, headers: {} };
    const { status = 200, body } = await route.handler(asked);
    return { type: "application/json; charset=utf-8", status, body: JSON.stringify(body) };
  }

  /** Records what bull-board registers with a web framework. */
  #adapter(): IServerAdapter {
    const keep = (assign: () => unknown): IServerAdapter => {
      assign();
      return adapter;
    };
    const adapter: IServerAdapter = {
      setQueues: (queues) => keep(() => (this.#queues = queues)),
      setViewsPath: (folder) => keep(() => (this.#views = folder)),
      setStaticPath: () => adapter,
      setEntryRoute: (route) => keep(() => (this.#entry = route)),
      setErrorHandler: () => adapter,
      setApiRoutes: (routes) =>
        keep(() => (this.#routes = routes.filter(({ method }) => [method].flat().includes("get")))),
      setUIConfig: (config) => keep(() => (this.#settings = config)),
    };
    return adapter;
  }

  #find(path: string): Match | undefined {
    for (const route of this.#routes)
      for (const pattern of [route.route].flat()) {
        const params = parametersOf(pattern, path);
        if (params) return { route, params };
      }
    return undefined;
  }

  #page(path: string): View {
    const entry = this.#entry as AppViewRoute;
    if (![entry.route].flat().some((pattern) => parametersOf(pattern, path))) throw new Fail("not_found");
    const { name, params } = entry.handler({ basePath: boardPath, uiConfig: this.#settings });
    const template = readFileSync(join(this.#views, name), "utf8").replace(/<link href="https:[^>]*>/g, "");
    return { type: "text/html; charset=utf-8", body: filled(template, params as Record<string, string>) };
  }

  #file(path: string): View {
    const type = types[extname(path)];
    if (type === undefined || !/^(\/[a-z0-9_-][a-z0-9._-]*)+$/i.test(path)) throw new Fail("not_found");
    try {
      const headers = { "Cache-Control": "private, max-age=86400" };
      return { type, body: readFileSync(join(this.#views, path)), headers };
    } catch (error) {
      throw new Fail("not_found", {}, error);
    }
  }
}

/** The parameters of a path that matches a pattern like `/api/queues/:queueName`; undefined if it doesn't match. */
function parametersOf(pattern: string, path: string): Record<string, string> | undefined {
  const [parts, given] = [pattern.split("/"), path.split("/")];
  if (parts.length !== given.length) return undefined;
  if (!parts.every((part, at) => part === given[at] || (part.startsWith(":") && given[at] !== ""))) return undefined;
  const named = parts.flatMap((part, at) => (part.startsWith(":") ? [[part.slice(1), given[at] as string]] : []));
  return Object.fromEntries(named.map(([name, value]) => [name, decoded(value as string)]));
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
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
