import { bestSlots, type Ranked, type SlotFilter } from "./ranking.ts";

/** Parameters of BM25 (Robertson and Zaragoza 2009): saturation of repeated terms, and influence of the length. */
const K1 = 1.5;
const B = 0.5;
/** The best documents by words that are checked for adjacent words. */
const PROXIMITY_DEPTH = 64;

/** Weight of two adjacent words, relative to the rarer one alone. */
const NEIGHBOUR_WEIGHT = 0.3;

/** Longer questions are cut, so that no input makes a slow query. */
const MAX_QUERY_WORDS = 64;

/** A posting is one number: the slot in the high bits, the term's frequency in the lowest eight. */
const FREQUENCY_BITS = 8;
const HIGHEST_FREQUENCY = 255;
/** Bytes of a term besides its postings: the string, its dictionary entry, the array's header. */
const TERM_BYTES = 220;
const SEQUENCE_BYTES = 120;

/** A word of a question: its possible terms, and how often the question has it. */
interface QueryTerm {
  ids: readonly number[];
  count: number;
}

/** Adjacent words of a question: the index of their weight, by the ids of the first and the second. */
interface Neighbours {
  numbers: ReadonlyMap<number, ReadonlyMap<number, number>>;
  weights: readonly number[];
}

/**
 * Ranks documents by BM25 and by adjacent words. Documents are lists of terms with small integers (slots) that the caller chooses and may
 * reuse after a removal. Everything is synchronous and in typed arrays.
 */
export class LexicalIndex {
  readonly #ids = new Map<string, number>();
  readonly #names: string[] = [];
  readonly #postings: Uint32Array[] = [];
  readonly #frequencies: number[] = [];
  readonly #freeIds: number[] = [];
  /** By slot: the ids of its terms in order, with repeats. */
  readonly #sequences: (Uint32Array | undefined)[] = [];
  #norms = new Float32Array(0);
  #scores = new Float32Array(0);
  #normsKnown = false;
  #documents = 0;
  #totalLength = 0;
  #held = 0;

  /** Approximate memory in bytes. */
  get bytes(): number {
    return this.#held + this.#scores.byteLength + this.#norms.byteLength;
  }

