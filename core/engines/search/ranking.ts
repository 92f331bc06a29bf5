/** An item of a ranking: a slot, or the key of a chunk. */
export interface Ranked<T> {
  item: T;
  score: number;
}

/** True for a slot that a search may find. */
export type SlotFilter = (slot: number) => boolean;

/**
 * The best `limit` (at least 1) of the allowed slots that score above `floor`, best first; ties go to the lower slot. `scores` are by slot;
 * NaN means none.
 */
export function bestSlots(
  scores: Float32Array,
  { limit, floor, isAllowed }: { limit: number; floor: number; isAllowed: SlotFilter },
): Ranked<number>[] {
  const found: Ranked<number>[] = [];
  let lowest = floor;
  for (let slot = 0; slot < scores.length; slot++) {
    const score = scores[slot]!;
    if (!(score > lowest && isAllowed(slot))) continue;
    found.splice(rankOf(score, found), 0, { item: slot, score });
    if (found.length > limit) found.pop();
    if (found.length === limit) lowest = found[limit - 1]!.score;
  }
  return found;
}

/** The position of a score behind those that are not lower, by halving: ascending scores would pass the whole list each. */
function rankOf(score: number, found: readonly Ranked<number>[]): number {
  let [low, high] = [0, found.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (found[middle]!.score < score) high = middle;
    else low = middle + 1;
  }
  return low;
}

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
