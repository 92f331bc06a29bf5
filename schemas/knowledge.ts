import {
  array,
  boolean,
  handle,
  type Infer,
  id,
  ignored,
  instant,
  integer,
  line,
  listing,
  merge,
  nullable,
  number,
  object,
  oneOf,
  optional,
  partial,
  string,
  text,
  withDefault,
} from "./schema.ts";

/** Most bytes of a document's content (docs/reference.md, "Knowledge"). */
export const MAX_DOCUMENT_BYTES = 204_800;

/** A tag of a document. */
export const tag = line(64);

const body = {
  title: line(300),
  topic: withDefault(text(200), ""),
  source: withDefault(text(500), ""),
  contentType: withDefault(oneOf("text/plain", "text/markdown"), "text/plain"),
  containerTags: withDefault(array(tag, { maxItems: 32 }), []),
  content: string({ minLength: 1, maxLength: MAX_DOCUMENT_BYTES, pattern: "\\S" }),
};

const derived = ignored("documentId", "status", "chunkCount", "createdAt", "updatedAt");

/** `POST …/knowledge/documents`. */
export const newDocument = object({ handle, ...body, ...derived });

/** `PUT …/knowledge/documents/{documentId}`. */
export const documentChange = merge(object({ handle, ...derived, documentId: string() }), partial(object(body)));

/** The path of one document. */
export const documentPath = object({ handle: string(), documentId: string() });

/** `GET …/knowledge/documents`. */
export const documentListing = object({ handle, ...listing });

/** `POST …/knowledge/query`; `limit` is clamped to 50. */
export const knowledgeQuery = object({
  handle,
  query: string({ minLength: 1, maxLength: 2000, pattern: "\\S" }),
  limit: withDefault(integer(1), 8),
  containerTags: withDefault(array(tag, { maxItems: 32 }), []),
});

/** A document as lists show it. */
export const document = object({
  documentId: id,
  title: string(),
  topic: string(),
  source: string(),
  contentType: oneOf("text/plain", "text/markdown"),
  containerTags: array(string()),
  status: oneOf("INDEXING", "READY", "FAILED"),
  chunkCount: integer(0),
  createdAt: instant,
  updatedAt: instant,
});
export type Document = Infer<typeof document>;

/** A document with its content. */
export const documentWithContent = merge(document, object({ content: optional(string()) }));
/** `{document}`; reading one adds its content. */
export const documentAnswer = object({ document: documentWithContent });
export const documentList = object({ documents: array(document), nextCursor: nullable(string()) });
/** A passage of a document that a query found. */
export const queryResult = object({
  documentId: id,
  title: string(),
  topic: string(),
  source: string(),
  snippet: string(),
  score: number(),
  containerTags: array(string()),
});
/** The result of a knowledge query. */
export const queryAnswer = object({
  results: array(queryResult),
  retrievalMode: string(),
  degraded: boolean,
});
export type QueryAnswer = Infer<typeof queryAnswer>;
