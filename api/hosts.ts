import type { Context } from "koa";
import { handleOfDomain } from "../core/pages/visits.ts";
import { Fail } from "../core/errors.ts";
import type { Env } from "../core/env.ts";
import type { Runtime } from "../core/runtime.ts";

/** A page host serves pages, assets and public routes and nothing else (contract 4); other hosts pass untouched. */
export async function pageHost(runtime: Runtime, ctx: Context): Promise<void> {
  const handle = await handleOfHost(runtime, ctx.host.toLowerCase());
  if (handle === undefined || /^\/(assets|v2\/public)\//.test(ctx.path)) return;
  ctx.state.pageHost = ctx.host;
  const [, slug] = /^\/([^/]*)\/?$/.exec(ctx.path) ?? [];
  if (slug === undefined) throw new Fail("not_found");
  ctx.path = `/p/${handle}/${slug === "" ? "index" : slug}`;
}

/** The handle whose pages a host serves; undefined for the service's own hosts and for unknown ones. */
async function handleOfHost(runtime: Runtime, host: string): Promise<string | undefined> {
  const { PUBLIC_DOMAIN } = runtime.env;
  if (PUBLIC_DOMAIN && host.endsWith(`.${PUBLIC_DOMAIN}`)) return host.slice(0, -PUBLIC_DOMAIN.length - 1);
  const name = host.replace(/:\d+$/, "");
  if (!name.includes(".") || /^([\d.]+|\[.*\])$/.test(name) || ownHosts(runtime.env).has(host)) return undefined;
  return handleOfDomain(runtime, name);
}

const hosts = new WeakMap<Env, Set<string>>();

function ownHosts(env: Env): Set<string> {
  const known =
    hosts.get(env) ?? new Set([env.BASE_URL, env.APP_URL, env.LOGIN_URL].map((address) => new URL(address).host));
  hosts.set(env, known);
  return known;
}
