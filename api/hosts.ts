import type { IncomingMessage } from "node:http";
import type { Context } from "koa";
import { handleOfHost, pageUrl } from "../core/pages/face.ts";
import { Fail, invalid } from "../core/platform/errors.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { isRedisAway } from "../core/store/redis.ts";
import type { View } from "./route.ts";
import type { RouteMatch } from "./router.ts";

/** What no host contains (RFC 3986, section 3.2.2). */
const notInHost = /[^\w.~%!$&'()*+,;=:[\]-]/;

/**
 * Makes a target in absolute form the host and the path of the request, and refuses a field that is repeated or names no host (RFC 9112,
 * sections 3.2 and 3.2.2): a proxy may have read another host than we would. `not_found` for a target that is no address.
 */
export function settleHost(req: IncomingMessage): void {
  const { rawHeaders, headers, url = "" } = req;
  const fields = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === "host");
  if (fields.length > 1 || notInHost.test(headers.host ?? "")) throw invalid("/Host", "must be one host");
  if (url.startsWith("/")) return;
  if (!URL.canParse(url)) throw new Fail("not_found");
  const { host, pathname, search } = new URL(url);
  headers.host = host;
  req.url = pathname + search;
}

/** Restricts a page host to pages, assets and public routes (docs/reference.md, "Public page"). Other hosts pass. */
export async function pageHost(runtime: Runtime, ctx: Context): Promise<void> {
  if (/^\/(assets\/|v2\/public\/|favicon\.ico$)/.test(ctx.path)) return;
  const handle = await handleOfHost(runtime, ctx.host).catch((error) => allowLiveness(ctx, error));
  // An unattached domain has no front door; only the service's own host has one.
  if (handle === undefined && ctx.path === "/") throw new Fail("not_found");
  if (handle === undefined) return;
  ctx.state.pageHost = ctx.host;
  ctx.state.handle = handle;
  const [, slug] = /^\/([^/]*)\/?$/.exec(ctx.path) ?? [];
  if (slug === undefined) throw new Fail("not_found");
  ctx.path = `/p/${handle}/${slug === "" ? "index" : slug}`;
}

/**
 * Redirects the request for a page at another host to the page's own host, so that owners' HTML never shares an origin with the sign-in.
 * Undefined without PUBLIC_DOMAIN, for all other rows, and for a name that is no handle and so has no host. The row decides, since a path
 * has several spellings (`/P/acme/%70ricing`).
 */
export function movedPage(
  runtime: Runtime,
  { row, parameters: { handle = "", pageSlug } }: RouteMatch,
  { search, state }: Context,
): View | undefined {
  if (runtime.env.PUBLIC_DOMAIN === undefined || state.pageHost) return undefined;
  if (!row.path.startsWith("/p/") || pageSlug === undefined || handle.startsWith("-")) return undefined;
  const address = pageUrl(runtime, handle, encodeURIComponent(pageSlug)) + search;
  return { status: 301, headers: { Location: address, "Cache-Control": "no-cache" } };
}

/** Liveness can be checked at any host, also while Redis can't resolve the host. */
function allowLiveness(ctx: Context, error: unknown): undefined {
  if (ctx.path !== "/healthz" || !isRedisAway(error)) throw error;
}
