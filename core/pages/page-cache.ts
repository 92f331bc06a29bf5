import { LRUCache } from "lru-cache";
import type { pagePath, StoredPage } from "../../schemas/pages.ts";
import type { Infer } from "../../schemas/schema.ts";
import { pagesCounterOf } from "../account/face.ts";
import type { Runtime } from "../platform/runtime.ts";
import { perConnection } from "../store/connections.ts";

/** A cached value of a page at one state of its handle. */
interface CachedPage {
  counter: string;
  value: { page: StoredPage };
}

/** Characters of pages that a process caches; rendered and compressed, they take up to twice as much again. */
const MAX_CACHED_LENGTH = 16 * 2 ** 20;
const pagesOf = perConnection(
  () => new LRUCache<string, CachedPage>({ maxSize: MAX_CACHED_LENGTH, sizeCalculation: sizeOf }),
);

/**
 * Caches what `make` returns for a page and a kind of reader, until the handle's counter changes. Every change of its pages, of its state
 * and of its account's entitlements moves the counter, so that one small read checks the cache.
 */
export async function cachedPage<T extends { page: StoredPage }>(
  { redis }: Runtime,
  reader: "owner" | "visitor",
  { handle, pageSlug }: Infer<typeof pagePath>,
  make: () => Promise<T>,
): Promise<T> {
  const cache = pagesOf(redis);
  const counter = await pagesCounterOf(redis, handle);
  const name = `${reader} ${handle}/${pageSlug}`;
  const cached = cache.get(name);
  if (cached?.counter === counter) return cached.value as T;
  const value = await make();
  cache.set(name, { counter, value });
  return value;
}

function sizeOf({ value: { page } }: CachedPage): number {
  return page.content.length + page.teaser.length + 2000;
}
