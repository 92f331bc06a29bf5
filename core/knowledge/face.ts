/** What other modules may import from knowledge. */
export {
  createDocument,
  deleteDocument,
  indexDocument,
  listDocuments,
  readDocument,
  updateDocument,
} from "./documents.ts";
export { queryKnowledge, searchDocuments, searchKnowledge } from "./query.ts";
export { reindexDocuments } from "./reindex.ts";
export { type TaggedDocument, type TaggedDocuments, taggedDocuments } from "./tagged-documents.ts";
