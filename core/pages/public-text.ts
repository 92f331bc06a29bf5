import { setImmediate } from "node:timers/promises";
import type { StoredPage } from "../../schemas/pages.ts";
import { pagesCounterOf } from "../account/face.ts";
import { type Link, type PublicText, readHtml, readLine } from "../engines/answers/answers.ts";
import { languageOf } from "../platform/languages.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { readRecord } from "../store/records.ts";
import { pairsOf, pipelined } from "../store/redis.ts";
import { versionedCache } from "../store/versioned-cache.ts";
import { pageUrl } from "./pages.ts";

/** The public text of a published page; of a paid page only title and teaser. */
export interface PublicPage {
  slug: string;
  /** Creation time and version: a page that is created again restarts at version 1. */
  state: string;
  title: string;
  url: string;
  /** As declared by its owner (BCP 47), else detected from its text. */
  language: string;
  blocks: PublicText["blocks"];
  links: readonly Link[];
  suggestedQuestions: string[];
}

/** The published pages of a handle as text, cached until one of them changes. */
interface CachedPages {
  /** The counter of the handle's pages. */
  state: string;
  /** The newest pages, as many as fit. */
  pages: Map<string, PublicPage>;
  /** Approximate memory with an index of their words. */
  bytes: number;
}

/** The same with the page that the visitor reads. */
export interface PublicPages extends Readonly<CachedPages> {
  readonly visited: PublicPage | undefined;
}

/** Most pages of a handle to look at for answers, newest first; drafts among them count. */
const MAX_PAGES = 500;
/** Memory limit of a handle's pages, beyond which older ones are omitted, and of all handles together. */
const MAX_HANDLE_BYTES = 16 * 2 ** 20;
const MAX_BYTES = 64 * 2 ** 20;
/** Bytes of a block besides its text, and of a character with its share of an index. */
const BLOCK_BYTES = 400;
const CHARACTER_BYTES = 16;

const cacheOf = versionedCache<CachedPages>(MAX_BYTES, ({ bytes }) => bytes);

/**
 * The handle's published pages now, for a visitor of one of them. It needs one read if nothing has changed, and parses only changed pages.
 * The visited page is included even if it doesn't fit among the others.
 */
export async function publicPages(runtime: Runtime, handle: string, slug: string): Promise<PublicPages> {
  const state = await pagesCounterOf(runtime.redis, handle);
  const cached = await cacheOf(runtime.redis).get(handle, state, (known) => fill(runtime, handle, { state, known }));
  return { ...cached, visited: cached.pages.get(slug) ?? (await read(runtime, { handle, slug, state: "" })) };
}

async function fill(
  runtime: Runtime,
  handle: string,
  { state, known }: { state: string; known: CachedPages | undefined },
): Promise<CachedPages> {
  const listed = pairsOf(await runtime.redis.zrevrange(keys.pages(handle), 0, MAX_PAGES - 1, "WITHSCORES"));
  const rows = (await pipelined(runtime.redis, (pipeline) => {
    for (const [slug] of listed) pipeline.hmget(keys.page(handle, slug), "version", "status");
  })) as [string | null, string | null][];
  const filled: CachedPages = { state, pages: new Map(), bytes: 0 };
  for (const [at, [slug, createdAt]] of listed.entries()) {
    if (filled.bytes > MAX_HANDLE_BYTES) break;
    const [version, status] = rows[at] ?? [];
    if (status !== "PUBLISHED") continue;
    const cached = known?.pages.get(slug);
    const now = `${createdAt} ${version}`;
    const page = cached?.state === now ? cached : await read(runtime, { handle, slug, state: now });
    if (page) filled.pages.set(slug, page);
    filled.bytes += page ? bytesOf(page) : 0;
    // Yields between two pages: a large page takes some ms to parse.
    await setImmediate();
  }
  return filled;
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
  const { blocks, links } = readHtml(isPaid ? stored.teaser : stored.content, url);
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
