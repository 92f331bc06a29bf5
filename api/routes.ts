import Router from "@koa/router";
import { LRUCache } from "lru-cache";
import { handle as handleForm } from "../schemas/schema.ts";
import type { Row } from "./route.ts";

type Line = Pick<Row, "method" | "path">;

/** The row of a request and its path parameters. */
export interface RouteMatch<R extends Line = Row> {
  readonly row: R;
  readonly parameters: Readonly<Record<string, string>>;
}

/** Addresses whose row is cached, and the longest such address in characters. */
const MAX_CACHED = 2000;
const MAX_CACHED_LENGTH = 200;

/**
 * Finds the row of a request. A router tries its routes one after another, so there is one per path depth, and matches are
 * cached: a single plain router costs the bench row "public JSON / bare Koa" more than 15 %.
 */
export class Routes<R extends Line = Row> {
  readonly #rows: R[];
  readonly #routers = new Map<number, Router>();
  readonly #found = new LRUCache<string, RouteMatch<R>>({ max: MAX_CACHED });

  constructor(rows: R[]) {
    this.#rows = rows;
    for (const row of rows) this.#routerOf(row.path).register(row.path, [row.method], () => undefined);
  }

  /** The row that serves this path and method, if there is one. */
  find(path: string, method: string): RouteMatch<R> | undefined {
    const name = `${method} ${path}`;
    const cached = this.#found.get(name);
    if (cached) return cached;
    const found = this.#match(path, method);
    if (found && name.length <= MAX_CACHED_LENGTH) this.#found.set(name, found);
    return found;
  }

  /** The methods of a path; none if the path is unknown. */
  methods(path: string): string[] {
    const layers = this.#routers.get(depthOf(path))?.match(path, "GET").path ?? [];
    return [...new Set(layers.flatMap((layer) => layer.methods))];
  }

  #match(path: string, method: string): RouteMatch<R> | undefined {
    const layer = this.#routers.get(depthOf(path))?.match(path, method).pathAndMethod[0];
    const row = this.#rows.find((one) => one.path === layer?.path && layer.methods.includes(one.method));
    return layer && row && { row, parameters: withSafeHandle(layer.params(path, layer.captures(path))) };
  }

  #routerOf(path: string): Router {
    const cached = this.#routers.get(depthOf(path)) ?? new Router();
    this.#routers.set(depthOf(path), cached);
    return cached;
  }
}

const handlePattern = new RegExp(handleForm.pattern as string);

/** Drops a malformed handle: it is unknown anyway, and in a key it could be too long or break the hash tag. */
function withSafeHandle(parameters: Record<string, string>): Record<string, string> {
  const { handle } = parameters;
  return handle === undefined || handlePattern.test(handle) ? parameters : { ...parameters, handle: "-" };
}

/** Number of path segments; a trailing slash doesn't count. */
function depthOf(path: string): number {
  let depth = 0;
  for (let at = 0; at < path.length - 1; at++) if (path.charCodeAt(at) === 47) depth++;
  return depth;
}
