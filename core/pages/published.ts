import type { publishedPages } from "../../schemas/pages.ts";
import type { Infer } from "../../schemas/schema.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { pipelined } from "../store/redis.ts";
import { visitedUrl } from "./hosts.ts";

/** Most pages of a handle in its sitemap, newest first. */
const MAX_LISTED = 1000;

/** The published pages of an active handle, newest first, with their addresses on the requested host; `not_found` otherwise. */
export async function listPublished(
  runtime: Runtime,
  { handle, host = "" }: Infer<typeof publishedPages>,
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
