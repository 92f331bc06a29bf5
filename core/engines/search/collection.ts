import { Buffer } from "node:buffer";
import type { Embedding, FoundPassage, SearchRequest, SearchResult } from "../../platform/runtime.ts";
import { LexicalIndex } from "./lexical.ts";
import { fuse, type Ranked, type SlotFilter } from "./ranking.ts";
import type { DocumentMark, StoredChunk } from "./stored.ts";
import { VectorIndex } from "./vectors.ts";
import { queryTerms } from "./words.ts";

/** A chunk with its search terms. */
export interface Entry extends StoredChunk {
  /** From `passageTerms`. */
  terms: readonly string[];
}

/** Candidates of each ranking for the fusion. */
const CANDIDATES = 50;
/** Bytes of an empty collection, and of one passage without its text. */
const COLLECTION_BYTES = 4096;
const PASSAGE_BYTES = 400;

/** The passages of one handle in memory, with their words, vectors and tags. Changes and searches are synchronous. */
export class Collection {
  /** The marks and slots of its documents, by their ids. */
  readonly documents: Map<string, { mark: string; slots: number[] }> = new Map();
  readonly #passages: (FoundPassage | undefined)[] = [];
  readonly #freeSlots: number[] = [];
  readonly #words = new LexicalIndex();
  /** One per model and dimension: cosines of different models can't be compared. */
  readonly #vectors = new Map<string, VectorIndex>();
  /** Of the passages; unknown after a change. */
  #languages: string[] | undefined;
  #textBytes = 0;

  /** Approximate memory in bytes. */
  get bytes(): number {
    let bytes = COLLECTION_BYTES + this.#textBytes + this.#words.bytes;
    for (const index of this.#vectors.values()) bytes += index.bytes;
    return bytes;
  }

  put({ documentId, mark }: DocumentMark, entries: readonly Entry[]): void {
    this.drop(documentId);
    this.documents.set(documentId, { mark, slots: entries.map((entry) => this.#add(entry)) });
  }

  drop(documentId: string): void {
    for (const slot of this.documents.get(documentId)?.slots ?? []) this.#remove(slot);
    this.documents.delete(documentId);
    this.#languages = undefined;
  }

  /** Passages by words, or by words and vectors if some vectors match the request's. */
  search(request: SearchRequest): SearchResult {
    const depth = Math.max(CANDIDATES, request.limit);
    const isAllowed: SlotFilter = (slot) => request.tags.every((tag) => this.#passages[slot]!.tags.includes(tag));
    this.#languages ??= [...new Set(this.#passages.flatMap((passage) => passage?.language ?? []))];
    const words = this.#words.search(queryTerms(request.text, this.#languages), depth, isAllowed);
    const near = this.#nearest(request, depth, isAllowed);
    if (near.length === 0) return this.#result(words.slice(0, request.limit), "lexical", this.#isMisfit(request));
    return this.#result(fuse([words, near], request.limit), "vector", false);
  }

  #add({ passage, terms, vector }: Entry): number {
    const slot = this.#freeSlots.pop() ?? this.#passages.length;
    this.#passages[slot] = passage;
    this.#words.add(slot, terms);
    if (vector) this.#vectorsLike(vector).add(slot, vector.values);
    this.#textBytes += passageBytes(passage);
    return slot;
  }

  #remove(slot: number): void {
    const passage = this.#passages[slot]!;
    this.#passages[slot] = undefined;
    this.#words.remove(slot);
    for (const [key, index] of this.#vectors) {
      index.remove(slot);
      if (index.size === 0) this.#vectors.delete(key);
    }
    this.#textBytes -= passageBytes(passage);
    this.#freeSlots.push(slot);
  }

  #vectorsLike(vector: Embedding): VectorIndex {
    const index = this.#vectors.get(vectorsName(vector)) ?? new VectorIndex(vector.values.length);
    this.#vectors.set(vectorsName(vector), index);
    return index;
  }

  #nearest({ vector }: SearchRequest, depth: number, isAllowed: SlotFilter): Ranked<number>[] {
    return (vector && this.#vectors.get(vectorsName(vector))?.search(vector.values, depth, isAllowed)) ?? [];
  }

  /** True if there are vectors, but all of another model than the request's. */
  #isMisfit({ vector }: SearchRequest): boolean {
    return vector !== undefined && this.#vectors.size > 0 && !this.#vectors.has(vectorsName(vector));
  }

  #result(found: Ranked<number>[], mode: SearchResult["mode"], degraded: boolean): SearchResult {
    const hits = found.map(({ item, score }) => ({ passage: this.#passages[item]!, score }));
    return { hits, mode, degraded };
  }
}

function vectorsName({ model, values }: Embedding): string {
  return `${values.length} ${model}`;
}

function passageBytes({ id, title, topic, source, heading, text, tags }: FoundPassage): number {
  const strings = [id, title, topic, source, heading, text, ...tags];
  return strings.reduce((sum, string) => sum + Buffer.byteLength(string), PASSAGE_BYTES);
}
