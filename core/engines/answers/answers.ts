import { setImmediate } from "node:timers/promises";
import type { EvidenceCard } from "../../../schemas/assistant.ts";
import { wordsOf } from "../../../schemas/languages.ts";
import { clip, fold, oneLine } from "../../platform/characters.ts";
import { sliceClock } from "../../platform/slices.ts";
import type { Block } from "./blocks.ts";
import { figuresIn, holdsFigure } from "./figures.ts";
import type { Passage } from "./grounding.ts";
import { Library, type QuestionContext } from "./library.ts";
import { readMarkdown } from "./markdown.ts";
import { holdsPhrase, isPhrase, plainWords } from "./phrases.ts";
import type { Question } from "./question.ts";
import { exactPiece, openingOf, passageMarkdown, type Quote, quoteFor, sourcesLine } from "./quoting.ts";
import type { Section, Source, Unit } from "./sections.ts";
import { termsIn } from "./words.ts";

// Text (html.ts, markdown.ts) → blocks (blocks.ts) → library (sections.ts, ranges.ts, library.ts) → question (question.ts) → best unit
// (matching.ts, shapes.ts) → confidence (confidence.ts) → quoted answer (quoting.ts, columns.ts). A model's text: grounding.ts.

/** What other modules may import from here, besides the functions below. */
export type { Link, PublicText } from "./blocks.ts";
export { Grounding, type Passage } from "./grounding.ts";
export { absoluteAddress, readHtml } from "./html.ts";
export { Library, type QuestionContext } from "./library.ts";
export { readMarkdown } from "./markdown.ts";
export { type Question, readQuestion, type Turn, type Wish } from "./question.ts";
export type { Source, Unit } from "./sections.ts";

/** An answer without a model. */
export interface Reply {
  kind: "talk" | "declined" | "answer" | "closest" | "none";
  /** Markdown with a line that names its sources, where it has any. */
  markdown: string;
  /** Its evidence, the best unit first; empty unless it quotes public text. */
  units: readonly Unit[];
}

interface Budget {
  budget: number;
  costOf: (text: string) => number;
}

const MAX_SNIPPET_LENGTH = 240;
const MAX_TITLE_LENGTH = 200;
const MIN_PIECE_LENGTH = 24;
/** Sections that are tried as passages. */
const MAX_TRIED = 400;

/** Blocks of one short line, such as a page's description; they are a section of their own. */
export function readLine(text: string): Block[] {
  return readMarkdown(oneLine(text)).map((block) => ({ ...block, section: -1 }));
}

/**
 * Indexes the public text of sources in slices of some ms, so that other work isn't blocked. Each source is read from `sources` in its slice.
 */
export async function openLibrary(sources: Iterable<Source>): Promise<Library> {
  const library = new Library();
  const isDue = sliceClock();
  for (const _ of library.read(sources)) if (isDue()) await setImmediate();
  return library;
}

/** Replies to greetings, thanks, questions about the assistant and requests for secrets; undefined for other questions. */
export function smallTalk({ intent, language }: Question): Reply | undefined {
  if (intent === undefined || intent === "page") return undefined;
  const { greeting, thanks, about, declined } = wordsOf(language).answers.phrases;
  const markdown = { greeting, gratitude: thanks, identity: about, declined }[intent];
  return { kind: intent === "declined" ? "declined" : "talk", markdown, units: [] };
}

/** Answers from public text alone. `context.here` is the id of the visitor's page; `formless` if no form can follow. */
export function replyTo(
  library: Library,
  question: Question,
  context: QuestionContext & { formless?: boolean } = {},
): Reply {
  const { phrases } = wordsOf(question.language).answers;
  const quote = bestQuote(library, question, context);
  if (quote.outcome === "none" || (quote.outcome === "closest" && question.wish)) {
    const isOffered = question.wish && !context.formless;
    return { kind: "none", markdown: isOffered ? phrases.contact : phrases.unanswered, units: [] };
  }
  const before = quote.outcome === "closest" ? [`${phrases.unanswered} ${phrases.closest}`] : [];
  const markdown = [...before, quote.markdown, sourcesLine(quote.units, question.language)].join("\n\n");
  return { kind: quote.outcome, markdown, units: quote.units };
}

