import type { LessonCard } from "../../schemas/assistant.ts";
import {
  type Library,
  openLibrary,
  type Question,
  type QuestionContext,
  readMarkdown,
  readQuestion,
  type Source,
} from "../engines/answers/answers.ts";
import { lessonCards, withoutLessonCards } from "../engines/search/search.ts";
import { searchKnowledge, type TaggedDocument, type TaggedDocuments, taggedDocuments } from "../knowledge/face.ts";
import { type PublicPage, type PublicPages, publicPageOf, publicPages } from "../pages/face.ts";
import { primaryLanguage } from "../platform/languages.ts";
import type { FoundPassage, Runtime, SearchResult } from "../platform/runtime.ts";
import { versionedCache } from "../store/versioned-cache.ts";
import type { AnswerRequest } from "./messages.ts";

/** The tag of the documents that the assistant may use (docs/reference.md, "Knowledge"). */
const publicTag = "public-page-agent";

/** All public text of a handle that answers may use. */
export interface PublicLibrary {
  /** The question; its language defaults to that of its page. */
  question: Question;
  library: Library;
  page: PublicPage | undefined;
  context: QuestionContext;
  /** The sections that match the question, the best first. */
  ranked: Library["sections"];
  /** Lesson cards by the id of their source. */
  cards: ReadonlyMap<string, readonly LessonCard[]>;
  /** Sources consulted, joined by `+`: `page`, `related_pages`, then `vector` or `lexical`. */
  mode: string;
  degraded: boolean;
}

interface CachedLibrary extends Pick<PublicLibrary, "library" | "cards"> {
  /** Approximate memory in bytes. */
  bytes: number;
}

/** Documents are absent if there are too many to read. */
interface Knowledge extends Partial<TaggedDocuments> {
  found: SearchResult;
}

const MAX_HITS = 24;
const NEAR_HITS = 3;
const SHORT_QUESTION = 40;
/** Most other sources besides the search results, if not all can be read. */
const MAX_RELATED = 12;
const MAX_BYTES = 96 * 2 ** 20;
/** Bytes of a document's character with its share of the index. */
const CHARACTER_BYTES = 16;
const NO_HITS: SearchResult = { hits: [], mode: "lexical", degraded: false };

/** All cached pages and documents of a handle, indexed once per state; concurrent questions share one index. */
const cacheOf = versionedCache<CachedLibrary>(MAX_BYTES, ({ bytes }) => bytes);

/**
 * The public text for a question: the published pages of the handle and its documents with the public tag. Drafts, paid bodies and other
 * handles are never read. If the index fails, answers use the pages only.
 */
export async function publicLibrary(
  runtime: Runtime,
  { handle, pageSlug, question: text, history }: Pick<AnswerRequest, "handle" | "pageSlug" | "question" | "history">,
): Promise<PublicLibrary> {
  const [pages, knowledge, seen] = await Promise.all([
    publicPages(runtime, handle, pageSlug),
    readKnowledge(runtime, handle, searchText(text, history)),
    publicPageOf(runtime, { handle, pageSlug }),
  ]);
  const { visited: page } = pages;
  const { found } = knowledge;
  const question = readQuestion(text, primaryLanguage(seen?.language ?? "en"), history);
  const state = `${pages.state} ${knowledge.version ?? ""}`;
  const whole = await cacheOf(runtime.redis).get(handle, state, () => fill(pages, knowledge.documents));
  const isWhole = knowledge.documents !== undefined && (page === undefined || pages.pages.has(pageSlug));
  const { library, cards } = isWhole
    ? whole
    : await partOf(whole, { page, question, found: knowledge.documents ? NO_HITS : found });
  const context = { here: pageSlug, near: nearSections(library, found) };
  const ranked = library.rank(question, context);
  const hasDocuments = (knowledge.documents ?? found.hits).length > 0;
  const mode = modeOf(pages, pageSlug, hasDocuments ? found.mode : undefined);
  return { question, library, cards, context, ranked, page, mode, degraded: found.degraded };
}

/** A short follow-up is searched together with the visitor's previous question. */
function searchText(question: string, history: AnswerRequest["history"]): string {
  const before = history.findLast(({ role }) => role === "user")?.text ?? "";
  return question.length < SHORT_QUESTION && before !== "" ? `${question} ${before.slice(0, 200)}` : question;
}

