import type { Context } from "koa";
import { handleOfDomain } from "../core/pages/visits.ts";
import { Fail } from "../core/errors.ts";
import type { Env } from "../core/env.ts";
import type { Runtime } from "../core/runtime.ts";

/** False for the service's own hosts and for addresses, which is nearly always. */
export function mayBePageHost({ env }: Runtime, ctx: Context): boolean {
  const host = env.TRUST_PROXY ? ctx.host : (ctx.req.headers.host ?? "");
  return !ownHosts(env).has(host) && !/^([\d.]+|\[.*\]|[^.]*)(:\d+)?$/.test(host);
}

/** A page host serves pages, assets and public routes and nothing else (contract 4); other hosts pass untouched. */
export async function pageHost(runtime: Runtime, ctx: Context): Promise<void> {
  const handle = await handleOfHost(runtime, ctx.host.toLowerCase());
  if (handle === undefined || /^\/(assets|v2\/public)\//.test(ctx.path)) return;
  ctx.state.pageHost = ctx.host;
  const [, slug] = /^\/([^/]*)\/?$/.exec(ctx.path) ?? [];
  if (slug === undefined) throw new Fail("not_found");
  ctx.path = `/p/${handle}/${slug === "" ? "index" : slug}`;
}

/** The handle whose pages a host serves; undefined for unknown hosts. */
async function handleOfHost(runtime: Runtime, host: string): Promise<string | undefined> {
  const { PUBLIC_DOMAIN } = runtime.env;
  if (PUBLIC_DOMAIN && host.endsWith(`.${PUBLIC_DOMAIN}`)) return host.slice(0, -PUBLIC_DOMAIN.length - 1);
  return ownHosts(runtime.env).has(host) ? undefined : handleOfDomain(runtime, host.replace(/:\d+$/, ""));
}

const hosts = new WeakMap<Env, Set<string>>();

function ownHosts(env: Env): Set<string> {
  const known =
    hosts.get(env) ?? new Set([env.BASE_URL, env.APP_URL, env.LOGIN_URL].map((address) => new URL(address).host));
  hosts.set(env, known);
  return known;
}
