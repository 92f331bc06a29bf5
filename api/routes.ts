import Router from "@koa/router";
import type { Context, Middleware, Next } from "koa";
import type { Row } from "./route.ts";

/**
 * Finds the row of a request. There is one router for each depth of path, since a router tries all of its routes one after
 * another and a path can only match those with as many segments.
 */
export class Routes {
  readonly #rows: Row[];
  readonly #routers = new Map<number, Router>();
  readonly #middlewares = new Map<number, Middleware>();

  constructor(rows: Row[], serve: (row: Row, ctx: Context) => Promise<void>) {
    this.#rows = rows;
    for (const row of rows) this.#routerOf(row.path).register(row.path, [row.method], (ctx) => serve(row, ctx));
    for (const [depth, router] of this.#routers) this.#middlewares.set(depth, router.routes() as Middleware);
  }

  /** Serves the request if a row is there for it, else goes on. */
  serve(ctx: Context, next: Next): Promise<void> {
    const middleware = this.#middlewares.get(depthOf(ctx.path));
    return middleware ? middleware(ctx as never, next) : next();
  }

  /** The row that would serve this path and method. */
  find(path: string, method: string): Row | undefined {
    const found = this.#routers.get(depthOf(path))?.match(path, method).pathAndMethod[0]?.path;
    return this.#rows.find((row) => row.path === found && row.method === (method === "HEAD" ? "GET" : method));
  }

  /** The methods that this path has; none for a path that isn't there. */
  methods(path: string): string[] {
    const layers = this.#routers.get(depthOf(path))?.match(path, "GET").path ?? [];
    return [...new Set(layers.flatMap((layer) => layer.methods))];
  }

  #routerOf(path: string): Router {
    const known = this.#routers.get(depthOf(path)) ?? new Router();
    this.#routers.set(depthOf(path), known);
    return known;
  }
}

/** Segments of a path; a slash at its end counts for nothing. */
function depthOf(path: string): number {
  let depth = 0;
  for (let at = 0; at < path.length - 1; at++) if (path.charCodeAt(at) === 47) depth++;
  return depth;
}