/** The tagged documents, if all can be read; and search results if vectors are in use or there are too many documents. */
async function readKnowledge(runtime: Runtime, handle: string, text: string): Promise<Knowledge> {
  try {
    const read = await taggedDocuments(runtime, handle, publicTag);
    const isSearched = read === undefined || (runtime.model.embedder !== undefined && read.documents.length > 0);
    const request = { handle, text, tags: [publicTag], limit: MAX_HITS };
    return { ...read, found: isSearched ? await searchKnowledge(runtime, request) : NO_HITS };
  } catch {
    // The failure itself must not be logged; the answer is marked as degraded.
    runtime.log.warn({ handle, degraded: true }, "assistant.retrieval.degraded");
    return { version: "unread", documents: [], found: { ...NO_HITS, degraded: true } };
  }
}

async function fill(pages: PublicPages, documents: readonly TaggedDocument[] = []): Promise<CachedLibrary> {
  const cards = cardsOf(documents);
  const library = await openLibrary(sourcesOf(pages, documents));
  const characters = documents.reduce((sum, { content }) => sum + content.length, 0);
  return { bytes: pages.bytes + CHARACTER_BYTES * characters, library, cards };
}

function* sourcesOf({ pages }: PublicPages, documents: readonly TaggedDocument[]): Generator<Source> {
  for (const page of pages.values()) yield pageSource(page);
  for (const document of documents) yield documentSource(document);
}

/** The sources for a question if not all can be read: the best ones, the visited page, and the search results. */
async function partOf(
  { library, cards }: CachedLibrary,
  { page, question, found }: { page: PublicPage | undefined; question: Question; found: SearchResult },
): Promise<Pick<CachedLibrary, "library" | "cards">> {
  const ranked = [...new Set(library.rank(question).map(({ source }) => source))].slice(0, MAX_RELATED);
  const related = ranked.filter(({ id }) => id !== page?.slug);
  const passages = found.hits.map(({ passage }) => passage);
  const documents = passages.map(({ id, title, text }) => ({ documentId: id, title, content: text }));
  const pieces = documents.map((document, at) => passageSource(document, passages[at]!));
  const sources = [...(page ? [pageSource(page)] : []), ...related, ...pieces];
  return { library: await openLibrary(sources), cards: new Map([...cards, ...cardsOf(documents)]) };
}

function pageSource({ slug, title, url, language, blocks }: PublicPage): Source {
  return { kind: "page", id: slug, title, url, language, blocks };
}

/** `headings` are those above the content. */
function documentSource({ documentId, title, content }: TaggedDocument, headings: string[] = []): Source {
  const blocks = readMarkdown(withoutLessonCards(content), headings);
  return { kind: "kb_doc", id: documentId, title, url: null, blocks };
}

/** Its language is known: detecting that of two dozen passages would take longer than all else in an answer. */
function passageSource(document: TaggedDocument, { heading, language }: FoundPassage): Source {
  return { ...documentSource(document, heading === "" ? [] : heading.split(" › ")), language };
}

function cardsOf(documents: readonly TaggedDocument[]): Map<string, LessonCard[]> {
  const found = documents.map(({ documentId, content }) => [documentId, lessonCards(content)] as const);
  return new Map(found.filter(([, cards]) => cards.length > 0));
}

/** Sections that contain the nearest passages of a vector search. */
function nearSections(library: Library, { hits, mode }: SearchResult): QuestionContext["near"] & object {
  const near = mode === "vector" ? hits.slice(0, NEAR_HITS).map(({ passage }) => passage) : [];
  const isNear = ({ source, blocks }: Library["sections"][number]) =>
    near.some(
      ({ documentId, id, text }) => (source.id === documentId || source.id === id) && text.includes(blocks[0]!.text),
    );
  return new Set(near.length === 0 ? [] : library.sections.filter(isNear));
}

function modeOf(pages: PublicPages, slug: string, knowledge: string | undefined): string {
  const isRead = pages.visited !== undefined && pages.visited.blocks.length > 0;
  const parts = [
    ...(isRead ? ["page"] : []),
    ...([...pages.pages.keys()].some((other) => other !== slug) ? ["related_pages"] : []),
    ...(knowledge ? [knowledge] : []),
  ];
  return parts.length === 0 ? "none" : parts.join("+");
}
