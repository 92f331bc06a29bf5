import { Buffer } from "node:buffer";
import { LRUCache } from "lru-cache";
import type { FoundPassage, SearchRequest, SearchResult } from "../../platform/runtime.ts";
import { fuse } from "./fusion.ts";
import { LexicalIndex } from "./lexical.ts";
import type { SlotScore } from "./ranking.ts";
import { VectorIndex } from "./vectors.ts";
import { queryTerms } from "./words.ts";

/** A passage with its search terms and vector. */
export interface Entry {
  passage: FoundPassage;
  /** From `passageTerms`. */
  terms: readonly string[];
  vector?: { model: string; values: Float32Array };
}

/** Candidates of each ranking for the fusion. */
const CANDIDATES = 50;
const MAX_CACHED_MASKS = 64;
/** Bytes of an empty collection, and of one passage without its text. */
const COLLECTION_BYTES = 4096;
const PASSAGE_BYTES = 400;

/** The passages of one handle in memory, with their words, vectors and tags. Changes and searches are synchronous. */
export class Collection {
  private readonly documents = new Map<string, number[]>();
  private readonly passages: (FoundPassage | undefined)[] = [];
  private readonly freeSlots: number[] = [];
  private readonly words = new LexicalIndex();
  /** One per model and dimension: cosines of different models can't be compared. */
  private readonly vectors = new Map<string, VectorIndex>();
  /** Number of passages per language. */
  private readonly spoken = new Map<string, number>();
  private readonly tagged = new Map<string, Set<number>>();
  private readonly masks = new LRUCache<string, Uint8Array>({ max: MAX_CACHED_MASKS });
  private textBytes = 0;

  /** Approximate memory in bytes. */
  get bytes(): number {
    let bytes = COLLECTION_BYTES + this.textBytes + this.words.bytes;
    for (const index of this.vectors.values()) bytes += index.bytes;
    for (const mask of this.masks.values()) bytes += mask.byteLength;
    return bytes;
  }

  /** Replaces the passages of a document. */
  put(documentId: string, entries: readonly Entry[]): void {
    this.drop(documentId);
    this.documents.set(
      documentId,
      entries.map((entry) => this.add(entry)),
    );
    this.masks.clear();
  }

  drop(documentId: string): void {
    for (const slot of this.documents.get(documentId) ?? []) this.remove(slot);
    this.documents.delete(documentId);
    this.masks.clear();
  }

  /** Passages by words, or by words and vectors if some vectors match the request's. */
  search(request: SearchRequest): SearchResult {
    const allowed = this.allowed(request.tags);
    const depth = Math.max(CANDIDATES, request.limit);
    const query = queryTerms(request.text, [...this.spoken.keys()]);
    const words = this.words.search(query, request.vector ? depth : request.limit, allowed);
    if (!request.vector) return this.result(words, "lexical", false);
    const near = this.nearest(request, depth, allowed);
    if (near.length === 0)
      return this.result(words.slice(0, request.limit), "lexical", this.vectors.size > 0 && !this.fits(request));
    const fused = fuse([words.map(({ slot }) => slot), near.map(({ slot }) => slot)], request.limit);
    return this.result(
      fused.map(({ item, score }) => ({ slot: item, score })),
      "vector",
      false,
    );
  }

  private add({ passage, terms, vector }: Entry): number {
    const slot = this.freeSlots.pop() ?? this.passages.length;
    this.passages[slot] = passage;
    this.countLanguage(passage.language, 1);
    this.words.add(slot, terms);
    if (vector) this.vectorsOf(vector.model, vector.values.length).add(slot, vector.values);
    for (const tag of passage.tags) this.slotsOf(tag).add(slot);
    this.textBytes += passageBytes(passage);
    return slot;
  }

  private remove(slot: number): void {
    const passage = this.passages[slot]!;
    this.passages[slot] = undefined;
    this.countLanguage(passage.language, -1);
    this.words.remove(slot);
    for (const [key, index] of this.vectors) {
      index.remove(slot);
      if (index.size === 0) this.vectors.delete(key);
    }
    for (const tag of passage.tags) {
      this.tagged.get(tag)?.delete(slot);
      if (this.tagged.get(tag)?.size === 0) this.tagged.delete(tag);
    }
    this.textBytes -= passageBytes(passage);
    this.freeSlots.push(slot);
  }

  private countLanguage(language: string, change: 1 | -1): void {
    const count = (this.spoken.get(language) ?? 0) + change;
    if (count === 0) this.spoken.delete(language);
    else this.spoken.set(language, count);
  }

  private vectorsOf(model: string, dimensions: number): VectorIndex {
    const key = `${dimensions} ${model}`;
    const index = this.vectors.get(key) ?? new VectorIndex(dimensions);
    this.vectors.set(key, index);
    return index;
  }

  private slotsOf(tag: string): Set<number> {
    const slots = this.tagged.get(tag) ?? new Set();
    this.tagged.set(tag, slots);
    return slots;
  }

  /** One byte per slot: 1 if the passage has all tags. Cached until the next change, since most searches use the same tags. */
  private allowed(tags: readonly string[]): Uint8Array | undefined {
    if (tags.length === 0) return undefined;
    const key = [...tags].sort().join("\u001f");
    const mask = this.masks.get(key) ?? this.mask(tags);
    this.masks.set(key, mask);
    return mask;
  }

  private mask(tags: readonly string[]): Uint8Array {
    const mask = new Uint8Array(this.passages.length);
    const [first, ...others] = tags.map((tag) => this.tagged.get(tag) ?? new Set<number>());
    for (const slot of first!) if (others.every((slots) => slots.has(slot))) mask[slot] = 1;
    return mask;
  }

  private nearest(request: SearchRequest, depth: number, allowed: Uint8Array | undefined): SlotScore[] {
    const found = this.fitting(request).flatMap((index) => index.search(request.vector!, depth, allowed));
    return found.sort((one, other) => other.score - one.score).slice(0, depth);
  }

  private fits(request: SearchRequest): boolean {
    return this.fitting(request).length > 0;
  }

  private fitting({ vector, model }: SearchRequest): VectorIndex[] {
    const found: VectorIndex[] = [];
    for (const [key, index] of this.vectors) {
      const sameModel = model === undefined || key === `${index.dimensions} ${model}`;
      if (index.dimensions === vector!.length && sameModel) found.push(index);
    }
    return found;
  }

  private result(found: SlotScore[], mode: SearchResult["mode"], degraded: boolean): SearchResult {
    const hits = found.map(({ slot, score }) => ({ passage: this.passages[slot]!, score }));
    return { hits, mode, degraded };
  }
}

function passageBytes({ id, title, topic, source, heading, text, tags }: FoundPassage): number {
  const strings = [id, title, topic, source, heading, text, ...tags];
  return strings.reduce((sum, string) => sum + Buffer.byteLength(string), PASSAGE_BYTES);
}
