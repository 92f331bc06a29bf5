/** Something found, by the slot that it was added under. */
export interface SlotScore {
  slot: number;
  score: number;
}

/**
 * Puts an entry into the best `limit` found so far, best first; of equal scores the earlier entry stays in front. Returns the
 * score that a further entry has to beat, or `floor` while there is room.
 */
export function keepBest(
  found: SlotScore[],
  entry: SlotScore,
  { limit, floor }: { limit: number; floor: number },
): number {
  let at = found.length;
  while (at > 0 && found[at - 1]!.score < entry.score) at--;
  found.splice(at, 0, entry);
  if (found.length > limit) found.pop();
  return found.length === limit ? found[limit - 1]!.score : floor;
}
