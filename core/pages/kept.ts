import { LRUCache } from "lru-cache";
import { pagesCounterOf } from "../account/face.ts";
import type { pagePath, StoredPage } from "../../schemas/pages.ts";
import type { Infer } from "../../schemas/schema.ts";
import type { Runtime } from "../platform/runtime.ts";
import { perConnection } from "../store/connections.ts";

/** What was made of a page at one state of its handle. */
interface CachedPage {
  counter: string;
  made: { page: StoredPage };
}

/** Characters of pages that a process keeps; each page is there once more as the bytes that are sent. */
const MAX_CACHED_LENGTH = 16 * 2 ** 20;
const pagesOf = perConnection(
  () => new LRUCache<string, CachedPage>({ maxSize: MAX_CACHED_LENGTH, sizeCalculation: sizeOf }),
);

/**
 * What `make` makes of a page for one kind of reader. Kept until the handle's counter moves, which every change of its pages, of its
 * state and of its account's entitlements does: one small read tells that nothing changed. A request that has read the counter
 * already hands it on.
 */
export async function cachedPage<T extends { page: StoredPage }>(
  { redis }: Runtime,
  asked: { reader: "owner" | "visitor"; counter?: string | undefined },
  { handle, pageSlug }: Infer<typeof pagePath>,
  make: () => Promise<T>,
): Promise<T> {
  const cache = pagesOf(redis);
  const counter = asked.counter ?? (await pagesCounterOf(redis, handle));
  const name = `${asked.reader} ${handle}/${pageSlug}`;
  const known = cache.get(name);
  if (known?.counter === counter) return known.made as T;
  const made = await make();
  cache.set(name, { counter, made });
  return made;
}

function sizeOf({ made: { page } }: CachedPage): number {
  return page.content.length + page.teaser.length + 2000;
}