  add(slot: number, documentTerms: readonly string[]): void {
    if (this.#sequences[slot]) this.remove(slot);
    const sequence = Uint32Array.from(documentTerms, (term) => this.#idOf(term));
    for (const [id, count] of tally(sequence)) this.#addPosting(id, slot, count);
    this.#sequences[slot] = sequence;
    this.#count(sequence, 1);
  }

  remove(slot: number): void {
    const sequence = this.#sequences[slot];
    if (!sequence) return;
    for (const id of new Set(sequence)) this.#removePosting(id, slot);
    this.#sequences[slot] = undefined;
    this.#count(sequence, -1);
  }

  /** The best documents for the words of a question in order, each word given by its possible terms. Best first. */
  search(words: readonly (readonly string[])[], limit: number, isAllowed: SlotFilter = () => true): Ranked<number>[] {
    const query = words.slice(0, MAX_QUERY_WORDS).map((terms) => terms.flatMap((term) => this.#ids.get(term) ?? []));
    this.#prepare();
    for (const { ids, count } of distinct(query)) for (const id of ids) this.#score(id, count);
    const best = bestSlots(this.#scores, { limit: Math.max(limit, PROXIMITY_DEPTH), floor: 0, isAllowed });
    return this.#byProximity(best, query).slice(0, limit);
  }

  #idOf(term: string): number {
    const known = this.#ids.get(term);
    if (known !== undefined) return known;
    const id = this.#freeIds.pop() ?? this.#names.length;
    this.#ids.set(term, id);
    this.#names[id] = term;
    this.#postings[id] = new Uint32Array(1);
    this.#frequencies[id] = 0;
    this.#held += TERM_BYTES + term.length + 4;
    return id;
  }

  #addPosting(id: number, slot: number, count: number): void {
    const frequency = this.#frequencies[id]!;
    if (frequency === this.#postings[id]!.length) this.#resize(id, Math.ceil(frequency * 1.5) + 1);
    this.#postings[id]![frequency] = slot * 2 ** FREQUENCY_BITS + Math.min(count, HIGHEST_FREQUENCY);
    this.#frequencies[id] = frequency + 1;
  }

  /** Postings are unordered, so the last one fills the gap. */
  #removePosting(id: number, slot: number): void {
    const postings = this.#postings[id]!;
    const last = --this.#frequencies[id]!;
    for (let at = 0; at <= last; at++) {
      if (postings[at]! >>> FREQUENCY_BITS !== slot) continue;
      postings[at] = postings[last]!;
      break;
    }
    if (last === 0) this.#forget(id);
    else if (last < postings.length / 4) this.#resize(id, last * 2);
  }

  #forget(id: number): void {
    const name = this.#names[id]!;
    this.#ids.delete(name);
    this.#freeIds.push(id);
    this.#held -= TERM_BYTES + name.length + this.#postings[id]!.byteLength;
    this.#names[id] = "";
    this.#postings[id] = new Uint32Array(0);
  }

  #resize(id: number, length: number): void {
    const old = this.#postings[id]!;
    const resized = new Uint32Array(length);
    resized.set(old.subarray(0, Math.min(length, this.#frequencies[id]!)));
    this.#postings[id] = resized;
    this.#held += resized.byteLength - old.byteLength;
  }

  #count(sequence: Uint32Array, sign: 1 | -1): void {
    this.#documents += sign;
    this.#totalLength += sign * sequence.length;
    this.#held += sign * (sequence.byteLength + SEQUENCE_BYTES);
    this.#normsKnown = false;
  }

  #prepare(): void {
    if (!this.#normsKnown) this.#makeNorms();
    this.#scores.fill(0);
  }

  #makeNorms(): void {
    const slots = this.#sequences.length;
    if (this.#norms.length < slots) {
      this.#norms = new Float32Array(Math.ceil(slots * 1.25));
      this.#scores = new Float32Array(this.#norms.length);
    }
    const average = Math.max(1, this.#totalLength / Math.max(1, this.#documents));
    for (let slot = 0; slot < slots; slot++) {
      this.#norms[slot] = damping(this.#sequences[slot]?.length ?? 0, average);
    }
    this.#normsKnown = true;
  }

  #score(id: number, weight: number): void {
    const [norms, scores] = [this.#norms, this.#scores];
    const postings = this.#postings[id]!;
    const documents = this.#frequencies[id]!;
    const factor = weight * this.#rarity(id);
    for (let at = 0; at < documents; at++) {
      const posting = postings[at]!;
      const slot = posting >>> FREQUENCY_BITS;
      const frequency = posting & HIGHEST_FREQUENCY;
      scores[slot]! += (factor * frequency) / (frequency + norms[slot]!);
    }
  }

  /** Moves up documents in which adjacent words of the question are adjacent. */
  #byProximity(best: Ranked<number>[], query: readonly (readonly number[])[]): Ranked<number>[] {
    const pairs = neighbours(query, (id) => this.#rarity(id));
    const scored = best.map(({ item, score }) => {
      return { item, score: score + proximity(this.#sequences[item]!, this.#norms[item]!, pairs) };
    });
    return scored.sort((one, other) => other.score - one.score);
  }

  /** The weight of a term: the rarer, the higher; never negative. */
  #rarity(id: number): number {
    const frequency = this.#frequencies[id]!;
    return (K1 + 1) * Math.log(1 + (this.#documents - frequency + 0.5) / (frequency + 0.5));
  }
}

/** Length normalisation: a term that occurs n times counts n / (n + damping). */
function damping(length: number, averageLength: number): number {
  return K1 * (1 - B + (B * length) / averageLength);
}

/** The words that any document contains, each once with its count. */
function distinct(query: readonly (readonly number[])[]): QueryTerm[] {
  const wanted = new Map<string, QueryTerm>();
  for (const ids of query) {
    if (ids.length === 0) continue;
    const key = ids.join();
    wanted.set(key, { ids, count: (wanted.get(key)?.count ?? 0) + 1 });
  }
  return [...wanted.values()];
}

function tally(sequence: Uint32Array): Map<number, number> {
  const counts = new Map<number, number>();
  for (const id of sequence) counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}

/** The adjacent words of a question, each word given by its possible term ids; `rarity` weighs an id. */
function neighbours(query: readonly (readonly number[])[], rarity: (id: number) => number): Neighbours {
  const numbers = new Map<number, Map<number, number>>();
  const weights: number[] = [];
  for (const [at, ids] of query.entries()) {
    for (const id of ids) {
      const after = numbers.get(id) ?? new Map<number, number>();
      for (const next of query[at + 1] ?? [])
        if (!after.has(next)) after.set(next, weights.push(NEIGHBOUR_WEIGHT * Math.min(rarity(id), rarity(next))) - 1);
      if (after.size > 0) numbers.set(id, after);
    }
  }
  return { numbers, weights };
}

/** The score of a document for adjacent words of the question that are adjacent in its sequence of ids; repeats are damped as in BM25. */
function proximity(sequence: Uint32Array, damping: number, { numbers, weights }: Neighbours): number {
  if (weights.length === 0) return 0;
  const counts = new Uint32Array(weights.length);
  for (let at = 0; at + 1 < sequence.length; at++) {
    const pair = numbers.get(sequence[at]!)?.get(sequence[at + 1]!);
    if (pair !== undefined) counts[pair]!++;
  }
  return weights.reduce((sum, weight, pair) => sum + (weight * counts[pair]!) / (counts[pair]! + damping), 0);
}
