import type { Buffer } from "node:buffer";
import type { Embedding, SearchRequest } from "../../platform/runtime.ts";
import { keys } from "../../store/keys.ts";
import type { Ranked } from "./ranking.ts";
import { encodeVector, tagSeparator } from "./stored.ts";
import { termsVersion } from "./words.ts";

/** An index of the server: its name and the arguments of `FT.CREATE` after it. */
export interface IndexDefinition {
  name: string;
  schema: string[];
}

/**
 * Part of every index's name. Increment it with each change of a schema below: during a deploy, processes of both versions then have their
 * own index. The next process that starts drops the older one.
 */
const VERSION = 3;
/** Candidates of each ranking for the fusion. */
const CANDIDATES = 64;

/** Prefix of all indexed keys. */
export const chunkPrefix: string = keys.chunk("", "", 0).split("{")[0]!;
const ON = ["ON", "HASH", "PREFIX", "1", chunkPrefix, "STOPWORDS", "0", "SCHEMA"];
const TAG = ["TAG", "SEPARATOR", tagSeparator, "CASESENSITIVE"];
const FILTERS = ["handle", "tags", "model"].flatMap((field) => [field, ...TAG]);

/**
 * The words of every chunk. `terms` contains the `passageTerms` of title, heading and text, so stop words, stems and title weight match the
 * in-process index for every script, and the server adds none of its own.
 */
export const wordsIndex: IndexDefinition = {
  name: `knowledge-v${VERSION}`,
  schema: [...ON, "terms", "TEXT", "NOSTEM", ...FILTERS, "termsVersion", ...TAG, "dimensions", "NUMERIC"],
};

/**
 * The vectors of one dimension, in an index of their own, since an index omits chunks whose vector has another dimension. A new model
 * creates a new index, and all chunks stay in the index of words.
 */
export function vectorsIndex(dimensions: number): IndexDefinition {
  const shape = ["TYPE", "FLOAT32", "DIM", String(dimensions), "DISTANCE_METRIC", "COSINE"];
  const graph = ["M", "16", "EF_CONSTRUCTION", "200", "EF_RUNTIME", "200"];
  const options = [...shape, ...graph];
  return {
    name: `${wordsIndex.name}-${dimensions}`,
    schema: [...ON, ...FILTERS, "vector", "VECTOR", "HNSW", String(options.length), ...options],
  };
}

/** True for an index of an earlier version of this service, and for one of vectors with another dimension than the one in use. */
export function isStale(name: string, dimensions?: number): boolean {
  const [, version, width] = /^knowledge-v(\d+)(?:-(\d+))?$/.exec(name) ?? [];
  if (version === undefined || Number(version) > VERSION) return false;
  return Number(version) < VERSION || Boolean(dimensions && width && Number(width) !== dimensions);
}

/** Terms of a question, weighted by how often it has the word. */
type WeightedTerms = ReadonlyMap<string, number>;

/**
 * The arguments of `FT.SEARCH` for passages with any of the terms, by BM25STD. Each term carries the filters, without weight: next to a
 * union of terms, RediSearch 8.0 counts only one of its terms, and the filter of a rare handle would dominate the score. Terms contain only
 * letters, digits and marks, so no visitor's text is parsed as syntax.
 */
export function wordsQuery(request: SearchRequest, terms: WeightedTerms): string[] {
  const only = filters(request)
    .map((filter) => `${filter}=>{$weight:0}`)
    .join(" ");
  const clauses = Array.from(terms, ([term, weight]) => {
    const match = `@terms:(${term})`;
    return `(${only} ${weight === 1 ? match : `${match}=>{$weight:${weight}}`})`;
  });
  return [
    wordsIndex.name,
    clauses.join("|"),
    ...["SCORER", "BM25STD", "WITHSCORES", "NOCONTENT"],
    ...window(request),
    ...["DIALECT", "2"],
  ];
}

/** The arguments of `FT.SEARCH` for the nearest passages under the same filters. */
export function nearestQuery(request: SearchRequest, { model, values }: Embedding): (string | Buffer)[] {
  const within = [...filters(request), modelFilter(model)].join(" ");
  const search = `(${within})=>[KNN ${depth(request)} @vector $q AS distance]`;
  const sorted = ["PARAMS", "2", "q", encodeVector(values), "SORTBY", "distance", "ASC", "NOCONTENT"];
  return [vectorsIndex(values.length).name, search, ...sorted, ...window(request), "DIALECT", "2"];
}

