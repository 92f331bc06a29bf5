import { setImmediate } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { StoredPage } from "../../schemas/pages.ts";
import { pagesCounterOf } from "../account/face.ts";
import { type Link, type PublicText, readLine, readPage } from "../engines/answers/answers.ts";
import { languageOf } from "../platform/languages.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { readRecord } from "../store/records.ts";
import { pipelined } from "../store/redis.ts";
import { pageUrl } from "./pages.ts";
import { perConnection } from "../store/connections.ts";

/** What an anonymous visitor may read of a published page: of a paid one title and teaser alone. */
export interface PublicPage {
  slug: string;
  /** When it was made, and its version: a page that is made again begins at 1 again. */
  state: string;
  title: string;
  url: string;
  /** As its owner declares it (BCP 47), else told from its text. */
  language: string;
  blocks: PublicText["blocks"];
  links: readonly Link[];
  suggestedQuestions: string[];
}

interface Shelf {
  counter: string;
  pages: Map<string, PublicPage>;
  /** About how much memory it takes, with an index of its words. */
  bytes: number;
}

/** What a process keeps, and what it reads at this moment by handle and counter. */
interface Shelves {
  kept: LRUCache<string, Shelf>;
  filling: Map<string, Promise<Shelf>>;
}

/** Most pages of a handle that are read for answers, the newest ones. */
const MAX_PAGES = 500;
/** Memory of a handle's pages, after which older ones are left out, and of all handles together. */
const MAX_HANDLE_BYTES = 16 * 2 ** 20;
const MAX_BYTES = 64 * 2 ** 20;
/** What a block takes besides its text, and what a character takes with its share of an index, in bytes. */
const BLOCK_BYTES = 400;
const CHARACTER_BYTES = 16;

/** Published pages of a handle as text, kept until a page changes. */
export class PublicPages {
  readonly #shelf: Shelf;
  /** The page that the visitor reads. */
  readonly visited: PublicPage | undefined;

  constructor(shelf: Shelf, visited: PublicPage | undefined) {
    this.#shelf = shelf;
    this.visited = visited;
  }

  /** Changes with each change of a page. */
  get counter(): string {
    return this.#shelf.counter;
  }

  /** The newest pages, as many as there is room for. */
  get pages(): ReadonlyMap<string, PublicPage> {
    return this.#shelf.pages;
  }

  /** About how much memory they take, with an index of their words. */
  get bytes(): number {
    return this.#shelf.bytes;
  }

  /** The number of published pages besides one. */
  others(slug: string): number {
    return this.#shelf.pages.size - (this.#shelf.pages.has(slug) ? 1 : 0);
  }
}

const shelvesOf = perConnection(
  (): Shelves => ({
    kept: new LRUCache<string, Shelf>({ maxSize: MAX_BYTES, sizeCalculation: ({ bytes }) => bytes }),
    filling: new Map(),
  }),
);

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

async function fill(
  runtime: Runtime,
  handle: string,
  from: { counter: string; known: Shelf | undefined },
): Promise<Shelf> {
  const listed = await runtime.redis.zrevrange(keys.pages(handle), 0, MAX_PAGES - 1, "WITHSCORES");
  const slugs = listed.filter((_, at) => at % 2 === 0);
  const rows = (await pipelined(runtime.redis, (pipeline) => {
    for (const slug of slugs) pipeline.hmget(keys.page(handle, slug), "version", "status");
  })) as [string | null, string | null][];
  const shelf: Shelf = { counter: from.counter, pages: new Map(), bytes: 1 };
  for (const [at, slug] of slugs.entries()) {
    if (shelf.bytes > MAX_HANDLE_BYTES) break;
    const [version, status] = rows[at] ?? [];
    if (status !== "PUBLISHED") continue;
    const kept = from.known?.pages.get(slug);
    const state = `${listed[at * 2 + 1]} ${version}`;
    const page = kept?.state === state ? kept : await read(runtime, { handle, slug, state });
    if (page) shelf.pages.set(slug, page);
    shelf.bytes += page ? bytesOf(page) : 0;
    // Lets other work in between two pages: a large page takes some ms to parse.
    await setImmediate();
  }
  return shelf;
}

function bytesOf({ blocks, links }: PublicPage): number {
  const characters = blocks.reduce((sum, { text }) => sum + text.length, 0);
  return BLOCK_BYTES * (blocks.length + links.length) + CHARACTER_BYTES * characters;
}

async function read(
  runtime: Runtime,
  { handle, slug, state }: { handle: string; slug: string; state: string },
): Promise<PublicPage | undefined> {
  const stored = await readRecord<StoredPage>(runtime.redis, keys.page(handle, slug));
  if (stored?.status !== "PUBLISHED") return undefined;
  const url = pageUrl(runtime, handle, slug);
  const isPaid = stored.accessMode === "PAID";
  const { blocks, links } = readPage(isPaid ? stored.teaser : stored.content, url);
  return {
    slug,
    state,
    title: stored.title,
    url,
    language: stored.language ?? languageOf([stored.title, ...blocks.map(({ text }) => text)].join("\n")),
    blocks: [...blocks, ...(isPaid ? [] : readLine(stored.description))],
    links,
    suggestedQuestions: stored.assistant?.suggestedQuestions ?? [],
  };
}
