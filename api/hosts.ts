import type { Context } from "koa";
import { handleOfDomain } from "../core/pages/visits.ts";
import { Fail } from "../core/platform/errors.ts";
import { isRedisAway } from "../core/store/redis.ts";
import type { Env } from "../core/platform/env.ts";
import type { Runtime } from "../core/platform/runtime.ts";

/** False for the service's own hosts and for addresses, which is nearly always. */
export function mayBePageHost({ env }: Runtime, ctx: Context): boolean {
  const host = env.TRUST_PROXY ? ctx.host : (ctx.req.headers.host ?? "");
  return !ownHosts(env).has(host) && !/^([\d.]+|\[.*\]|[^.]*)(:\d+)?$/.test(host);
}

/** A page host serves pages, assets and public routes and nothing else (contract 4); other hosts pass untouched. */
export async function pageHost(runtime: Runtime, ctx: Context): Promise<void> {
  if (/^\/(assets|v2\/public)\//.test(ctx.path)) return;
  const host = portless(ctx.host.toLowerCase());
  const handle = await handleOfHost(runtime, host).catch((error) => unlessAlive(ctx, error));
  if (handle === undefined) return;
  ctx.state.pageHost = ctx.host;
  const [, slug] = /^\/([^/]*)\/?$/.exec(ctx.path) ?? [];
  if (slug === undefined) throw new Fail("not_found");
  ctx.path = `/p/${handle}/${slug === "" ? "index" : slug}`;
}

/** Whether a process is up can be asked at any host, also while Redis can't say whose host that is. */
function unlessAlive(ctx: Context, error: unknown): undefined {
  if (ctx.path !== "/healthz" || !isRedisAway(error)) throw error;
}

/** The handle whose pages a host serves; undefined for unknown hosts. */
async function handleOfHost(runtime: Runtime, host: string): Promise<string | undefined> {
  if (ownHosts(runtime.env).has(host)) return undefined;
  const parent = portless(runtime.env.PUBLIC_DOMAIN ?? "");
  if (parent !== "" && host.endsWith(`.${parent}`)) return host.slice(0, -parent.length - 1);
  return handleOfDomain(runtime, host);
}

/** A port says how a host was reached, not whose it is. */
function portless(host: string): string {
  return host.replace(/:\d+$/, "");
}

const hosts = new WeakMap<Env, Set<string>>();

/** Hosts of the service's own addresses, with and without their ports. */
function ownHosts(env: Env): Set<string> {
  const known = hosts.get(env) ?? new Set(own(env).flatMap(({ host, hostname }) => [host, hostname]));
  hosts.set(env, known);
  return known;
}

function own({ BASE_URL, APP_URL, LOGIN_URL }: Env): URL[] {
  return [BASE_URL, APP_URL, LOGIN_URL].map((address) => new URL(address));
}
