import type { Buffer } from "node:buffer";
import { type Redis, ReplyError } from "ioredis";
import { keys } from "../../store/keys.ts";
import { isRedisAway } from "../../store/redis.ts";
import { fuse } from "./fusion.ts";
import { readInfo, readRows } from "./redisearch-replies.ts";
import { rerank } from "./rerank.ts";
import type { SearchIndex, SearchRequest, SearchResult } from "../../platform/runtime.ts";
import { encodeVector, readPassages, tagSeparator } from "./stored.ts";
import { terms } from "./words.ts";

/** How deep each ranking goes into the fused one. */
const CANDIDATES = 64;
/** A long question is cut here, so that no input makes a slow query. */
const QUERY_TERMS = 32;
/** What a search that matches nothing asks to see whether a server understands these queries at all. */
const PROBE = { handle: "-", text: "probe", tags: ["-"], limit: 1 };

/** An index of the server: its name and the arguments of `FT.CREATE` after it. */
interface Declared {
  name: string;
  schema: string[];
}

const ON = ["ON", "HASH", "PREFIX", "1", keys.chunk("", "", 0).split("{")[0]!];
const TAG = ["TAG", "CASESENSITIVE"];
const TAGS = ["TAG", "SEPARATOR", tagSeparator, "CASESENSITIVE"];
const FILTERS = ["handle", ...TAG, "tags", ...TAGS, "model", ...TAG];

/**
 * Words of every chunk. `terms` holds what `passageTerms` made of title, heading and text, so stop words, stems and title weight
 * are those of the in-process index, for every script, and the server adds none of its own.
 */
const WORDS: Declared = {
  name: "knowledge",
  schema: [...ON, "STOPWORDS", "0", "SCHEMA", "terms", "TEXT", "NOSTEM", ...FILTERS, "dimensions", "NUMERIC"],
};

/** What one ranking gave, best first. `building`: the server is still reading the chunks. */
interface Ranking {
  found: { item: string; score: number }[];
  state: "complete" | "partial" | "building" | "failed";
}

const nothing: Ranking = { found: [], state: "complete" };

/**
 * The index of a server with the search module. Words by BM25STD, its candidates ranked again with feedback; vectors by HNSW
 * under the same filters; both fused by rank. Where the words can't be had, the fallback answers.
 */
export class RediSearchIndex implements SearchIndex {
  readonly kind = "redisearch";
  private readonly redis: Redis;
  private readonly fallback: SearchIndex;
  private readonly complete = new Set<string>();

  constructor(redis: Redis, fallback: SearchIndex) {
    this.redis = redis;
    this.fallback = fallback;
  }

  /** Makes the index of words where it is missing. False when the server has no search module, or one that lacks what is needed. */
  async prepare(): Promise<boolean> {
    try {
      const names = (await this.redis.call("FT._LIST")) as string[];
      if (!names.includes(WORDS.name)) await this.create(WORDS);
      await this.redis.call("FT.SEARCH", ...wordsQuery(PROBE, ["probe"]));
      return true;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return false;
    }
  }

  /** Rejects when Redis can't be reached; what the search module refuses is `degraded`. */
  async search(request: SearchRequest): Promise<SearchResult> {
    const query = [...new Set(terms(request.text))].slice(0, QUERY_TERMS);
    const [words, near] = await Promise.all([this.rankWords(request, query), this.rankNear(request)]);
    if (words.state === "failed" || words.state === "building") return this.fallBack(request, words.state === "failed");
    const hasVectors = near.found.length > 0;
    const hits = await this.read(request, hasVectors ? fused(words, near, request.limit) : words.found);
    const degraded =
      words.state !== "complete" || near.state !== "complete" || (await this.isMisfit(request, hasVectors));
    return { hits, mode: hasVectors ? "vector" : "lexical", degraded };
  }

  close(): Promise<void> {
    return this.fallback.close();
  }

  private async rankWords(request: SearchRequest, query: string[]): Promise<Ranking> {
    if (query.length === 0) return nothing;
    return this.rank(WORDS, wordsQuery(request, query), (reply) => {
      const { rows, partial } = readRows(reply, { scores: true, fields: true });
      const candidates = rows.map(({ key, score, fields }) => ({
        item: key,
        score,
        terms: (fields.get("terms") ?? "").split(" "),
      }));
      return { found: rerank(candidates, query.length), partial };
    });
  }

  private async rankNear(request: SearchRequest): Promise<Ranking> {
    if (!request.vector) return nothing;
    const index = vectorsOf(request.vector.length);
    return this.rank(index, nearQuery(index, request, request.vector), (reply) => {
      const { rows, partial } = readRows(reply, { scores: false, fields: false });
      return { found: rows.map(({ key, score }) => ({ item: key, score })), partial };
    });
  }

  private async rank(
    index: Declared,
    query: (string | Buffer)[],
    read: (reply: unknown) => { found: Ranking["found"]; partial: boolean },
  ): Promise<Ranking> {
    try {
      if (!(await this.isComplete(index))) return { found: [], state: "building" };
      const { found, partial } = read(await this.redis.call("FT.SEARCH", ...query));
      return { found, state: partial ? "partial" : "complete" };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // Whatever it was, the server's index is looked at again before its next use.
      this.complete.delete(index.name);
      return { found: [], state: "failed" };
    }
  }

