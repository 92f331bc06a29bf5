/** A result by its slot. */
export interface SlotScore {
  slot: number;
  score: number;
}

/**
 * Inserts an entry into the best `limit` so far, best first; ties go to the earlier entry. Returns the score that a further entry must
 * exceed, or `floor` while there is room.
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
