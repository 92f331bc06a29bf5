import type { knowledgeQuery, QueryAnswer } from "../../schemas/knowledge.ts";
import type { Input } from "../../schemas/schema.ts";
import { normalizeTags, snippets } from "../engines/search/search.ts";
import type { Runtime, SearchRequest, SearchResult } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";

/** Most results of one query (docs/reference.md, "Knowledge"). */
const MAX_RESULTS = 50;
/** Most passages of one search: more than one document has. */
const MAX_PASSAGES = 1200;
/** A question that is not embedded by then is searched by its words alone. */
const EMBED_TIMEOUT_MS = 3000;

/** The best documents for a query, each with its best passage; a failing embedder degrades to words. */
export async function queryKnowledge(
  runtime: Runtime,
  input: Input<"handle", typeof knowledgeQuery>,
): Promise<QueryAnswer> {
  const { handle, query: text } = input;
  const limit = Math.min(input.limit, MAX_RESULTS);
  const request = { handle, text, tags: normalizeTags(input.containerTags), limit: limit * 3 };
  const { hits, mode, degraded } = await searchDocuments(runtime, request, limit);
  const snippetOf = snippets(text);
  const results = hits.slice(0, limit).map(({ passage, score }) => {
    const { documentId, title, topic, source, tags: containerTags } = passage;
    return { documentId, title, topic, source, snippet: snippetOf(passage), score, containerTags };
  });
  return { results, retrievalMode: mode, degraded };
}

/** Passages for a text, by words, and by vectors if an embedding model is configured. */
export async function searchKnowledge(
  runtime: Searcher,
  request: Omit<SearchRequest, "vector">,
): Promise<SearchResult> {
  const search = await searchFor(runtime, request.text);
  return search(request);
}

/**
 * The best passage of each document for a text, the best document first. It looks at more passages than the request's if those are of
 * fewer documents: a long document doesn't leave out the others.
 */
export async function searchDocuments(
  runtime: Searcher,
  request: Omit<SearchRequest, "vector">,
  documents: number,
): Promise<SearchResult> {
  const [search, stored] = await Promise.all([
    searchFor(runtime, request.text),
    runtime.redis.zcard(keys.documents(request.handle)),
  ]);
  const wanted = Math.min(documents, stored);
  for (let { limit } = request; ; limit = Math.min(4 * limit, MAX_PASSAGES)) {
    const found = await search({ ...request, limit });
    const hits = bestOfEach(found);
    const isAll = found.hits.length < limit || limit >= MAX_PASSAGES;
    if (isAll || hits.length >= wanted) return { ...found, hits };
  }
}

function bestOfEach({ hits }: SearchResult): SearchResult["hits"] {
  const best = new Map<string, SearchResult["hits"][number]>();
  for (const hit of hits) if (!best.has(hit.passage.documentId)) best.set(hit.passage.documentId, hit);
  return [...best.values()];
}

type Searcher = Pick<Runtime, "index" | "model" | "redis">;

/** Embeds a text once, for searches with it. */
async function searchFor(
  { index, model: { embedder } }: Searcher,
  text: string,
): Promise<(request: SearchRequest) => Promise<SearchResult>> {
  if (embedder === undefined) return (request) => index.search(request);
  const embedded = await embedder.embed([text], "query", AbortSignal.timeout(EMBED_TIMEOUT_MS)).catch(() => undefined);
  const values = embedded?.[0];
  if (values) return (request) => index.search({ ...request, vector: { model: embedder.id, values } });
  return async (request) => ({ ...(await index.search(request)), degraded: true });
}
