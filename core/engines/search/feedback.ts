/** Relevance feedback RM3 (Lavrenko and Croft 2001; Abdul-Jaleel et al. 2004): the best documents widen the question. */
export const feedbackDocuments = 5;
/** Share of the question's own terms in the widened question. */
export const originalWeight = 0.7;
const FEEDBACK_TERMS = 10;

/** One of the best documents for a question: its score and its terms in their order, with repeats. */
export interface Feedback<T> {
  score: number;
  terms: ArrayLike<T> & Iterable<T>;
}

/**
 * What the best documents talk about: the likeliest terms of their mixture, weighted so that all weights sum to 1. `keep` says
 * which terms are worth it, `name` settles the order of equally likely ones.
 */
export function expand<T>(
  best: readonly Feedback<T>[],
  { keep, name }: { keep: (term: T) => boolean; name: (term: T) => string },
): [term: T, weight: number][] {
  const likeliest: [term: T, weight: number][] = [];
  for (const [term, weight] of mixture(best)) {
    if (weight < (likeliest[FEEDBACK_TERMS - 1]?.[1] ?? 0) || !keep(term)) continue;
    const isBefore = ([other, otherWeight]: [T, number]) =>
      weight > otherWeight || (weight === otherWeight && name(term) < name(other));
    const at = likeliest.findIndex(isBefore);
    likeliest.splice(at < 0 ? likeliest.length : at, 0, [term, weight]);
    if (likeliest.length > FEEDBACK_TERMS) likeliest.pop();
  }
  const sum = likeliest.reduce((total, [, weight]) => total + weight, 0);
  return likeliest.map(([term, weight]) => [term, weight / sum]);
}

function mixture<T>(best: readonly Feedback<T>[]): Map<T, number> {
  const total = best.reduce((sum, { score }) => sum + score, 0);
  const likelihoods = new Map<T, number>();
  for (const { score, terms } of best) {
    const share = score / total / terms.length;
    for (const term of terms) likelihoods.set(term, (likelihoods.get(term) ?? 0) + share);
  }
  return likelihoods;
}
