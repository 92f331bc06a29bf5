import type { newPage, Page, pageChange, StoredPage } from "../../schemas/pages.ts";
import type { Input } from "../../schemas/schema.ts";
import { pagesCounter, pagesCounterOf } from "../account/face.ts";
import { Fail } from "../platform/errors.ts";
import { canonicalLanguage } from "../platform/language-tags.ts";
import { cacheJson } from "../platform/outcome.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import type { Listed, ListInput } from "../store/paging.ts";
import { Records, type Versioned } from "../store/records.ts";
import { versionedCache } from "../store/versioned-cache.ts";
import { checkContent } from "./content.ts";

/** Characters of pages that a process caches; rendered and compressed, they take up to twice as much again. */
const MAX_CACHED_LENGTH = 16 * 2 ** 20;
const cacheOf = versionedCache<{ page: StoredPage }>(
  MAX_CACHED_LENGTH,
  ({ page }) => page.content.length + page.teaser.length + 1500,
);

export type PagePath = Input<"handle" | "pageSlug">;

const pageRecords = new Records<StoredPage>({
  record: keys.page,
  list: keys.pages,
  missing: "page_not_found",
  counter: { key: keys.handle, field: pagesCounter },
});

/** Creates a page; `page_already_exists`, `invalid_page_content`. */
export async function createPage(runtime: Runtime, input: Input<"handle", typeof newPage>): Promise<{ page: Page }> {
  checkFragments(input);
  const { handle, ...fields } = input;
  const at = runtime.now();
  const value = stamped(fields as StoredPage, at, new Date(at).toISOString());
  if (!(await pageRecords.create(runtime, handle, { id: input.pageSlug, value, at })))
    throw new Fail("page_already_exists");
  return { page: toPage(runtime, handle, { ...value, version: 1 }) };
}

/** Changes the given fields of a page; `status` publishes or unpublishes it. `page_not_found`, `version_conflict`. */
export async function updatePage(
  runtime: Runtime,
  input: Input<"handle" | "pageSlug", typeof pageChange>,
): Promise<{ page: Page }> {
  const { handle, pageSlug, expectedVersion, ...changes } = input;
  checkFragments(changes);
  const change = (current: StoredPage) =>
    stamped({ ...current, ...(changes as Partial<StoredPage>) }, runtime.now(), current.createdAt);
  const changed = await pageRecords.change(runtime, handle, { id: pageSlug, expectedVersion, change });
  if (changed === undefined) throw new Fail("page_not_found");
  return { page: toPage(runtime, handle, changed) };
}

/** Publishes a page; idempotent. */
export async function publishPage(runtime: Runtime, input: PagePath): Promise<{ page: Page }> {
  const { page } = await readPage(runtime, input);
  return page.status === "PUBLISHED" ? { page } : updatePage(runtime, { ...input, status: "PUBLISHED" });
}

/** One page, including drafts. */
export function readPage(runtime: Runtime, input: PagePath): Promise<{ page: Page }> {
  const { handle, pageSlug } = input;
  const make = async () =>
    cacheJson({ page: toPage(runtime, handle, await pageRecords.read(runtime, handle, pageSlug)) });
  return cachedPage(runtime, "owner", { handle, pageSlug, make });
}

/** The handle's pages, newest first. */
export async function listPages(runtime: Runtime, input: ListInput): Promise<Listed<"pages", Page>> {
  const { records, nextCursor } = await pageRecords.list(runtime, input);
  return { pages: records.map((stored) => toPage(runtime, input.handle, stored)), nextCursor };
}

/** Removes a page; `page_not_found`. */
export async function deletePage(runtime: Runtime, input: PagePath): Promise<void> {
  if (!(await pageRecords.remove(runtime, input.handle, input.pageSlug))) throw new Fail("page_not_found");
}

/**
 * Caches what `make` returns for a page and a kind of reader, until the handle's counter changes. Every change of its pages, of its state
 * and of its account's entitlements moves the counter, so that one small read checks the cache.
 */
export async function cachedPage<T extends { page: StoredPage }>(
  { redis }: Runtime,
  reader: "owner" | "visitor",
  { handle, pageSlug, make }: PagePath & { make: () => Promise<T> },
): Promise<T> {
  const state = await pagesCounterOf(redis, handle);
  return (await cacheOf(redis).get(`${reader} ${handle}/${pageSlug}`, state, make)) as T;
}

/** The public address of a page (docs/reference.md, "Public page"), on the handle's own host if there is a public domain. */
export function pageUrl({ env }: Runtime, handle: string, slug: string): string {
  return env.PUBLIC_DOMAIN ? `https://${handle}.${env.PUBLIC_DOMAIN}/${slug}` : `${env.BASE_URL}/p/${handle}/${slug}`;
}

function checkFragments(input: { content?: string | undefined; teaser?: string | undefined }): void {
  if (input.content !== undefined) checkContent("content", input.content);
  if (input.teaser !== undefined) checkContent("teaser", input.teaser);
}

function stamped(page: StoredPage, at: number, createdAt: string): StoredPage {
  const updatedAt = new Date(at).toISOString();
  const publishedAt = page.status === "PUBLISHED" ? (page.publishedAt ?? updatedAt) : null;
  const language = canonicalLanguage(page.language ?? "") ?? null;
  return { ...page, language, createdAt, updatedAt, publishedAt };
}

function toPage(runtime: Runtime, handle: string, stored: Versioned<StoredPage>): Page {
  return { ...stored, language: stored.language ?? null, handle, url: pageUrl(runtime, handle, stored.pageSlug) };
}
