/** A piece of a knowledge document as a search finds it. */
export interface Passage {
  /** The document's id and the number of the piece, `doc_1:0`. */
  id: string;
  documentId: string;
  title: string;
  topic: string;
  source: string;
  /** Headings above the text, from the outermost, joined by ` › `; empty without any. */
  heading: string;
  /** An exact piece of the document's content. */
  text: string;
  tags: string[];
}

/** What is asked of one handle's knowledge. */
export interface SearchRequest {
  handle: string;
  text: string;
  /** The question's embedding; only vectors of its dimension take part. */
  vector?: Float32Array;
  /** The model that made the vector: only vectors of this model take part. */
  model?: string;
  /** A passage must carry all of them; none asks all passages. */
  tags: string[];
  /** Most passages in the answer. */
  limit: number;
}

/** Passages from the best to the worst. */
export interface SearchResult {
  /** Scores rank within one result; they mean nothing between two results. */
  hits: { passage: Passage; score: number }[];
  /** `vector` when vectors took part, alone or fused with words. */
  mode: "lexical" | "vector";
  /** True when a part of the index could not answer or did not answer in full. */
  degraded: boolean;
}

/** Which index answers now. */
export interface IndexStatus {
  /** Which one this Redis allows. */
  kind: "in-process" | "redisearch";
  /** Which one answers questions: the in-process index stands in for the server's while that is not complete. */
  serving: "in-process" | "redisearch";
  /** Why another one than `kind` is serving. */
  reason?: FallbackReason;
}

/**
 * Why the in-process index answers instead of the server's: `missing` (the index was dropped and is made again), `building` (the
 * server still reads the chunks), `partial` (it gave up for lack of memory, or stopped early), `foreign` (the index of this name
 * holds other keys), `reconnected` (the connection was lost during the question), `refused` (the server answered with an error).
 */
export const fallbackReasons = ["missing", "building", "partial", "foreign", "reconnected", "refused"] as const;
export type FallbackReason = (typeof fallbackReasons)[number];

/** The one interface of both indexes. A failing Redis rejects; an index that answers in part is `degraded`. */
export interface KnowledgeIndex {
  readonly kind: IndexStatus["kind"];
  /** Questions that the in-process index answered instead of the server's, by reason, since this process started. */
  readonly fallbacks: ReadonlyMap<FallbackReason, number>;
  search(request: SearchRequest): Promise<SearchResult>;
  /** Asks the server; rejects when Redis can't be reached. */
  status(): Promise<IndexStatus>;
  /** Makes what vectors of this dimension need, before the first of them is written. Rejects when Redis can't be reached. */
  prepareVectors(dimensions: number): Promise<void>;
  close(): Promise<void>;
}

/** What an index says to the operator: no text of a question or a passage. */
export interface IndexLog {
  info(details: object, event: string): void;
  warn(details: object, event: string): void;
}

/** The log of an index that nobody operates. */
export const silent: IndexLog = { info: () => undefined, warn: () => undefined };
