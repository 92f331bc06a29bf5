import type { Candidate } from "./candidates.ts";
import type { Reading, Unit } from "./question.ts";

/** A candidate with how much of the question it speaks of (`coverage`, 0 to 1) and how good an answer it is. */
export interface Scored extends Candidate {
  coverage: number;
  score: number;
  /** Holds what the question asks for: an amount, a time, a place; true where it asks for nothing of the kind. */
  shaped: boolean;
}

/** How well a term of the evidence speaks of a unit of the question, 0 to 1. */
type Matches = ReadonlyMap<string, number>;
type Matched = Unit & { matches: Matches };

const SIBLING = 0.85;
const FORM = 0.95;
const PART = 0.7;
/** What stands around a sentence counts less than the sentence. */
const FROM_HEADING = 0.7;
const FROM_QUESTION = 1;
const FROM_BEFORE = 0.55;
const FROM_TITLE = 0.7;
/** A word of the page's title says little about where on the page the answer is. */
const TITLE_WEIGHT = 0.7;
const UNSHAPED_STRICT = 0.55;
const UNSHAPED_LOOSE = 0.88;
const RANK_COST = 0.002;
const LONG_SENTENCE = 280;
/** A heading that names a subject of the question says that the section is about it. */
const HEADED = 0.1;
const PREFIX_LENGTH = 4;

/** Scores every candidate against the question, in the order given. */
export function scoreCandidates(candidates: Candidate[], reading: Reading): Scored[] {
  const vocabulary = new Set(candidates.flatMap(({ terms, heading, title }) => [...terms, ...heading, ...title]));
  const shaped = candidates.map((candidate) => reading.shapes.some((shape) => isShaped(shape, candidate)));
  const units = reading.units.map((unit) => ({ ...unit, matches: matchesOf(unit, vocabulary) }));
  const weights = units.map((unit) => unit.weight * rarity(unit, candidates, shaped));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return candidates.map((candidate, index) => {
    const parts = units.map((unit, at) => weights[at]! * match(unit, candidate, shaped[index]!));
    const onTopic = units.some(
      ({ topic, asked, matches }) => topic && !asked && best(matches, candidate.heading) >= SIBLING,
    );
    const coverage = parts.reduce((sum, part) => sum + part, 0) / total + (onTopic ? HEADED : 0);
    const fits = shaped[index]! || reading.shapes.length === 0;
    return { coverage, shaped: fits, score: coverage * fit(reading, fits) - cost(candidate), ...candidate };
  });
}

function isShaped(shape: RegExp, { folded, text }: Candidate): boolean {
  return shape.test(folded) || shape.test(text);
}

/** How well some terms speak of one unit of a question, 0 to 1. */
export function speaksOf(unit: Unit, terms: Iterable<string>): number {
  let highest = 0;
  for (const term of terms) highest = Math.max(highest, matchTerm(unit, term));
  return highest;
}

function matchesOf(unit: Unit, vocabulary: ReadonlySet<string>): Matches {
  const found = new Map<string, number>();
  for (const term of vocabulary) {
    const value = matchTerm(unit, term);
    if (value > 0) found.set(term, value);
  }
  return found;
}

function matchTerm({ term, topic, inCompounds }: Unit, other: string): number {
  if (other === term) return 1;
  if (topic?.terms.has(other)) return SIBLING;
  return term === undefined ? 0 : likeness(term, other, inCompounds);
}

/** Another form of the word, or a word inside a compound (`Parkplatz` in `Kundenparkplatz`). */
function likeness(term: string, other: string, inCompounds: boolean): number {
  const [short, long] = term.length <= other.length ? [term, other] : [other, term];
  if (short.length < PREFIX_LENGTH || /\d/.test(short)) return 0;
  const shared = sharedPrefix(short, long);
  if (shared >= PREFIX_LENGTH && shared >= long.length - 2) return FORM;
  const begins = shared >= PREFIX_LENGTH && shared >= short.length - 2 && shared >= long.length * 0.6;
  return begins || (inCompounds && short.length >= 5 && long.includes(short)) ? PART : 0;
}

function sharedPrefix(first: string, second: string): number {
  let at = 0;
  while (at < first.length && first[at] === second[at]) at++;
  return at;
}

/** Rare things tell more; what the evidence never speaks of is as rare as what it speaks of once. */
function rarity({ matches, asked }: Matched, candidates: Candidate[], shaped: boolean[]): number {
  const speaking = candidates.filter(({ terms }, at) => (asked && shaped[at]) || best(matches, terms) >= PART).length;
  const named = candidates.some(({ title }) => best(matches, title) === 1);
  return (Math.log((candidates.length + 1) / (Math.max(1, speaking) + 1)) + 0.5) * (named ? TITLE_WEIGHT : 1);
}

function best(matches: Matches, terms: ReadonlySet<string>): number {
  let highest = 0;
  for (const [term, value] of matches) if (value > highest && terms.has(term)) highest = value;
  return highest;
}

function match(unit: Matched, candidate: Candidate, shaped: boolean): number {
  const byShape = unit.asked
    ? shaped
    : unit.byShape && unit.topic?.shape !== undefined && isShaped(unit.topic.shape, candidate);
  return Math.max(
    best(unit.matches, candidate.terms),
    byShape ? unit.topic!.shapeCounts : 0,
    best(unit.matches, candidate.heading) * (candidate.answersHeading ? FROM_QUESTION : FROM_HEADING),
    best(unit.matches, candidate.before) * FROM_BEFORE,
    inTitle(unit.matches, candidate) * FROM_TITLE,
  );
}

/** A title names the whole page: only the word itself counts. */
function inTitle(matches: Matches, { title }: Candidate): number {
  const value = best(matches, title);
  return value >= FORM ? value : 0;
}

function fit({ strict }: Reading, fits: boolean): number {
  if (fits) return 1;
  return strict ? UNSHAPED_STRICT : UNSHAPED_LOOSE;
}

/** Of two that say the same, the better ranked and the shorter. */
function cost({ rank, text }: Candidate): number {
  return rank * RANK_COST + (text.length > LONG_SENTENCE ? 0.05 : text.length / 10_000);
}