/** The arguments of `FT.SEARCH` that count a handle's passages with any vector, or with one that is comparable to the given one. */
export function vectorCountQuery(handle: string, comparable?: Embedding): string[] {
  if (comparable === undefined) return countQuery(handle, "@dimensions:[1 +inf]");
  const { length } = comparable.values;
  return countQuery(handle, `${modelFilter(comparable.model)} @dimensions:[${length} ${length}]`);
}

/** The arguments of `FT.SEARCH` that count a handle's passages with terms of another version. */
export function outdatedQuery(handle: string): string[] {
  return countQuery(handle, `-@termsVersion:{${termsVersion}}`);
}

function countQuery(handle: string, which: string): string[] {
  return [wordsIndex.name, `${handleFilter(handle)} ${which}`, "LIMIT", "0", "0", "DIALECT", "2"];
}

function window(request: SearchRequest): string[] {
  return ["LIMIT", "0", String(depth(request))];
}

function depth({ limit }: SearchRequest): number {
  return Math.max(CANDIDATES, limit);
}

function filters({ handle, tags }: SearchRequest): string[] {
  return [handleFilter(handle), ...tags.map((tag) => `@tags:{${escapeTag(tag)}}`)];
}

function handleFilter(handle: string): string {
  return `@handle:{${escapeTag(handle)}}`;
}

function modelFilter(model: string): string {
  return `@model:{${escapeTag(model)}}`;
}

/** In a tag, every ASCII character but letters, digits and `_` would be syntax. */
function escapeTag(value: string): string {
  return value.replace(/[^\w\u0080-\u{10ffff}]/gu, "\\$&");
}

/** A reply of `FT.SEARCH` with NOCONTENT. */
interface FoundRows {
  /** Number of all matches, beyond the rows too. */
  total: number;
  /** The score is 0 without WITHSCORES. */
  rows: Ranked<string>[];
  /** True if the server stopped early; RESP2 can't report that. */
  partial: boolean;
}

type Reply = unknown[];

/**
 * Parses a reply of `FT.SEARCH` in RESP2 (`[total, key, score?, …]`) or in RESP3 as ioredis flattens it (`["results", [["id", key, …], …],
 * "total_results", total, "warning", [], …]`).
 */
export function readRows(reply: unknown, asked: { scores: boolean }): FoundRows {
  if (!Array.isArray(reply)) throw new TypeError("FT.SEARCH did not answer with a list");
  return typeof reply[0] === "number" ? readClassic(reply, asked) : readNamed(reply);
}

/** Whether the server has read all chunks into an index; `foreign` if the index covers other keys. */
export type IndexState = "complete" | "building" | "partial" | "foreign";

/**
 * Parses a reply of `FT.INFO`, the same in both protocols. `indexing` says exactly whether a scan is running; `percent_indexed` doesn't,
 * since it counts all keys of the server.
 */
export function readState(reply: unknown, prefix: string): IndexState {
  const info = pairs(reply as Reply);
  const prefixes = pairs((info.get("index_definition") ?? []) as Reply).get("prefixes");
  if (JSON.stringify(prefixes) !== JSON.stringify([prefix])) return "foreign";
  if (Number(info.get("indexing") ?? 0) !== 0) return "building";
  const status = pairs((info.get("Index Errors") ?? []) as Reply).get("background indexing status") ?? "OK";
  return status === "OK" ? "complete" : "partial";
}

function readClassic([total, ...rest]: Reply, { scores }: { scores: boolean }): FoundRows {
  const found = scores ? Array.from(pairs(rest)) : rest.map((key) => [String(key), 0] as const);
  const rows = found.map(([key, score]) => ({ item: key, score: Number(score) }));
  return { total: Number(total), rows, partial: false };
}

function readNamed(reply: Reply): FoundRows {
  const answer = pairs(reply);
  const rows = (answer.get("results") as Reply[]).map((result) => {
    const row = pairs(result);
    return { item: String(row.get("id")), score: Number(row.get("score") ?? 0) };
  });
  const warnings = answer.get("warning") as Reply | undefined;
  return { total: Number(answer.get("total_results")), rows, partial: (warnings?.length ?? 0) > 0 };
}

function pairs(list: Reply): Map<string, unknown> {
  const found = new Map<string, unknown>();
  for (let at = 0; at + 1 < list.length; at += 2) found.set(String(list[at]), list[at + 1]);
  return found;
}
