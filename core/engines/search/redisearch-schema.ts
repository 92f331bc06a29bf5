import type { Buffer } from "node:buffer";
import type { SearchRequest } from "../../platform/runtime.ts";
import { keys } from "../../store/keys.ts";
import { encodeVector, tagSeparator } from "./stored.ts";
import { termsVersion } from "./words.ts";

/** An index of the server: its name and the arguments of `FT.CREATE` after it. */
export interface Declared {
  name: string;
  schema: string[];
}

/**
 * Part of every index's name. Raise it with each change of a schema below: processes of both versions then have an index each
 * while a deploy goes on, and the older one is dropped by the next process that starts.
 */
const VERSION = 3;
/** How deep each ranking goes into the fused one. */
const CANDIDATES = 64;

/** The prefix of all keys that are indexed. */
export const chunkPrefix: string = keys.chunk("", "", 0).split("{")[0]!;
const ON = ["ON", "HASH", "PREFIX", "1", chunkPrefix, "STOPWORDS", "0", "SCHEMA"];
const TAG = ["TAG", "SEPARATOR", tagSeparator, "CASESENSITIVE"];
const FILTERS = ["handle", "tags", "model"].flatMap((field) => [field, ...TAG]);

/**
 * Words of every chunk. `terms` holds what `passageTerms` made of title, heading and text, so stop words, stems and title weight
 * are those of the in-process index, for every script, and the server adds none of its own.
 */
export const wordsIndex: Declared = {
  name: `knowledge-v${VERSION}`,
  schema: [...ON, "terms", "TEXT", "NOSTEM", ...FILTERS, "termsVersion", ...TAG, "dimensions", "NUMERIC"],
};

/**
 * Vectors of one dimension. They have indexes of their own, since a chunk whose vector has another dimension is left out of an
 * index as a whole: another model then makes another index, and all chunks stay in the one of words.
 */
export function vectorsIndex(dimensions: number): Declared {
  const shape = ["TYPE", "FLOAT32", "DIM", String(dimensions), "DISTANCE_METRIC", "COSINE"];
  const graph = ["M", "16", "EF_CONSTRUCTION", "200", "EF_RUNTIME", "200"];
  const options = [...shape, ...graph];
  return {
    name: `${wordsIndex.name}-${dimensions}`,
    schema: [...ON, ...FILTERS, "vector", "VECTOR", "HNSW", String(options.length), ...options],
  };
}

/** True for the name of an index that an earlier version of this service made; the first one had no version in its names. */
export function isOutdated(name: string): boolean {
  const match = /^knowledge(?:-v(\d+))?(?:-\d+)?$/.exec(name);
  return match !== null && Number(match[1] ?? 1) < VERSION;
}

/** True for the name of an index of vectors with another dimension. */
export function isOfOtherDimension(name: string, dimensions: number): boolean {
  return name.startsWith(`${wordsIndex.name}-`) && name !== vectorsIndex(dimensions).name;
}

/** Terms of a question with their weights: how often it says the word that each stands for. */
export type WeightedTerms = ReadonlyMap<string, number>;

/**
 * The arguments of `FT.SEARCH` for passages that hold any of the terms, by BM25STD. The filters stand beside each term and weigh
 * nothing: beside a union of terms RediSearch 8.0 counts one term of it alone, and the rarer a handle the more its filter would
 * score. Terms hold letters, digits and marks only, so nothing of a visitor's text is read as syntax.
 */
export function wordsQuery(request: SearchRequest, terms: WeightedTerms): string[] {
  const only = filters(request)
    .map((filter) => `${filter}=>{$weight:0}`)
    .join(" ");
  const clauses = Array.from(terms, ([term, weight]) => {
    const said = `@terms:(${term})`;
    return `(${only} ${weight === 1 ? said : `${said}=>{$weight:${weight}}`})`;
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
export function nearestQuery(request: SearchRequest, vector: Float32Array): (string | Buffer)[] {
  const model = request.model === undefined ? [] : [`@model:{${escapeTag(request.model)}}`];
  const within = [...filters(request), ...model].join(" ");
  const search = `(${within})=>[KNN ${depth(request)} @vector $q AS distance]`;
  const sorted = ["PARAMS", "2", "q", encodeVector(vector), "SORTBY", "distance", "ASC", "NOCONTENT"];
  return [vectorsIndex(vector.length).name, search, ...sorted, ...window(request), "DIALECT", "2"];
}

/** The arguments of `FT.SEARCH` that count a handle's passages with a vector, or with one that the request's fits. */
export function countQuery({ handle, model, vector }: SearchRequest, { fitting }: { fitting: boolean }): string[] {
  const ofModel = model === undefined || !fitting ? "" : ` @model:{${escapeTag(model)}}`;
  const dimensions = fitting ? `${vector!.length} ${vector!.length}` : "1 +inf";
  const search = `@handle:{${escapeTag(handle)}}${ofModel} @dimensions:[${dimensions}]`;
  return [wordsIndex.name, search, "LIMIT", "0", "0", "DIALECT", "2"];
}

/** The arguments of `FT.SEARCH` that count a handle's passages whose terms are of another version. */
export function outdatedQuery(handle: string): string[] {
  const search = `@handle:{${escapeTag(handle)}} -@termsVersion:{${termsVersion}}`;
  return [wordsIndex.name, search, "LIMIT", "0", "0", "DIALECT", "2"];
}

function window(request: SearchRequest): string[] {
  return ["LIMIT", "0", String(depth(request))];
}

function depth({ limit }: SearchRequest): number {
  return Math.max(CANDIDATES, limit);
}

function filters({ handle, tags }: SearchRequest): string[] {
  return [`@handle:{${escapeTag(handle)}}`, ...tags.map((tag) => `@tags:{${escapeTag(tag)}}`)];
}

/** In a tag, everything of ASCII but letters, digits and `_` would be syntax. */
function escapeTag(value: string): string {
  return value.replace(/[^\w\u0080-\u{10ffff}]/gu, "\\$&");
}
