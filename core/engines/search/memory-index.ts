import { setImmediate } from "node:timers/promises";
import type { Redis } from "ioredis";
import { LRUCache } from "lru-cache";
import type { IndexStatus, SearchIndex, SearchRequest, SearchResult } from "../../platform/runtime.ts";
import { sliceClock } from "../../platform/slices.ts";
import { keys } from "../../store/keys.ts";
import { Collection, type Entry } from "./collection.ts";
import { type DocumentMark, documentMarks, readChunks } from "./stored.ts";
import { passageTerms } from "./words.ts";

/** Memory limit of all handles together, in bytes: about 40,000 chunks with 384 dimensions. */
export const MAX_BYTES = 160 * 2 ** 20;
/** Chunks per round trip, rounded to whole documents. */
const CHUNKS_PER_READ = 128;

interface HandleIndex {
  collection: Collection;
  /** The handle's version in Redis that the collection reflects, `null` if the handle has none; undefined before the first load. */
  version?: string | null;
  loading?: Promise<void> | undefined;
  /** True if the memory limit was reached before all documents were loaded. */
  partial: boolean;
}

/**
 * The index for servers without the search module: the most recently searched handles, rebuilt from their chunks in Redis. A search reads
 * the handle's version; if that has changed, the changed documents are loaded first. So a search finds everything that any process accepted
 * before it.
 */
export class MemoryIndex implements SearchIndex {
  readonly kind = "in-process";
  readonly fallbacks: SearchIndex["fallbacks"] = new Map();
  readonly #redis: Redis;
  readonly #limit: number;
  /** The most recently searched. */
  readonly #handles: LRUCache<string, HandleIndex>;

  /** `limit` bounds the memory of all handles, in bytes. */
  constructor(redis: Redis, limit: number = MAX_BYTES) {
    this.#redis = redis;
    this.#limit = limit;
    // A larger entry than the cache would not be kept at all.
    const sizeCalculation = ({ collection }: HandleIndex) => Math.min(collection.bytes, limit);
    this.#handles = new LRUCache({ maxSize: limit, sizeCalculation });
  }

  /** Approximate memory of all handles in bytes. */
  get bytes(): number {
    return [...this.#handles.values()].reduce((sum, { collection }) => sum + collection.bytes, 0);
  }

  /** Rejects if Redis can't be read. */
  async search(request: SearchRequest): Promise<SearchResult> {
    const before = this.#handles.get(request.handle)?.version;
    const index = await this.#current(request.handle);
    const result = index.collection.search(request);
    // A load and the search after it take memory.
    if (index.version !== before) this.#keep(request.handle, index);
    return index.partial ? { ...result, degraded: true } : result;
  }

  async status(): Promise<IndexStatus> {
    return { kind: this.kind, serving: this.kind };
  }

  async prepareVectors(): Promise<void> {
    // Vectors are read from the chunks like words.
  }

  async close(): Promise<void> {
    this.#handles.clear();
  }

  async #current(handle: string): Promise<HandleIndex> {
    const index: HandleIndex = this.#handles.get(handle) ?? { collection: new Collection(), partial: false };
    this.#keep(handle, index);
    const version = await this.#redis.hget(keys.knowledge(handle), "version");
    // A running load may have started before this search.
    if (index.version !== version && index.loading) await index.loading;
    if (index.version !== version) await this.#load(handle, index);
    return index;
  }

  /** Measures a handle again and evicts others. */
  #keep(handle: string, index: HandleIndex): void {
    // The cache measures only what is new to it.
    this.#handles.delete(handle);
    this.#handles.set(handle, index);
  }

  /** One load per handle at a time; later callers wait for it. */
  #load(handle: string, index: HandleIndex): Promise<void> {
    index.loading ??= this.#update(handle, index).finally(() => {
      index.loading = undefined;
    });
    return index.loading;
  }

  async #update(handle: string, index: HandleIndex): Promise<void> {
    const { collection } = index;
    const fields = await this.#redis.hgetall(keys.knowledge(handle));
    const documents = documentMarks(fields);
    const isDue = sliceClock();
    for (const documentId of collection.documents.keys()) {
      if (!documents.has(documentId)) collection.drop(documentId);
      if (isDue()) await setImmediate();
    }
    const changed = [...documents.values()].filter(
      ({ documentId, mark }) => collection.documents.get(documentId)?.mark !== mark,
    );
    index.partial = false;
    for (const group of groups(changed)) await this.#put(handle, index, group);
    index.version = fields.version ?? null;
  }

  async #put(handle: string, index: HandleIndex, group: DocumentMark[]): Promise<void> {
    const { collection } = index;
    this.#keep(handle, index);
    index.partial ||= collection.bytes > this.#limit;
    // The old text of a changed document must not be found, even if there is no room for the new one.
    if (index.partial) return group.forEach(({ documentId }) => void collection.drop(documentId));
    const chunkKeys = group.flatMap(({ documentId, count }) =>
      Array.from({ length: count }, (_, part) => keys.chunk(handle, documentId, part)),
    );
    const chunks = await readChunks(this.#redis, chunkKeys, { vectors: true });
    const isDue = sliceClock();
    for (const document of group) {
      const entries: Entry[] = [];
      for (const chunk of chunks.splice(0, document.count)) {
        if (chunk) entries.push({ terms: passageTerms(chunk.passage), ...chunk });
        if (isDue()) await setImmediate();
      }
      collection.put(document, entries);
    }
  }
}

/** The documents of each round trip. */
function groups(documents: DocumentMark[]): DocumentMark[][] {
  const found: DocumentMark[][] = [];
  let chunks = Number.POSITIVE_INFINITY;
  for (const document of documents) {
    chunks += document.count;
    if (chunks > CHUNKS_PER_READ) {
      found.push([]);
      chunks = document.count;
    }
    found.at(-1)!.push(document);
  }
  return found;
}
