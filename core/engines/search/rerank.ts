import { damping, rarity } from "./bm25.ts";
import { expand, feedbackDocuments, originalWeight } from "./feedback.ts";

/** A document that a server ranked by words, with its own score and the terms that it was indexed under. */
export interface Candidate<T> {
  item: T;
  score: number;
  terms: string[];
}

/** Terms that more candidates than this share hold don't tell candidates apart. */
const FEEDBACK_SHARE = 0.5;

/**
 * Ranks a server's candidates (best first) again by the question widened with what the best of them say. The server's score is
 * a sum over `queryLength` terms; how rare a feedback term is, is taken from the candidates.
 */
export function rerank<T>(candidates: readonly Candidate<T>[], queryLength: number): { item: T; score: number }[] {
  const frequencies = documentFrequencies(candidates);
  const frequent = Math.max(feedbackDocuments, candidates.length * FEEDBACK_SHARE);
  const weights = expand(candidates.slice(0, feedbackDocuments), {
    keep: (term) => frequencies.get(term)! <= frequent,
    name: (term) => term,
  });
  const factors = new Map(
    weights.map(([term, weight]) => [term, weight * rarity(candidates.length, frequencies.get(term)!)]),
  );
  const average = candidates.reduce((sum, { terms }) => sum + terms.length, 0) / candidates.length;
  return candidates
    .map(({ item, score, terms }) => {
      const original = (originalWeight * score) / queryLength;
      return { item, score: original + (1 - originalWeight) * feedbackScore(terms, factors, average) };
    })
    .sort((one, other) => other.score - one.score);
}

/** How many candidates hold each term of the best ones. */
function documentFrequencies(candidates: readonly { terms: string[] }[]): Map<string, number> {
  const seen = new Map(
    candidates.slice(0, feedbackDocuments).flatMap(({ terms }) => terms.map((term) => [term, { count: 0, last: -1 }])),
  );
  candidates.forEach(({ terms }, at) => {
    for (const term of terms) {
      const entry = seen.get(term);
      if (!entry || entry.last === at) continue;
      entry.last = at;
      entry.count++;
    }
  });
  return new Map(Array.from(seen, ([term, { count }]) => [term, count]));
}

function feedbackScore(terms: string[], factors: Map<string, number>, average: number): number {
  const found = new Map<string, number>();
  for (const term of terms) if (factors.has(term)) found.set(term, (found.get(term) ?? 0) + 1);
  const damped = damping(terms.length, average);
  let score = 0;
  for (const [term, count] of found) score += (factors.get(term)! * count) / (count + damped);
  return score;
}