/** The opening of the visitor's page answers a question about the page, and one that names nothing if no other text does. */
function bestQuote(library: Library, question: Question, context: QuestionContext): Quote {
  const page = library.sections.find(({ source }) => source.id === context.here)?.source;
  if (page && (question.intent === "page" || isBare(question))) return openingOf(library, page);
  const found = quoteFor(library, question, context);
  const isOpening = found.outcome === "none" && question.alone !== undefined && isBare(question.alone);
  return page && isOpening ? openingOf(library, page) : found;
}

/** It names nothing, like "Where are you?" without its shape. */
function isBare({ subjects, asks }: Question): boolean {
  return subjects.length + asks.length === 0;
}

/** Splits an answer into pieces of a few words for a stream. */
export function* piecesOf(markdown: string): Generator<string> {
  let from = 0;
  for (const { index } of markdown.matchAll(/\s(?=\S)/g)) {
    if (index + 1 - from < MIN_PIECE_LENGTH) continue;
    yield markdown.slice(from, index + 1);
    from = index + 1;
  }
  if (from < markdown.length) yield markdown.slice(from);
}

/**
 * Passages for a prompt, in units of `costOf` within `budget`. All public text in reading order if it fits, the visitor's page first; else
 * the sections that match the question, the best first, and then as many others as fit.
 */
export function passagesFor(library: Library, question: Question, options: QuestionContext & Budget): Passage[] {
  const isHere = ({ source }: Section) => source.id === options.here;
  const inOrder = [...library.sections].sort((one, other) => Number(isHere(other)) - Number(isHere(one)));
  const whole = fitting(inOrder, options);
  if (whole.length === inOrder.length) return whole;
  return fitting([...new Set([...library.rank(question, options), ...inOrder])], options);
}

/** The passages of the first sections, without those that would exceed the budget. */
function fitting(sections: readonly Section[], { budget, costOf }: Budget): Passage[] {
  let left = budget;
  return sections.slice(0, MAX_TRIED).flatMap((section) => {
    const passage = { section, text: passageMarkdown(section) };
    const price = costOf(passage.text) + costOf(nameOf(passage));
    if (price > left) return [];
    left -= price;
    return [passage];
  });
}

/** The title and the headings of a passage's section. */
export function nameOf({ section }: Passage): string {
  return [section.source.title, ...section.blocks[0]!.headings].filter((name) => name !== "").join(" › ");
}

/** Cards for the sources of units, each with an exact piece of its text. */
export function evidenceCards(units: readonly Unit[]): EvidenceCard[] {
  const sources = [...new Set(units.map(({ section }) => section.source))];
  return sources.map((source) => {
    const own = units.filter(({ section }) => section.source === source);
    return {
      title: clip(oneLine(source.title), MAX_TITLE_LENGTH),
      snippet: exactPiece(own, MAX_SNIPPET_LENGTH),
      sourceType: source.kind,
      sourceUrl: source.url,
    };
  });
}

/** The share of a question's subjects that a text contains, 0 to 1. Everyday words count only if it has no others. */
export function shareOf(text: string, { subjects, language }: Question): number {
  const terms = new Set(termsIn(text, language));
  const telling = subjects.filter(({ isCommon }) => !isCommon);
  return shareIn(
    telling.length > 0 ? telling : subjects,
    ({ forms, text: word }) => forms.some((form) => terms.has(form)) || fold(text).includes(word),
  );
}

/** The likeness of two questions, 0 to 1: the share of the first one's subjects that the other one contains. */
export function questionLikeness(one: Question, other: Question): number {
  const known = new Set(other.subjects.flatMap(({ forms }) => forms));
  return shareIn(one.subjects, ({ forms }) => forms.some((form) => known.has(form)));
}

function shareIn(subjects: Question["subjects"], isHeld: (subject: Question["subjects"][number]) => boolean): number {
  return subjects.filter(isHeld).length / (subjects.length || 1);
}

/** True if a text contains one of the phrases of a language file as whole words. */
export function holdsWords(text: string, phrases: readonly string[]): boolean {
  return holdsPhrase(plainWords(text), phrases);
}

/** True if a text consists of one of the phrases of a language file. */
export function isWords(text: string, phrases: readonly string[]): boolean {
  return isPhrase(plainWords(text), phrases);
}

/** The figures, codes and addresses of a text that another text doesn't contain, each as its kind and value (`phone 030123`). */
export function figuresBeyond(text: string, known: string, language: string): string[] {
  const held = figuresIn(known, language);
  return [...figuresIn(text, language)].filter(
    (figure) => !/^(?:unit|hour) /.test(figure) && !holdsFigure(held, figure),
  );
}