  /** Whether the server has read all chunks into an index, which it makes where it is missing. Asked until it is so. */
  private async isComplete(index: Declared): Promise<boolean> {
    if (this.complete.has(index.name)) return true;
    const info = await this.info(index).catch(async (error: Error) => {
      if (!isMissing(error)) throw error;
      await this.create(index);
      return this.info(index);
    });
    if (Number(readInfo(info, "percent_indexed")) < 1) return false;
    this.complete.add(index.name);
    return true;
  }

  private info({ name }: Declared): Promise<unknown> {
    return this.redis.call("FT.INFO", name);
  }

  /** Another process may be faster. */
  private async create({ name, schema }: Declared): Promise<void> {
    await this.redis.call("FT.CREATE", name, ...schema).catch((error: Error) => {
      if (!/already exists/i.test(error.message)) throw error;
    });
  }

  private async fallBack(request: SearchRequest, failed: boolean): Promise<SearchResult> {
    const result = await this.fallback.search(request);
    return failed ? { ...result, degraded: true } : result;
  }

  /** True when the handle has vectors but none that the request's could be compared with: they were made by another model. */
  private async isMisfit({ handle, vector, model }: SearchRequest, hasVectors: boolean): Promise<boolean> {
    if (!vector || hasVectors) return false;
    const ofHandle = `@handle:{${escapeTag(handle)}}`;
    const ofModel = model === undefined ? "" : ` @model:{${escapeTag(model)}}`;
    const [all, fitting] = await Promise.all([
      this.count(`${ofHandle} @dimensions:[1 +inf]`),
      this.count(`${ofHandle}${ofModel} @dimensions:[${vector.length} ${vector.length}]`),
    ]);
    return all > 0 && fitting === 0;
  }

  private async count(query: string): Promise<number> {
    const reply = await this.redis.call("FT.SEARCH", WORDS.name, query, "LIMIT", "0", "0", "DIALECT", "2");
    return readRows(reply, { scores: false, fields: true }).total;
  }

  /** A passage that changed since the search may be gone, or no longer carry the tags. */
  private async read({ handle, tags, limit }: SearchRequest, found: Ranking["found"]): Promise<SearchResult["hits"]> {
    const best = found.slice(0, limit);
    const chunkKeys = best.map(({ item }) => item);
    const passages = await readPassages(this.redis, handle, chunkKeys);
    return best.flatMap(({ score }, at) => {
      const passage = passages[at];
      return passage && tags.every((tag) => passage.tags.includes(tag)) ? [{ passage, score }] : [];
    });
  }
}

function fused(words: Ranking, near: Ranking, limit: number): Ranking["found"] {
  const itemsOf = ({ found }: Ranking) => found.map(({ item }) => item);
  return fuse([itemsOf(words), itemsOf(near)], limit);
}

/**
 * Vectors of one dimension. They have indexes of their own, since a chunk whose vector has another dimension is left out of an
 * index as a whole: another model then makes another index, and all chunks stay in the one of words.
 */
function vectorsOf(dimensions: number): Declared {
  const shape = ["TYPE", "FLOAT32", "DIM", String(dimensions), "DISTANCE_METRIC", "COSINE"];
  const graph = ["M", "16", "EF_CONSTRUCTION", "200", "EF_RUNTIME", "200"];
  const options = [...shape, ...graph];
  return {
    name: `${WORDS.name}-${dimensions}`,
    schema: [
      ...ON,
      "STOPWORDS",
      "0",
      "SCHEMA",
      ...FILTERS,
      "vector",
      "VECTOR",
      "HNSW",
      String(options.length),
      ...options,
    ],
  };
}

/** Terms hold letters, digits and marks only, so nothing of a visitor's text is read as syntax. */
function wordsQuery(request: SearchRequest, query: string[]): string[] {
  const search = `${filters(request)} @terms:(${query.join("|")})`;
  const scored = ["SCORER", "BM25STD", "WITHSCORES", "RETURN", "1", "terms"];
  return [WORDS.name, search, ...scored, ...window(request), "DIALECT", "2"];
}

function nearQuery({ name }: Declared, request: SearchRequest, vector: Float32Array): (string | Buffer)[] {
  const model = request.model === undefined ? "" : ` @model:{${escapeTag(request.model)}}`;
  const depth = Math.max(CANDIDATES, request.limit);
  const search = `(${filters(request)}${model})=>[KNN ${depth} @vector $q AS distance]`;
  const sorted = ["SORTBY", "distance", "ASC", "NOCONTENT"];
  return [name, search, "PARAMS", "2", "q", encodeVector(vector), ...sorted, ...window(request), "DIALECT", "2"];
}

function window({ limit }: SearchRequest): string[] {
  return ["LIMIT", "0", String(Math.max(CANDIDATES, limit))];
}

function filters({ handle, tags }: SearchRequest): string {
  return [`@handle:{${escapeTag(handle)}}`, ...tags.map((tag) => `@tags:{${escapeTag(tag)}}`)].join(" ");
}

/** In a tag, everything of ASCII but letters, digits and `_` would be syntax. */
function escapeTag(value: string): string {
  return value.replace(/[^\w\u0080-\u{10ffff}]/gu, "\\$&");
}

/** The search module's own errors, and those of a server without one. */
function isRefusal(error: unknown): boolean {
  return error instanceof ReplyError && !isRedisAway(error);
}

function isMissing(error: Error): boolean {
  return /no such index|index not found|unknown index name/i.test(error.message);
}
