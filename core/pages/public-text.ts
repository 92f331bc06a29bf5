import { setImmediate } from "node:timers";
import type { Redis } from "ioredis";
import { LRUCache } from "lru-cache";
import type { StoredPage } from "../../schemas/pages.ts";
import { pagesCounterOf } from "../account/handles.ts";
import { type Link, type Section, visibleText } from "../assistant/visible-text.ts";
import { LexicalIndex } from "../engines/search/lexical.ts";
import { passageTerms, queryTerms } from "../engines/search/words.ts";
import { readRecord } from "../store/records.ts";
import { keys } from "../store/keys.ts";
import { pipelined } from "../store/redis.ts";
import type { Runtime } from "../platform/runtime.ts";
import { pageUrl } from "./pages.ts";

/** What an anonymous visitor may read of a published page: of a paid one title and teaser alone. */
export interface PublicPage {
  slug: string;
  /** When it was made, and its version: a page that is made anew begins at 1 again. */
  state: string;
  title: string;
  url: string;
  sections: Section[];
  links: Link[];
  suggestedQuestions: string[];
}

/** A section of a page that a search found. */
export interface SectionHit {
  page: PublicPage;
  section: Section;
  score: number;
}

interface Shelf {
  counter: string;
  pages: Map<string, PublicPage>;
  index: LexicalIndex;
  slots: { page: PublicPage; section: Section }[];
}

/** Most pages of a handle that are read for answers, the newest ones, and the sections of them that are indexed. */
const mostPages = 500;
const mostSections = 20_000;

/** All published pages of a handle as text, with a search over their sections; kept until a page changes. */
export class PublicPages {
  readonly #shelf: Shelf;

  constructor(shelf: Shelf) {
    this.#shelf = shelf;
  }

  get(slug: string): PublicPage | undefined {
    return this.#shelf.pages.get(slug);
  }

  /** The number of published pages besides one. */
  others(slug: string): number {
    return this.#shelf.pages.size - (this.#shelf.pages.has(slug) ? 1 : 0);
  }

  /** The best sections for a text, over all pages, the best first. */
  search(text: string, limit: number): SectionHit[] {
    const hits = this.#shelf.index.search(queryTerms(text, ["en"]), limit);
    return hits.map(({ slot, score }) => ({
      ...(this.#shelf.slots[slot] as { page: PublicPage; section: Section }),
      score,
    }));
  }
}

const shelves = new WeakMap<Redis, LRUCache<string, Shelf>>();

/** The handle's published pages now: one read where nothing changed; only changed pages are parsed again. */
export async function publicPages(runtime: Runtime, handle: string): Promise<PublicPages> {
  const cache = shelves.get(runtime.redis) ?? new LRUCache<string, Shelf>({ max: 200 });
  shelves.set(runtime.redis, cache);
  const counter = await pagesCounterOf(runtime.redis, handle);
  const known = cache.get(handle);
  if (known?.counter === counter) return new PublicPages(known);
  const shelf = await fill(runtime, handle, { counter, known });
  cache.set(handle, shelf);
  return new PublicPages(shelf);
}

async function fill(
  runtime: Runtime,
  handle: string,
  from: { counter: string; known: Shelf | undefined },
): Promise<Shelf> {
  const listed = await runtime.redis.zrevrange(keys.pages(handle), 0, mostPages - 1, "WITHSCORES");
  const slugs = listed.filter((_, at) => at % 2 === 0);
  const rows = (await pipelined(runtime.redis, (pipeline) => {
    for (const slug of slugs) pipeline.hmget(keys.page(handle, slug), "version", "status");
  })) as [string | null, string | null][];
  const pages = new Map<string, PublicPage>();
  for (const [at, slug] of slugs.entries()) {
    const [version, status] = rows[at] ?? [];
    if (status !== "PUBLISHED") continue;
    const kept = from.known?.pages.get(slug);
    const state = `${listed[at * 2 + 1]} ${version}`;
    const page = kept?.state === state ? kept : await read(runtime, { handle, slug, state });
    if (page) pages.set(slug, page);
  }
  return { counter: from.counter, pages, ...indexed(pages) };
}

async function read(
  runtime: Runtime,
  { handle, slug, state }: { handle: string; slug: string; state: string },
): Promise<PublicPage | undefined> {
  const stored = await readRecord<StoredPage>(runtime.redis, keys.page(handle, slug));
  if (stored?.status !== "PUBLISHED") return undefined;
  const url = pageUrl(runtime, handle, slug);
  const paid = stored.accessMode === "PAID";
  const { sections, links } = visibleText(paid ? stored.teaser : stored.content, url);
  const intro = paid || stored.description === "" ? [] : [{ heading: "", text: stored.description }];
  const suggestedQuestions = stored.assistant?.suggestedQuestions ?? [];
  // Lets other work in between two pages: a large page takes some ms to parse.
  await new Promise((resolve) => setImmediate(resolve));
  return {
    slug,
    state,
    title: stored.title,
    url,
    sections: [...sections, ...intro],
    links,
    suggestedQuestions,
  };
}

function indexed(pages: Map<string, PublicPage>): Pick<Shelf, "index" | "slots"> {
  const index = new LexicalIndex();
  const slots = [...pages.values()]
    .flatMap((page) => page.sections.map((section) => ({ page, section })))
    .slice(0, mostSections);
  for (const [slot, { page, section }] of slots.entries())
    index.add(slot, passageTerms({ title: page.title, ...section }));
  return { index, slots };
}
