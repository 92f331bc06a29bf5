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
  /** About how much memory it takes. */
  bytes: number;
}

/** Most pages of a handle that are read for answers, the newest ones. */
const mostPages = 500;
/** Memory of a handle's pages, after which older ones are left out of the search, and of all handles together. */
const MAX_HANDLE_BYTES = 16 * 2 ** 20;
const MAX_BYTES = 64 * 2 ** 20;
/** What a section takes besides its text, in bytes. */
const SECTION_BYTES = 200;

/** Published pages of a handle as text, with a search over their sections; kept until a page changes. */
export class PublicPages {
  readonly #shelf: Shelf;
  /** The page that the visitor reads. */
  readonly visited: PublicPage | undefined;

  constructor(shelf: Shelf, visited: PublicPage | undefined) {
    this.#shelf = shelf;
    this.visited = visited;
  }

  /** About how much memory they take. */
  get bytes(): number {
    return this.#shelf.bytes;
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

/** What a process keeps, and what it reads at this moment by handle and counter. */
interface Shelves {
  kept: LRUCache<string, Shelf>;
  filling: Map<string, Promise<Shelf>>;
}

const shelves = new WeakMap<Redis, Shelves>();

/**
 * The handle's published pages now, for a visitor of one of them: one read if nothing changed; only changed pages are parsed again.
 * The visited page is there even if there is no room for it among the others.
 */
export async function publicPages(runtime: Runtime, handle: string, slug: string): Promise<PublicPages> {
  const shelf = await shelfOf(runtime, handle);
  const visited = shelf.pages.get(slug) ?? (await read(runtime, { handle, slug, state: "" }));
  return new PublicPages(shelf, visited);
}

async function shelfOf(runtime: Runtime, handle: string): Promise<Shelf> {
  const { kept, filling } = shelvesOf(runtime.redis);
  const counter = await pagesCounterOf(runtime.redis, handle);
  const known = kept.get(handle);
  if (known?.counter === counter) return known;
  const name = `${handle} ${counter}`;
  const reading = filling.get(name) ?? fill(runtime, handle, { counter, known }).finally(() => filling.delete(name));
  filling.set(name, reading);
  const shelf = await reading;
  kept.set(handle, shelf);
  return shelf;
}

function shelvesOf(redis: Redis): Shelves {
  const known = shelves.get(redis) ?? {
    kept: new LRUCache<string, Shelf>({ maxSize: MAX_BYTES, sizeCalculation: ({ bytes }) => bytes }),
    filling: new Map(),
  };
  shelves.set(redis, known);
  return known;
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
  const shelf: Shelf = { counter: from.counter, pages: new Map(), index: new LexicalIndex(), slots: [], bytes: 1 };
  for (const [at, slug] of slugs.entries()) {
    if (shelf.bytes > MAX_HANDLE_BYTES) break;
    const [version, status] = rows[at] ?? [];
    if (status !== "PUBLISHED") continue;
    const kept = from.known?.pages.get(slug);
    const state = `${listed[at * 2 + 1]} ${version}`;
    const page = kept?.state === state ? kept : await read(runtime, { handle, slug, state });
    if (page) put(shelf, page);
    // Lets other work in between two pages: a large page takes some ms to parse and to index.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return shelf;
}

/** Adds a page and the words of its sections. */
function put(shelf: Shelf, page: PublicPage): void {
  const before = shelf.index.bytes;
  shelf.pages.set(page.slug, page);
  for (const section of page.sections) {
    shelf.index.add(shelf.slots.length, passageTerms({ title: page.title, ...section }));
    shelf.slots.push({ page, section });
    shelf.bytes += SECTION_BYTES + 2 * (section.heading.length + section.text.length);
  }
  shelf.bytes += SECTION_BYTES * page.links.length + shelf.index.bytes - before;
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
