import type { knowledgeQuery, QueryAnswer } from "../../schemas/knowledge.ts";
import type { Input } from "../../schemas/schema.ts";
import { normalizeTags, snippets } from "../engines/search/search.ts";
import type { Runtime, SearchRequest, SearchResult } from "../platform/runtime.ts";

/** Most results of one query (docs/reference.md, "Knowledge"). */
const MAX_RESULTS = 50;
/** A question that is not embedded by then is searched by its words alone. */
const EMBED_TIMEOUT_MS = 3000;

/** The best documents for a query, each with its best passage; a failing embedder degrades to words. */
export async function queryKnowledge(
  runtime: Runtime,
  input: Input<"handle", typeof knowledgeQuery>,
): Promise<QueryAnswer> {
  const limit = Math.min(input.limit, MAX_RESULTS);
  const found = await searchKnowledge(runtime, {
    handle: input.handle,
    text: input.query,
    tags: normalizeTags(input.containerTags),
    limit: limit * 3,
  });
  const snippetOf = snippets(input.query);
  const results = bestPassages(found)
    .slice(0, limit)
    .map(({ passage, score }) => {
      const { documentId, title, topic, source, tags: containerTags } = passage;
      return { documentId, title, topic, source, snippet: snippetOf(passage), score, containerTags };
    });
  return { results, retrievalMode: found.mode, degraded: found.degraded };
}

/** The best passage of each document, the best document first. */
export function bestPassages({ hits }: SearchResult): SearchResult["hits"] {
  const best = new Map<string, SearchResult["hits"][number]>();
  for (const hit of hits) if (!best.has(hit.passage.documentId)) best.set(hit.passage.documentId, hit);
  return [...best.values()];
}

/** Passages for a text, by words, and by vectors if an embedding model is configured. */
export async function searchKnowledge(
  { index, model }: Pick<Runtime, "index" | "model">,
  request: Omit<SearchRequest, "vector">,
): Promise<SearchResult> {
  if (model.embedder === undefined) return index.search(request);
  const embedded = await model.embedder
    .embed([request.text], "query", AbortSignal.timeout(EMBED_TIMEOUT_MS))
    .catch(() => undefined);
  const values = embedded?.[0];
  const found = await index.search({ ...request, ...(values && { vector: { model: model.embedder.id, values } }) });
  return values ? found : { ...found, degraded: true };
}
