import type { Ranked } from "./ranking.ts";

/** Damping of the first ranks (Cormack, Clarke and Büttcher 2009; docs/reference.md, "Knowledge"). */
const K = 60;

/**
 * Fuses rankings by reciprocal rank: an item scores the sum of 1 / (60 + its rank) over the rankings that contain it, ranks counting from
 * 1. Best first; ties go to the item that came first in an earlier ranking.
 */
export function fuse<T>(rankings: readonly (readonly Ranked<T>[])[], limit: number): Ranked<T>[] {
  const scores = new Map<T, number>();
  for (const ranking of rankings)
    for (const [at, { item }] of ranking.entries()) scores.set(item, (scores.get(item) ?? 0) + 1 / (K + at + 1));
  return Array.from(scores, ([item, score]) => ({ item, score }))
    .sort((one, other) => other.score - one.score)
    .slice(0, limit);
}
