import type { Hit, Unit } from "./library.ts";
import { isCommon } from "./matching.ts";
import type { Question } from "./question.ts";
import { holdsShape } from "./shapes.ts";
import { fold, termsIn } from "./words.ts";

/**
 * What the evidence for an answer counts, beside the share of the question that it speaks of. Chosen on twelve sets of
 * questions, each judged by the constants that the eleven others choose (docs/bench.md, "The constants of the ranking").
 */
const WEIGHTS = {
  /** The weightiest word that the section lacks. */
  missing: -1.2,
  /** Nothing has the form that is asked for. */
  shapeless: -0.9,
  /** "How many boats", and no number stands beside boats. */
  uncounted: -0.9,
  /** "Who", and no name stands there that the question doesn't know. */
  nameless: -0.3,
  /** All that is asked is said in words of every day, so that none of them can be missed much. */
  everyday: 0.8,
  /** Its heading speaks of the subject. */
  headed: 0.5,
  /** Its lead over the best of other sections, as a share. */
  lead: 0.5,
};
/** Words that may stand between a number and what it counts. */
const COUNT_REACH = 4;
const WORD = /[\p{L}\p{M}\p{N}]+(?:['’-][\p{L}\p{M}\p{N}]+)*/gu;

/** How sure it is that the best of some hits answers a question; `terms` are those of the library that speak of it. */
export function confidenceIn(hits: readonly Hit[], question: Question, terms: ReadonlySet<string>): number {
  const [best] = hits;
  if (best === undefined) return Number.NEGATIVE_INFINITY;
  const other = hits.find(({ unit }) => unit.section !== best.unit.section);
  const shapes = question.asks.map(({ shape }) => shape);
  const isCounted = shapes.every((shape) => shape !== "count") || holdsCountOf(best.unit, terms);
  const isNamed = !shapes.includes("person") || shapes.some((shape) => holdsShape(beyond(best.unit, terms), shape, []));
  const isEveryday = question.subjects.length > 0 && question.subjects.every(({ forms }) => forms.some(isCommon));
  return (
    best.share +
    WEIGHTS.missing * best.missing +
    (best.isShapeless ? WEIGHTS.shapeless : 0) +
    (isCounted ? 0 : WEIGHTS.uncounted) +
    (isNamed ? 0 : WEIGHTS.nameless) +
    (isEveryday ? WEIGHTS.everyday : 0) +
    (best.isHeaded ? WEIGHTS.headed : 0) +
    WEIGHTS.lead * (1 - (other?.score ?? 0) / best.score)
  );
}

/** A row says by its columns what a number counts; elsewhere the number stands near it. */
function holdsCountOf(unit: Unit, terms: ReadonlySet<string>): boolean {
  if (unit.block.kind === "row") return /\p{N}/u.test(beyond(unit, terms));
  const words = (fold(unit.text).match(WORD) ?? []).map((word) => termsIn(word, unit.section.language));
  const isNumber = words.map((own) => own.some((term) => /^\p{N}/u.test(term) && !terms.has(term)));
  const isAsked = words.map((own) => own.some((term) => /^\P{N}/u.test(term) && terms.has(term)));
  return isNumber.some(
    (is, at) => is && isAsked.slice(Math.max(0, at - COUNT_REACH), at + COUNT_REACH + 1).includes(true),
  );
}

/** A unit's text without what the question says itself. */
function beyond({ text, section }: Unit, terms: ReadonlySet<string>): string {
  return text.replace(WORD, (word) => (termsIn(word, section.language).some((term) => terms.has(term)) ? ";" : word));
}
