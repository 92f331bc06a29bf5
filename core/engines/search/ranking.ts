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
    let at = found.length;
    while (at > 0 && found[at - 1]!.score < score) at--;
    found.splice(at, 0, { item: slot, score });
    if (found.length > limit) found.pop();
    if (found.length === limit) lowest = found[limit - 1]!.score;
  }
  return found;
}
