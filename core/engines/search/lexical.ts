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
/** Bytes of a term with its name, of a document, and of a word in a document: its reference to the term, and a posting. */
const TERM_BYTES = 230;
const DOCUMENT_BYTES = 120;
const WORD_BYTES = 12;

interface Term {
  name: string;
  /** A posting for each document that contains it, in no order; the rest is room for more. */
  postings: Uint32Array;
  documents: number;
}

/** Adjacent words of a question: the index of their weight, by the terms of the first and the second. */
interface Neighbours {
  indexes: ReadonlyMap<Term, ReadonlyMap<Term, number>>;
  weights: readonly number[];
}

/**
 * Ranks documents by BM25 and by adjacent words. Documents are lists of terms with small integers (slots) that the caller chooses and may
 * reuse after a removal. Everything is synchronous.
 */
export class LexicalIndex {
  readonly #terms = new Map<string, Term>();
  /** By slot: the terms of its document in order, with repeats. */
  readonly #sequences: (Term[] | undefined)[] = [];
  #norms = new Float32Array(0);
  #scores = new Float32Array(0);
  #normsKnown = false;
  #documents = 0;
  #totalLength = 0;

  /** Approximate memory in bytes. */
  get bytes(): number {
    const documents = this.#documents * DOCUMENT_BYTES + this.#totalLength * WORD_BYTES;
    return this.#terms.size * TERM_BYTES + documents + this.#scores.byteLength + this.#norms.byteLength;
  }

  add(slot: number, documentTerms: readonly string[]): void {
    this.remove(slot);
    const sequence = documentTerms.map((name) => this.#terms.get(name) ?? this.#create(name));
    for (const [term, count] of tally(sequence)) this.#addPosting(term, slot, count);
    this.#sequences[slot] = sequence;
    this.#count(sequence, 1);
  }

  remove(slot: number): void {
    const sequence = this.#sequences[slot];
    if (!sequence) return;
    for (const term of new Set(sequence)) this.#removePosting(term, slot);
    this.#sequences[slot] = undefined;
    this.#count(sequence, -1);
  }

  /** The best documents for the words of a question in order, each word given by its possible terms. Best first. */
  search(words: readonly (readonly string[])[], limit: number, isAllowed: SlotFilter = () => true): Ranked<number>[] {
    const known = words.map((names) => names.flatMap((name) => this.#terms.get(name) ?? []));
    const query = known.slice(0, MAX_QUERY_WORDS);
    if (!this.#normsKnown) this.#makeNorms();
    this.#scores.fill(0);
    for (const term of query.flat()) this.#score(term);
    const best = bestSlots(this.#scores, { limit: Math.max(limit, PROXIMITY_DEPTH), floor: 0, isAllowed });
    return this.#byProximity(best, query).slice(0, limit);
  }

  #create(name: string): Term {
    const term = { name, postings: new Uint32Array(1), documents: 0 };
    this.#terms.set(name, term);
    return term;
  }

  #addPosting(term: Term, slot: number, count: number): void {
    if (term.documents === term.postings.length) resize(term, Math.ceil(term.documents * 1.5) + 1);
    term.postings[term.documents++] = slot * 2 ** FREQUENCY_BITS + Math.min(count, HIGHEST_FREQUENCY);
  }

  /** The last posting fills the gap. */
  #removePosting(term: Term, slot: number): void {
    const { postings } = term;
    const last = --term.documents;
    const at = postings.findIndex((posting) => posting >>> FREQUENCY_BITS === slot);
    postings[at] = postings[last]!;
    if (last === 0) this.#terms.delete(term.name);
    else if (last < postings.length / 4) resize(term, last * 2);
  }

  #count(sequence: readonly Term[], sign: 1 | -1): void {
    this.#documents += sign;
    this.#totalLength += sign * sequence.length;
    this.#normsKnown = false;
  }

  /** The damping of each slot: a term that occurs n times counts n / (n + damping), the less the longer the document. */
  #makeNorms(): void {
    const slots = this.#sequences.length;
    if (this.#norms.length < slots) {
      this.#norms = new Float32Array(Math.ceil(slots * 1.25));
      this.#scores = new Float32Array(this.#norms.length);
    }
    const average = Math.max(1, this.#totalLength / Math.max(1, this.#documents));
    for (let slot = 0; slot < slots; slot++)
      this.#norms[slot] = K1 * (1 - B + (B * (this.#sequences[slot]?.length ?? 0)) / average);
    this.#normsKnown = true;
  }

  #score(term: Term): void {
    const [norms, scores] = [this.#norms, this.#scores];
    const { postings, documents } = term;
    const factor = this.#rarity(term);
    for (let at = 0; at < documents; at++) {
      const posting = postings[at]!;
      const slot = posting >>> FREQUENCY_BITS;
      const frequency = posting & HIGHEST_FREQUENCY;
      scores[slot]! += (factor * frequency) / (frequency + norms[slot]!);
    }
  }

  /** Moves up documents in which adjacent words of the question are adjacent. */
  #byProximity(best: Ranked<number>[], query: readonly (readonly Term[])[]): Ranked<number>[] {
    const pairs = neighbours(query, (term) => this.#rarity(term));
    const scored = best.map(({ item, score }) => {
      return { item, score: score + proximity(this.#sequences[item]!, this.#norms[item]!, pairs) };
    });
    return scored.sort((one, other) => other.score - one.score);
  }

  /** The weight of a term: the rarer, the higher; never negative. */
  #rarity({ documents }: Term): number {
    return (K1 + 1) * Math.log(1 + (this.#documents - documents + 0.5) / (documents + 0.5));
  }
}

function resize(term: Term, length: number): void {
  const resized = new Uint32Array(length);
  resized.set(term.postings.subarray(0, term.documents));
  term.postings = resized;
}

function tally(sequence: readonly Term[]): Map<Term, number> {
  const counts = new Map<Term, number>();
  for (const term of sequence) counts.set(term, (counts.get(term) ?? 0) + 1);
  return counts;
}

/** The adjacent words of a question, each word given by its possible terms. */
function neighbours(query: readonly (readonly Term[])[], rarity: (term: Term) => number): Neighbours {
  const indexes = new Map<Term, Map<Term, number>>();
  const weights: number[] = [];
  for (const [at, terms] of query.entries()) {
    for (const term of terms) {
      const after = indexes.get(term) ?? new Map<Term, number>();
      for (const next of query[at + 1] ?? [])
        if (!after.has(next))
          after.set(next, weights.push(NEIGHBOUR_WEIGHT * Math.min(rarity(term), rarity(next))) - 1);
      if (after.size > 0) indexes.set(term, after);
    }
  }
  return { indexes, weights };
}

/** The score of a document for adjacent words of the question that are adjacent in it; repeats are damped as in BM25. */
function proximity(sequence: readonly Term[], damping: number, { indexes, weights }: Neighbours): number {
  if (weights.length === 0) return 0;
  const counts = new Uint32Array(weights.length);
  for (let at = 0; at + 1 < sequence.length; at++) {
    const pair = indexes.get(sequence[at]!)?.get(sequence[at + 1]!);
    if (pair !== undefined) counts[pair]!++;
  }
  return weights.reduce((sum, weight, pair) => sum + (weight * counts[pair]!) / (counts[pair]! + damping), 0);
}
