import type { publishedPages } from "../../schemas/pages.ts";
import type { Input } from "../../schemas/schema.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { pipelined } from "../store/redis.ts";
import { type PagePath, pageUrl } from "./pages.ts";

/** The newest pages of a handle, of which the published ones are in its sitemap. */
const MAX_LISTED = 1000;

/** The handle that a host names or serves; under the public domain it may not exist. Undefined for the service's own hosts and all others. */
export async function handleOfHost(runtime: Runtime, name: string): Promise<string | undefined> {
  const host = hostName(name);
  if (runtime.env.ownHosts.has(host)) return undefined;
  const parent = hostName(runtime.env.PUBLIC_DOMAIN ?? "");
  if (parent !== "" && host.endsWith(`.${parent}`)) return host.slice(0, -parent.length - 1);
  // A custom domain serves pages once its ownership is proven.
  const [handle, owned] = await runtime.redis.hmget(keys.domain(host), "handle", "owned");
  return handle && owned === "1" ? handle : undefined;
}

/** The address of a page on the visitor's host, if that serves the handle; else the page's own address. */
export async function visitedUrl(runtime: Runtime, { handle, pageSlug }: PagePath, host: string): Promise<URL> {
  const isServedThere = (await handleOfHost(runtime, host)) === handle;
  const { protocol } = new URL(runtime.env.BASE_URL);
  const visited = `${protocol}//${host}/${pageSlug}`;
  // The port of a request's host can be any number.
  return new URL(isServedThere && URL.canParse(visited) ? visited : pageUrl(runtime, handle, pageSlug));
}

/** The published ones of the newest pages of an active handle, newest first, with their addresses on the requested host; `not_found` otherwise. */
export async function listPublished(
  runtime: Runtime,
  { handle, host = "" }: Input<"handle", typeof publishedPages>,
): Promise<{ root: string; addresses: string[] }> {
  const { redis } = runtime;
  if ((await redis.hget(keys.handle(handle), "status")) !== "ACTIVE") throw new Fail("not_found");
  const slugs = await redis.zrevrange(keys.pages(handle), 0, MAX_LISTED - 1);
  const states = await pipelined(redis, (pipeline) => {
    for (const slug of slugs) pipeline.hget(keys.page(handle, slug), "status");
  });
  const root = await visitedUrl(runtime, { handle, pageSlug: "" }, host);
  const published = slugs.filter((_, at) => states[at] === "PUBLISHED");
  return { root: root.href, addresses: published.map((slug) => new URL(slug, root).href) };
}

/** The name of a host in lower case, without its port and the dot that ends an absolute name. */
export function hostName(host: string): string {
  return host.toLowerCase().replace(/\.?(:\d+)?$/, "");
}
