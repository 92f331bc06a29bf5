/** Weight of two adjacent words, relative to the rarer one alone. */
const WEIGHT = 0.3;

/** Adjacent words of a question: the index of their weight, by the ids of the first and the second. */
interface Neighbours {
  numbers: ReadonlyMap<number, ReadonlyMap<number, number>>;
  weights: readonly number[];
}

/** The adjacent words of a question, each word given by its possible term ids; `rarity` weighs an id. */
export function neighbours(query: readonly (readonly number[])[], rarity: (id: number) => number): Neighbours {
  const numbers = new Map<number, Map<number, number>>();
  const weights: number[] = [];
  for (const [at, ids] of query.entries()) {
    for (const id of ids) {
      const after = numbers.get(id) ?? new Map<number, number>();
      for (const next of query[at + 1] ?? [])
        if (!after.has(next)) after.set(next, weights.push(WEIGHT * Math.min(rarity(id), rarity(next))) - 1);
      if (after.size > 0) numbers.set(id, after);
    }
  }
  return { numbers, weights };
}

/** The score of a document for adjacent words of the question that are adjacent in its sequence of ids; repeats are damped as in BM25. */
export function proximity(sequence: Uint32Array, damping: number, { numbers, weights }: Neighbours): number {
  if (weights.length === 0) return 0;
  const counts = new Uint32Array(weights.length);
  for (let at = 0; at + 1 < sequence.length; at++) {
    const pair = numbers.get(sequence[at]!)?.get(sequence[at + 1]!);
    if (pair !== undefined) counts[pair]!++;
  }
  return weights.reduce((sum, weight, pair) => sum + (weight * counts[pair]!) / (counts[pair]! + damping), 0);
}
