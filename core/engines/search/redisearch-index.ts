import type { Buffer } from "node:buffer";
import { type Redis, ReplyError } from "ioredis";
import { LRUCache } from "lru-cache";
import type { Log } from "../../platform/log-events.ts";
import type { FallbackReason, IndexStatus, SearchIndex, SearchRequest, SearchResult } from "../../platform/runtime.ts";
import { isRedisAway } from "../../store/redis.ts";
import { fuse, type Ranked } from "./ranking.ts";
import {
  chunkPrefix,
  type IndexDefinition,
  type IndexState,
  isStale,
  nearestQuery,
  outdatedQuery,
  readRows,
  readState,
  vectorCountQuery,
  vectorsIndex,
  wordsIndex,
  wordsQuery,
} from "./redisearch-commands.ts";
import { readChunks, readLanguages } from "./stored.ts";
import { queryTerms } from "./words.ts";

/** Longer questions are cut, so that no input makes a slow query. */
const QUERY_TERMS = 32;
/** Ms for which the state of an index is cached: at most ten `FT.INFO` per second, however many searches come. */
const STATE_TTL_MS = 100;
/** Ms for which a check of the terms' version is cached: during a deploy, an older process may still write its version. */
const CURRENT_TTL_MS = 60_000;
/** Ms between two log lines about the same fallback. */
const LOG_INTERVAL_MS = 30_000;
/** The query that tests, after a search without matches, whether the server understands these queries at all. */
const PROBE = { handle: "-", text: "probe", tags: ["-"], limit: 1 };

/** Messages for operators, without any text of a question or a passage. */
export type IndexLog = Pick<Log, "info" | "warn">;

/** A log that drops everything. */
export const silent: IndexLog = { info: () => undefined, warn: () => undefined };

/** The server's index can't answer in full. `message` is the server's and may contain a visitor's words. */
class Incomplete extends Error {
  override readonly name = "Incomplete";
  readonly reason: FallbackReason;

  constructor(reason: FallbackReason, message: string = reason) {
    super(message);
    this.reason = reason;
  }
}

/**
 * The index of a server with the search module: words by BM25STD, vectors by HNSW under the same filters, fused by rank. If the server
 * can't answer in full, the in-process index answers the whole search: while the server reads the chunks (after a restart or a rebuild),
 * when it ran out of memory, and when it refuses.
 */
export class RediSearchIndex implements SearchIndex {
  readonly kind = "redisearch";
  readonly fallbacks = new Map<FallbackReason, number>();
  readonly #redis: Redis;
  readonly #fallback: SearchIndex;
  readonly #log: IndexLog;
  readonly #checks = new LRUCache<string, Promise<void>>({ max: 100, ttl: STATE_TTL_MS, ttlResolution: 0 });
  readonly #logged = new LRUCache<FallbackReason, true>({ max: 100, ttl: LOG_INTERVAL_MS });
  /** Dimensions of the searches so far. */
  readonly #dimensions = new Set<number>();
  /** Handles whose passages have terms of this version. */
  readonly #current = new LRUCache<string, true>({ max: 10_000, ttl: CURRENT_TTL_MS });
  /** Counts connections: cached knowledge about an index is invalid for the server that a reconnection reaches. */
  #connection = 0;

