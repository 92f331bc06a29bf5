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

/** The one interface of both indexes. A failing Redis rejects; an index that answers in part is `degraded`. */
export interface KnowledgeIndex {
  kind: "in-process" | "redisearch";
  search(request: SearchRequest): Promise<SearchResult>;
  close(): Promise<void>;
}
