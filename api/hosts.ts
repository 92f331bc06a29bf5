import type { Context } from "koa";
import { handleOfHost, isOwnHost, pageUrl } from "../core/pages/face.ts";
import { Fail } from "../core/platform/errors.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { isRedisAway } from "../core/store/redis.ts";
import type { Reply } from "./reply.ts";

/** False for the service's own hosts and for addresses, which is nearly always. */
export function mayBePageHost({ env }: Runtime, ctx: Context): boolean {
  const host = env.TRUST_PROXY ? ctx.host : (ctx.req.headers.host ?? "");
  return !isOwnHost(env, host) && !/^([\d.]+|\[.*\]|[^.]*)(:\d+)?$/.test(host);
}

/** A page host serves pages, assets and public routes and nothing else (docs/reference.md, "Public page"); other hosts pass untouched. */
export async function pageHost(runtime: Runtime, ctx: Context): Promise<void> {
  if (/^\/(assets\/|v2\/public\/|favicon\.ico$)/.test(ctx.path)) return;
  const handle = await handleOfHost(runtime, ctx.host).catch((error) => unlessAlive(ctx, error));
  // A domain that nobody has attached is not the service's own, which has a front door.
  if (handle === undefined && ctx.path === "/") throw new Fail("not_found");
  if (handle === undefined) return;
  ctx.state.pageHost = ctx.host;
  ctx.state.handle = handle;
  const [, slug] = /^\/([^/]*)\/?$/.exec(ctx.path) ?? [];
  if (slug === undefined) throw new Fail("not_found");
  ctx.path = `/p/${handle}/${slug === "" ? "index" : slug}`;
}

const pagePath = /^\/p\/([a-z0-9-]+)\/([a-z0-9-]+)\/?$/;

/**
 * The way to a page's own host for those who ask for it at another one: the HTML of owners shares no origin with the sign-in.
 * Undefined without PUBLIC_DOMAIN and for all other paths.
 */
export function movedPage(runtime: Runtime, { path, search, state }: Context): Reply | undefined {
  if (runtime.env.PUBLIC_DOMAIN === undefined || state.pageHost) return undefined;
  const [, handle, slug] = pagePath.exec(path) ?? [];
  if (handle === undefined || slug === undefined) return undefined;
  return { status: 301, headers: { Location: pageUrl(runtime, handle, slug) + search, "Cache-Control": "no-cache" } };
}

/** Whether a process is up can be asked at any host, also while Redis can't say whose host that is. */
function unlessAlive(ctx: Context, error: unknown): undefined {
  if (ctx.path !== "/healthz" || !isRedisAway(error)) throw error;
}
