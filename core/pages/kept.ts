import type { Redis } from "ioredis";
import { LRUCache } from "lru-cache";
import type { pagePath, StoredPage } from "../../schemas/pages.ts";
import type { Infer } from "../../schemas/schema.ts";
import { keys } from "../redis.ts";
import type { Runtime } from "../runtime.ts";
import { sharedRead } from "../shared-read.ts";

/** What was made of a page at one state of its handle. */
interface Kept {
  counter: string;
  made: { page: StoredPage };
}

/** Characters of pages that a process keeps; each page is there once more as the bytes that are sent. */
const keptLetters = 16 * 2 ** 20;
const caches = new WeakMap<Redis, LRUCache<string, Kept>>();

/**
 * What `make` makes of a page for one kind of reader. Kept until the handle's counter moves, which every change of its pages, of its
 * state and of its account's entitlements does: one small read tells that nothing changed.
 */
export async function keptPage<T extends { page: StoredPage }>(
  { redis }: Runtime,
  reader: "owner" | "visitor",
  { handle, pageSlug }: Infer<typeof pagePath>,
  make: () => Promise<T>,
): Promise<T> {
  const cache = caches.get(redis) ?? new LRUCache({ maxSize: keptLetters, sizeCalculation: sizeOf });
  caches.set(redis, cache);
  const counterKey = keys.pagesVersion(handle);
  const counter = (await sharedRead(redis, counterKey, () => redis.get(counterKey))) ?? "0";
  const name = `${reader} ${handle}/${pageSlug}`;
  const known = cache.get(name);
  if (known?.counter === counter) return known.made as T;
  const made = await make();
  cache.set(name, { counter, made });
  return made;
}

function sizeOf({ made: { page } }: Kept): number {
  return page.content.length + page.teaser.length + 2000;
}
