import { wordsOf } from "../../../schemas/languages.ts";
import type { Hit, QuestionContext } from "./library.ts";
import { holdsPhrase, isNegated } from "./phrases.ts";
import type { Question } from "./question.ts";

/**
 * Weights of the evidence for an answer, besides the share of the question that it contains. A logistic regression over all sets of
 * questions chose them, rounded; each set was judged by the weights that the others choose (docs/bench.md, "How answers were tuned").
 */
const WEIGHTS = {
  /** The weightiest word that is absent from the section. */
  missing: -0.4,
  /** It contains the requested shape, or doesn't. */
  shaped: 0.1,
  shapeless: -0.7,
  /** The question is open: it asks for what few texts say. A long paragraph says more than a short one. */
  open: -0.25,
  /** The question is open and negates something, but its sentence negates nothing: "What is not included?" */
  unnegated: -1,
  /** Each word of the question up to eight: of a long question, a text says more in other words. */
  word: 0.02,
  /** The question consists of everyday words, none of which is telling; times the share that is found. */
  everyday: 0.4,
  /** It is on the visitor's page. */
  here: 0.1,
  /** Its lead over the best unit of another section, as a share. */
  lead: 0.2,
};
/** The longest block that an open question weighs in full against, in characters. */
const SHORT = 300;

/** The confidence that the first of one or more hits answers a question. */
export function confidenceIn(hits: readonly Hit[], question: Question, { here }: QuestionContext): number {
  const best = hits[0]!;
  const other = hits.find(({ unit }) => unit.section !== best.unit.section);
  const isEveryday = question.subjects.length > 0 && question.subjects.every(({ isCommon }) => isCommon);
  return (
    best.share +
    WEIGHTS.missing * best.missing +
    (best.isShaped === undefined ? 0 : best.isShaped ? WEIGHTS.shaped : WEIGHTS.shapeless) +
    (question.isOpen ? WEIGHTS.open * Math.min(1, SHORT / best.unit.block.text.length) : 0) +
    (isUnnegated(best, question) ? WEIGHTS.unnegated : 0) +
    WEIGHTS.word * Math.min(8, question.subjects.length) +
    (isEveryday ? WEIGHTS.everyday * best.share : 0) +
    (best.unit.section.source.id === here ? WEIGHTS.here : 0) +
    WEIGHTS.lead * (1 - (other?.score ?? 0) / best.score)
  );
}

/** True if a question asks for what is not so, and the sentence says what is so. "What if I can't come?" asks for what follows. */
function isUnnegated({ unit }: Hit, { isOpen, isNegated: negates, plain, language }: Question): boolean {
  const { conditions } = wordsOf(language).answers;
  const asksForNot = isOpen && negates && !holdsPhrase(plain, conditions.split(" "));
  return asksForNot && !isNegated(unit.text, unit.section.language);
}
