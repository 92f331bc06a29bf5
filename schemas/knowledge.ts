import * as s from "./schema.ts";

/** Most bytes of a document's content (docs/reference.md, "Knowledge"). */
export const MAX_DOCUMENT_BYTES = 204_800;

const tag = s.line(64);

const body = {
  title: s.line(300),
  topic: s.withDefault(s.text(200), ""),
  source: s.withDefault(s.text(500), ""),
  contentType: s.withDefault(s.oneOf("text/plain", "text/markdown"), "text/plain"),
  containerTags: s.withDefault(s.array(tag, { maxItems: 32 }), []),
  content: s.string({ ...s.filled, maxLength: MAX_DOCUMENT_BYTES }),
};

const derived = s.ignored("documentId", "status", "chunkCount", "createdAt", "updatedAt");

export const newDocument = s.object({ ...body, ...derived });

export const documentChange = s.object({ ...derived, ...s.partial(body) });

/** `POST …/knowledge/query`; `limit` is clamped to 50. */
export const knowledgeQuery = s.object({
  query: s.string({ ...s.filled, maxLength: 2000 }),
  limit: s.withDefault(s.integer(1), 8),
  containerTags: s.withDefault(s.array(tag, { maxItems: 32 }), []),
});

const documentFields = {
  documentId: s.id,
  title: s.string(),
  topic: s.string(),
  source: s.string(),
  contentType: s.oneOf("text/plain", "text/markdown"),
  containerTags: s.array(s.string()),
  status: s.oneOf("INDEXING", "READY", "FAILED"),
  chunkCount: s.integer(0),
  createdAt: s.instant,
  updatedAt: s.instant,
};
/** A document as lists show it, and one with its content. */
export const document = s.component("Document", documentFields);
export const documentWithContent = s.component("DocumentWithContent", {
  ...documentFields,
  content: s.optional(s.string()),
});
export type Document = s.Infer<typeof document>;

const queryResult = s.component("KnowledgeResult", {
  documentId: s.id,
  title: s.string(),
  topic: s.string(),
  source: s.string(),
  snippet: s.string(),
  score: s.number,
  containerTags: s.array(s.string()),
});
export const queryAnswer = s.object({
  results: s.array(queryResult),
  retrievalMode: s.string(),
  degraded: s.boolean,
});
export type QueryAnswer = s.Infer<typeof queryAnswer>;
