import { fold } from "../../platform/characters.ts";
import type { Hit, Library, Place } from "./library.ts";
import type { Question } from "./question.ts";
import type { Unit } from "./sections.ts";
import { termsIn } from "./words.ts";

/**
 * Weights of the evidence for an answer, besides the share of the question that it contains. Chosen on sixteen sets of
 * questions, and checked on each set with the constants that the fifteen others choose (docs/bench.md, "The constants of the ranking").
 */
const WEIGHTS = {
  /** The weightiest word that is absent from the section. */
  missing: -1.2,
  /** It contains the requested form. */
  shaped: 0.3,
  /** No text has the requested form. */
  shapeless: -0.9,
  /** "How many boats", and no number is near "boats". */
  uncounted: -0.9,
  /** The question consists of everyday words, none of which is telling; times the share that is found. */
  everyday: 0.8,
  /** Its heading contains a subject of the question. */
  headed: 0.5,
  /** It is on the visitor's page. */
  here: 0.15,
  /** Its lead over the best unit of another section, as a share. */
  lead: 0.6,
};

/** Where a question is asked. */
interface Asked {
  library: Library;
  place: Place;
}

/** The most words between a number and the noun that it counts. */
const COUNT_REACH = 4;
const WORD = /[\p{L}\p{M}\p{N}]+(?:['’-][\p{L}\p{M}\p{N}]+)*/gu;

/** The confidence that the best hit answers a question, which is asked in a place of a library. */
export function confidenceIn(hits: readonly Hit[], question: Question, { library, place }: Asked): number {
  const terms = library.termsFor(question);
  const [best] = hits;
  if (best === undefined) return Number.NEGATIVE_INFINITY;
  const other = hits.find(({ unit }) => unit.section !== best.unit.section);
  const isCounted = question.asks.every(({ shape }) => shape !== "count") || holdsCountOf(best.unit, terms);
  const isEveryday = question.subjects.length > 0 && question.subjects.every(({ isCommon }) => isCommon);
  return (
    best.share +
    WEIGHTS.missing * best.missing +
    (best.isShaped ? WEIGHTS.shaped : 0) +
    (best.isShapeless ? WEIGHTS.shapeless : 0) +
    (isCounted ? 0 : WEIGHTS.uncounted) +
    (isEveryday ? WEIGHTS.everyday * best.share : 0) +
    (best.isHeaded ? WEIGHTS.headed : 0) +
    (best.unit.section.source.id === place.here ? WEIGHTS.here : 0) +
    WEIGHTS.lead * (1 - (other?.score ?? 0) / best.score)
  );
}

/** The columns of a row name what a number counts; elsewhere the number is near the noun. */
function holdsCountOf(unit: Unit, terms: ReadonlySet<string>): boolean {
  if (unit.block.kind === "row") return /\p{N}/u.test(beyond(unit, terms));
  const words = (fold(unit.text).match(WORD) ?? []).map((word) => termsIn(word, unit.section.language));
  const isNumber = words.map((own) => own.some((term) => /^\p{N}/u.test(term) && !terms.has(term)));
  const isAsked = words.map((own) => own.some((term) => /^\P{N}/u.test(term) && terms.has(term)));
  return isNumber.some(
    (is, at) => is && isAsked.slice(Math.max(0, at - COUNT_REACH), at + COUNT_REACH + 1).includes(true),
  );
}

/** A unit's text without the words of the question. */
function beyond({ text, section }: Unit, terms: ReadonlySet<string>): string {
  return text.replace(WORD, (word) => (termsIn(word, section.language).some((term) => terms.has(term)) ? ";" : word));
}