  constructor(redis: Redis, fallback: SearchIndex, log = silent) {
    this.#redis = redis;
    this.#fallback = fallback;
    this.#log = log;
    redis.on("close", this.#forget).on("ready", this.#forget);
  }

  /**
   * Creates the index of words if it is missing and drops the indexes of earlier versions. Returns why this server can't be used (no search
   * module, a missing feature, a forbidden command); undefined if it can.
   */
  async prepare(): Promise<string | undefined> {
    try {
      const names = (await this.#call("FT._LIST")) as string[];
      if ((await this.#stateOf(wordsIndex)) === "foreign") return `The index ${wordsIndex.name} is one of other keys`;
      await this.#call("FT.SEARCH", ...wordsQuery(PROBE, new Map([["probe", 1]])));
      await this.#drop(names.filter((name) => isStale(name)));
      return undefined;
    } catch (error) {
      return refusal(error).message;
    }
  }

  /** Rejects without Redis; `degraded` if the search module refuses, though the answer is complete. */
  async search(request: SearchRequest): Promise<SearchResult> {
    try {
      return await this.#searchServer(request);
    } catch (error) {
      const { reason, message } = refusal(error);
      if (reason === "missing") this.#checks.clear();
      this.#count(reason, message);
      const result = await this.#fallback.search(request);
      return reason === "refused" ? { ...result, degraded: true } : result;
    }
  }

  async status(): Promise<IndexStatus> {
    const { kind } = this;
    try {
      await Promise.all([wordsIndex, ...Array.from(this.#dimensions, vectorsIndex)].map((index) => this.#check(index)));
      return { kind, serving: kind };
    } catch (error) {
      return { kind, serving: this.#fallback.kind, reason: refusal(error).reason };
    }
  }

  /** Also drops the indexes of other dimensions: their model is no longer in use. */
  async prepareVectors(dimensions: number): Promise<void> {
    const index = vectorsIndex(dimensions);
    try {
      const names = (await this.#call("FT._LIST")) as string[];
      if (!names.includes(index.name)) await this.#create(index);
      await this.#drop(names.filter((name) => isStale(name, dimensions)));
    } catch (error) {
      this.#log.warn({ index: index.name, error: refusal(error).message }, "knowledge.index.create_failed");
    }
  }

  async close(): Promise<void> {
    this.#redis.off("close", this.#forget).off("ready", this.#forget);
    await this.#fallback.close();
  }

  readonly #forget = (): void => {
    this.#connection++;
    this.#checks.clear();
  };

  async #searchServer(request: SearchRequest): Promise<SearchResult> {
    const connection = this.#connection;
    const [words, near] = await Promise.all([this.#rankWords(request), this.#rankNearest(request)]);
    const hasVectors = near.length > 0;
    const degraded = !hasVectors && (await this.#isMisfit(request));
    if (connection !== this.#connection) throw new Incomplete("reconnected");
    const hits = await this.#read(request, hasVectors ? fuse([words, near], request.limit) : words);
    return { hits, mode: hasVectors ? "vector" : "lexical", degraded };
  }

  async #rankWords(request: SearchRequest): Promise<Ranked<string>[]> {
    const [languages] = await Promise.all([readLanguages(this.#redis, request.handle), this.#check(wordsIndex)]);
    const query = weighted(queryTerms(request.text, languages));
    if (query.size === 0) return [];
    await this.#checkTerms(request.handle);
    return this.#rank(wordsIndex, wordsQuery(request, query), { scores: true });
  }

  async #rankNearest(request: SearchRequest): Promise<Ranked<string>[]> {
    const { vector } = request;
    if (!vector) return [];
    const { length } = vector.values;
    this.#dimensions.add(length);
    return this.#rank(vectorsIndex(length), nearestQuery(request, vector), { scores: false });
  }

  async #rank(index: IndexDefinition, query: (string | Buffer)[], { scores }: { scores: boolean }) {
    await this.#check(index);
    const { rows, partial } = readRows(await this.#call("FT.SEARCH", ...query), { scores });
    if (partial) throw new Incomplete("partial");
    return rows;
  }

  /** Rejects with `Incomplete` until the server has read all chunks into an index. */
  #check(index: IndexDefinition): Promise<void> {
    const known = this.#checks.get(index.name);
    if (known) return known;
    const done = this.#stateOf(index).then((state) => {
      if (state !== "complete") throw new Incomplete(state);
    });
    this.#checks.set(index.name, done);
    return done;
  }

  /** Rejects with `Incomplete` while passages of a handle have terms of another version of this service. */
  async #checkTerms(handle: string): Promise<void> {
    if (this.#current.has(handle)) return;
    if ((await this.#total(outdatedQuery(handle))) > 0) throw new Incomplete("outdated");
    this.#current.set(handle, true);
  }

  /** Creates a missing index; the server then reads the chunks in the background. */
  async #stateOf(index: IndexDefinition): Promise<IndexState> {
    try {
      return readState(await this.#call("FT.INFO", index.name), chunkPrefix);
    } catch (error) {
      if (refusal(error).reason !== "missing") throw error;
      await this.#create(index);
      return "building";
    }
  }

  /** Another process may be faster. */
  async #create({ name, schema }: IndexDefinition): Promise<void> {
    try {
      await this.#call("FT.CREATE", name, ...schema);
      this.#log.info({ index: name }, "knowledge.index.created");
    } catch (error) {
      if (!/already exists/i.test(refusal(error).message)) throw error;
    }
  }

  /** Drops indexes, never the chunks. Another process may be faster, and a server may forbid it. */
  async #drop(names: string[]): Promise<void> {
    for (const index of names) {
      try {
        if (readState(await this.#call("FT.INFO", index), chunkPrefix) === "foreign") continue;
        await this.#call("FT.DROPINDEX", index);
        this.#log.info({ index }, "knowledge.index.dropped");
      } catch (error) {
        const { reason, message } = refusal(error);
        if (reason !== "missing") this.#log.warn({ index, error: message }, "knowledge.index.drop_failed");
      }
    }
  }

  /** Sends a command of the search module; a refusal becomes `Incomplete`. */
  async #call(command: string, ...values: (string | Buffer)[]): Promise<unknown> {
    try {
      return await this.#redis.call(command, ...values);
    } catch (error) {
      if (!isRefused(error)) throw error;
      const isMissing = /no such index|index not found|unknown index name/i.test(error.message);
      throw new Incomplete(isMissing ? "missing" : "refused", error.message);
    }
  }

  #count(reason: FallbackReason, message: string): void {
    const count = (this.fallbacks.get(reason) ?? 0) + 1;
    this.fallbacks.set(reason, count);
    if (this.#logged.has(reason)) return;
    this.#logged.set(reason, true);
    // The first words name the kind of error; the rest may contain a visitor's words.
    const error = message === reason ? {} : { error: message.split(" ", 2).join(" ") };
    this.#log.warn({ reason, ...error, count }, "knowledge.index.fallback");
  }

  /** True if the handle has vectors, but all of another model than the request's. */
  async #isMisfit({ handle, vector }: SearchRequest): Promise<boolean> {
    if (!vector) return false;
    const queries = [vectorCountQuery(handle), vectorCountQuery(handle, vector)];
    const [all = 0, comparable = 0] = await Promise.all(queries.map((query) => this.#total(query)));
    return all > 0 && comparable === 0;
  }

  /** The number of all matches of a query. */
  async #total(query: string[]): Promise<number> {
    return readRows(await this.#call("FT.SEARCH", ...query), { scores: false }).total;
  }

  /** A passage may have been removed or retagged since the search. */
  async #read({ tags, limit }: SearchRequest, found: Ranked<string>[]): Promise<SearchResult["hits"]> {
    const best = found.slice(0, limit);
    const chunkKeys = best.map(({ item }) => item);
    const chunks = await readChunks(this.#redis, chunkKeys, { vectors: false });
    return best.flatMap(({ score }, at) => {
      const passage = chunks[at]?.passage;
      return passage && tags.every((tag) => passage.tags.includes(tag)) ? [{ passage, score }] : [];
    });
  }
}

/** Each term once, with the number of times that the question has its word. */
function weighted(words: readonly (readonly string[])[]): Map<string, number> {
  const weights = new Map<string, number>();
  for (const term of words.flat()) weights.set(term, (weights.get(term) ?? 0) + 1);
  return new Map([...weights].slice(0, QUERY_TERMS));
}

/** Why the server's index can't answer in full; throws every other error. */
function refusal(error: unknown): Incomplete {
  if (error instanceof Incomplete) return error;
  throw error;
}

/** True for errors of the search module, of a server without it or that forbids it, and of a read-only server. */
function isRefused(error: unknown): error is Error {
  return (
    error instanceof ReplyError && (!isRedisAway(error) || /^(OOM|MISCONF|NOPERM) /.test((error as Error).message))
  );
}
