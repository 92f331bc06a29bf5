import { setImmediate } from "node:timers/promises";
import type { Redis } from "ioredis";
import { LRUCache } from "lru-cache";
import type { IndexStatus, SearchIndex, SearchRequest, SearchResult } from "../../platform/runtime.ts";
import { sliceClock } from "../../platform/slices.ts";
import { keys } from "../../store/keys.ts";
import { Collection, type Entry } from "./collection.ts";
import { readChunks } from "./stored.ts";
import { passageTerms } from "./words.ts";

/** Memory limit of all handles together, in bytes: about 40,000 chunks with 384 dimensions. */
export const maximumBytes = 160 * 2 ** 20;
/** Chunks per round trip, rounded to whole documents. */
const CHUNKS_A_READ = 128;

interface HandleIndex {
  collection: Collection;
  /** The handle's version in Redis that the collection reflects, `null` if the handle has none; undefined before the first load. */
  version?: string | null;
  /** Document id to its mark in Redis, for loaded documents. */
  marks: Map<string, string>;
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
  constructor(redis: Redis, limit: number = maximumBytes) {
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
    const held = await this.#current(request.handle);
    const result = held.collection.search(request);
    // A load and the search after it take memory.
    if (held.version !== before) this.#keep(request.handle, held);
    return held.partial ? { ...result, degraded: true } : result;
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
    const held: HandleIndex = this.#handles.get(handle) ?? {
      collection: new Collection(),
      marks: new Map(),
      partial: false,
    };
    this.#keep(handle, held);
    const version = await this.#redis.hget(keys.knowledge(handle), "version");
    // A running load may have started before this search.
    if (held.version !== version && held.loading) await held.loading;
    if (held.version !== version) await this.#load(handle, held);
    return held;
  }

  /** Measures a handle again and evicts others. */
  #keep(handle: string, held: HandleIndex): void {
    // The cache measures only what is new to it.
    this.#handles.delete(handle);
    this.#handles.set(handle, held);
  }

  /** One load per handle at a time; later callers wait for it. */
  #load(handle: string, held: HandleIndex): Promise<void> {
    held.loading ??= this.#update(handle, held).finally(() => {
      held.loading = undefined;
    });
    return held.loading;
  }

  async #update(handle: string, held: HandleIndex): Promise<void> {
    const fields = await this.#redis.hgetall(keys.knowledge(handle));
    const documents = documentMarks(fields);
    const isDue = sliceClock();
    for (const documentId of held.marks.keys()) {
      if (!documents.has(documentId)) forget(held, documentId);
      if (isDue()) await setImmediate();
    }
    const changed = [...documents.values()].filter(({ documentId, mark }) => held.marks.get(documentId) !== mark);
    held.partial = false;
    for (const group of groups(changed)) await this.#put(handle, held, group);
    held.version = fields.version ?? null;
  }

  async #put(handle: string, held: HandleIndex, group: Change[]): Promise<void> {
    this.#keep(handle, held);
    held.partial ||= held.collection.bytes > this.#limit;
    // The old text of a changed document must not be found, even if there is no room for the new one.
    if (held.partial) return group.forEach(({ documentId }) => void forget(held, documentId));
    const documents = await readChunks(this.#redis, handle, group);
    const isDue = sliceClock();
    for (const [at, { documentId, mark }] of group.entries()) {
      const entries: Entry[] = [];
      for (const chunk of documents[at]!) {
        entries.push({ terms: passageTerms(chunk.passage), ...chunk });
        if (isDue()) await setImmediate();
      }
      held.collection.put(documentId, entries);
      held.marks.set(documentId, mark);
    }
  }
}

interface Change {
  documentId: string;
  /** `<version>:<number of chunks>`. */
  mark: string;
  count: number;
}

function forget(held: HandleIndex, documentId: string): void {
  held.collection.drop(documentId);
  held.marks.delete(documentId);
}

function documentMarks(fields: Record<string, string>): Map<string, Change> {
  const changes = Object.entries(fields)
    .filter(([field]) => field.startsWith("d:"))
    .map(([field, mark]) => ({ documentId: field.slice(2), mark, count: Number(mark.split(":")[1]) }));
  return new Map(changes.map((change) => [change.documentId, change]));
}

function groups(changes: Change[]): Change[][] {
  const found: Change[][] = [];
  let room = 0;
  for (const change of changes) {
    if (found.length === 0 || room < change.count) {
      found.push([]);
      room = CHUNKS_A_READ;
    }
    found.at(-1)!.push(change);
    room -= change.count;
  }
  return found;
}
