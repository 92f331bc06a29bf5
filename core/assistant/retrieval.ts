import { searchKnowledge } from "../knowledge/query.ts";
import type { Runtime, SearchResult } from "../platform/runtime.ts";
import { type PublicPage, type PublicPages, publicPages, type SectionHit } from "../pages/public-text.ts";
import type { Evidence } from "./evidence.ts";
import { withoutLessonCards } from "./lesson-cards.ts";

/** The tag of the documents that the assistant may use (specification "Knowledge document"). */
export const publicTag = "public-page-agent";

/** What was found for a question in public text. */
export interface Retrieval {
  page: PublicPage | undefined;
  evidence: Evidence[];
  /** Sources consulted, joined by `+` (contract 5). */
  mode: string;
  degraded: boolean;
  /** Whole texts of the nearest knowledge passages, for the lesson cards in them. */
  passages: string[];
}

const mostHits = 12;
/** Passages whose lesson cards may be shown, and the share of the best one's score that they need. */
const mostCards = 3;
const nearEnough = 0.5;
/** Constant of the reciprocal rank fusion, as in the knowledge index. */
const fusion = 60;
/** The page that the visitor reads counts more than another one. */
const weights = { page: 1.3, knowledge: 1, related: 0.85 };

/**
 * Public text for a question: sections of the page, of related published pages, and knowledge passages with the public tag.
 * Drafts, paid bodies and other handles are never looked at. A failing index degrades to what the pages say.
 */
export async function retrieve(
  runtime: Runtime,
  asked: { handle: string; pageSlug: string; text: string },
): Promise<Retrieval> {
  const { handle, pageSlug } = asked;
  const [pages, knowledge] = await Promise.all([publicPages(runtime, handle, pageSlug), consult(runtime, asked)]);
  const page = pages.visited;
  const hits = pages.search(asked.text, mostHits * 2);
  const own = ownSections(page, hits);
  const related = hits.filter((hit) => hit.page.slug !== asked.pageSlug).slice(0, mostHits);
  return {
    page,
    evidence: ranked([
      own.map(ofSection(false, weights.page)),
      knowledge.hits.map(ofPassage),
      related.map(ofSection(true, weights.related)),
    ]),
    mode: modeOf(page, pages, { slug: asked.pageSlug, knowledge }),
    degraded: knowledge.degraded,
    passages: nearest(knowledge.hits),
  };
}

async function consult(
  runtime: Runtime,
  { handle, pageSlug, text }: { handle: string; pageSlug: string; text: string },
): Promise<SearchResult> {
  try {
    return await searchKnowledge(runtime, { handle, text, tags: [publicTag], limit: mostHits });
  } catch {
    // What failed may not be logged (contract 5); the answer says that it is degraded.
    runtime.log.warn({ handle, pageSlug, degraded: true }, "assistant.retrieval.degraded");
    return { hits: [], mode: "lexical", degraded: true };
  }
}

/** The found sections of the page first, then its others in reading order: a page is small, and the answerer chooses. */
function ownSections(page: PublicPage | undefined, hits: SectionHit[]): SectionHit[] {
  if (page === undefined) return [];
  const found = hits.filter((hit) => hit.page.slug === page.slug).slice(0, mostHits);
  const rest = page.sections.filter((section) => !found.some((hit) => hit.section === section)).slice(0, mostHits);
  return [...found, ...rest.map((section) => ({ page, section, score: 0 }))];
}

/** Texts of the passages that the question is about: a card in one that merely shares a word would be noise. */
function nearest(hits: SearchResult["hits"]): string[] {
  const least = (hits[0]?.score ?? 0) * nearEnough;
  return hits
    .slice(0, mostCards)
    .filter(({ score }) => score >= least)
    .map(({ passage }) => passage.text);
}

function modeOf(
  page: PublicPage | undefined,
  pages: PublicPages,
  at: { slug: string; knowledge: SearchResult },
): string {
  const parts = [
    ...(page && page.sections.length > 0 ? ["page"] : []),
    ...(pages.others(at.slug) > 0 ? ["related_pages"] : []),
    ...(at.knowledge.hits.length > 0 ? [at.knowledge.mode] : []),
  ];
  return parts.length === 0 ? "none" : parts.join("+");
}

const share = (weight: number, rank: number): number => weight / (fusion + rank + 1);

function ofSection(related: boolean, weight: number): (hit: SectionHit, rank: number) => Evidence {
  return ({ page, section }, rank) => ({
    kind: "page",
    title: page.title,
    url: page.url,
    related,
    heading: section.heading,
    text: section.text,
    score: share(weight, rank),
  });
}

function ofPassage({ passage }: SearchResult["hits"][number], rank: number): Evidence {
  return {
    kind: "kb_doc",
    title: passage.title,
    url: null,
    related: false,
    heading: passage.heading,
    text: withoutLessonCards(passage.text),
    score: share(weights.knowledge, rank),
  };
}

function ranked(lists: Evidence[][]): Evidence[] {
  return lists
    .flat()
    .filter(({ text }) => text.trim() !== "")
    .sort((one, other) => other.score - one.score);
}
