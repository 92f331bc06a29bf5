/** What the others may use of knowledge. */
export {
  createDocument,
  deleteDocument,
  indexDocument,
  listDocuments,
  readDocument,
  updateDocument,
} from "./documents.ts";
export { bestPassages, queryKnowledge, searchKnowledge } from "./query.ts";
export { reindexDocuments } from "./reindex.ts";
export { type TaggedDocument, type TaggedDocuments, taggedDocuments } from "./tagged-documents.ts";
