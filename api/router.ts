import Router from "@koa/router";
import { handle as handleForm } from "../schemas/schema.ts";
import type { Row } from "./route.ts";

export interface RouteMatch {
  row: Row;
  parameters: Record<string, string>;
}

/**
 * Finds the row of a request. A router of Koa tries its routes one after another, so there is one per method and path depth: a single router costs
 * the bench row "public JSON / bare Koa" more than 15 %.
 */
export class RowRouter {
  readonly #routers = new Map<string, Router>();
  readonly #rows = new Map<unknown, Row>();

  constructor(rows: Row[]) {
    for (const row of rows) {
      const kind = kindOf(row.path, row.method);
      const router = this.#routers.get(kind) ?? new Router();
      this.#routers.set(kind, router);
      this.#rows.set(
        router.register(row.path, [row.method], () => undefined),
        row,
      );
    }
  }

  find(path: string, method: string): RouteMatch | undefined {
    const router = this.#routers.get(kindOf(path, method === "HEAD" ? "GET" : method));
    const layer = router?.stack.find((one) => one.match(path));
    const row = this.#rows.get(layer);
    return layer && row && { row, parameters: withSafeHandle(layer.params(path, layer.captures(path))) };
  }

  /** The methods of a path; none if the path is unknown. */
  methods(path: string): string[] {
    const layers = [...this.#routers.values()].flatMap((router) => router.match(path, "GET").path);
    const methods = new Set(layers.flatMap((layer) => layer.methods));
    // The root's layer matches "//" too, which has another depth.
    return [...methods].filter((method) => this.find(path, method));
  }
}

const handlePattern = new RegExp(handleForm.pattern as string);

/** Drops a malformed handle: it is unknown anyway, and in a key it could be too long or break the hash tag. */
function withSafeHandle(parameters: Record<string, string>): Record<string, string> {
  const { handle } = parameters;
  return handle === undefined || handlePattern.test(handle) ? parameters : { ...parameters, handle: "-" };
}

/** Method and number of path segments; a trailing slash doesn't count. */
function kindOf(path: string, method: string): string {
  return method + path.slice(0, -1).split("/").length;
}
