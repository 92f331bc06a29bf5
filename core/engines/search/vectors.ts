import { bestSlots, type Ranked, type SlotFilter } from "./ranking.ts";

/** Sums that a product adds to side by side: one alone would wait for each addition. */
const SUMS = 4;

/**
 * Exact nearest vectors by cosine, in memory. Vectors are normalised when they are added; a search is one dot product each. All vectors of
 * an index have the same dimension. The caller chooses slots, small integers.
 */
export class VectorIndex {
  readonly #rows: (Float32Array | undefined)[] = [];
  #size = 0;

  /** Number of vectors. */
  get size(): number {
    return this.#size;
  }

  /** Approximate memory in bytes. */
  get bytes(): number {
    return this.#size * (this.#rows.find(Boolean)?.byteLength ?? 0);
  }

  add(slot: number, vector: Float32Array): void {
    this.remove(slot);
    this.#rows[slot] = normalised(vector);
    this.#size++;
  }

  remove(slot: number): void {
    if (this.#rows[slot]) this.#size--;
    this.#rows[slot] = undefined;
  }

  /** The nearest vectors, best first, with their cosines. */
  search(query: Float32Array, limit: number, isAllowed: SlotFilter = () => true): Ranked<number>[] {
    const wanted = normalised(query);
    const scores = new Float32Array(this.#rows.length).fill(Number.NaN);
    for (const [slot, row] of this.#rows.entries()) if (row) scores[slot] = product(row, wanted);
    return bestSlots(scores, { limit, floor: Number.NEGATIVE_INFINITY, isAllowed });
  }
}

/** The direction of a vector; all zeros if it has none (all zeros, or not finite): that is similar to nothing. */
function normalised(vector: Float32Array): Float32Array {
  const row = new Float32Array(Math.ceil(vector.length / SUMS) * SUMS);
  row.set(vector);
  const squares = product(row, row);
  const factor = squares > 0 && Number.isFinite(squares) ? 1 / Math.sqrt(squares) : 0;
  return row.map((value) => (factor === 0 ? 0 : value * factor));
}

function product(one: Float32Array, other: Float32Array): number {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  for (let at = 0; at < one.length; at += SUMS) {
    a += one[at]! * other[at]!;
    b += one[at + 1]! * other[at + 1]!;
    c += one[at + 2]! * other[at + 2]!;
    d += one[at + 3]! * other[at + 3]!;
  }
  return a + b + c + d;
}
