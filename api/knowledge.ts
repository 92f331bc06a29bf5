import {
  createDocument,
  deleteDocument,
  listDocuments,
  queryKnowledge,
  readDocument,
  updateDocument,
} from "../core/knowledge/face.ts";
import {
  documentAnswer,
  documentChange,
  documentList,
  documentListing,
  documentPath,
  knowledgeQuery,
  newDocument,
  queryAnswer,
} from "../schemas/knowledge.ts";
import { creator, type Row, route } from "./route.ts";

const documents = "/v2/handles/:handle/knowledge/documents";

/** Knowledge documents and their query. */
export const knowledgeRows: Row[] = [
  route(`POST ${documents}`, creator, newDocument, createDocument, {
    status: 202,
    wrote: ({ document }) => document.documentId,
    returns: documentAnswer,
    summary: "Create a document",
    description:
      "The document can be found by its words at once; vectors are added in the background. The tag `public-page-agent` lets the assistant of every page quote it.",
  }),
  route(`GET ${documents}`, creator, documentListing, listDocuments, {
    returns: documentList,
    summary: "List documents",
  }),
  route(`GET ${documents}/:documentId`, creator, documentPath, readDocument, {
    returns: documentAnswer,
    summary: "Get a document",
    description: "With its content.",
    failures: ["document_not_found"],
  }),
  route(`PUT ${documents}/:documentId`, creator, documentChange, updateDocument, {
    returns: documentAnswer,
    summary: "Update a document",
    failures: ["document_not_found"],
  }),
  route(`DELETE ${documents}/:documentId`, creator, documentPath, deleteDocument, {
    summary: "Delete a document",
    failures: ["document_not_found"],
  }),
  route("POST /v2/handles/:handle/knowledge/query", creator, knowledgeQuery, queryKnowledge, {
    isReadOnly: true,
    returns: queryAnswer,
    summary: "Query the documents",
    description:
      "Finds passages by words, and by meaning if an embedding model is configured. A result carries all of `containerTags`. `limit` is clamped to 50.",
    tool: {
      name: "knowledge_query",
      scope: "agent.knowledge.read",
      description:
        "Finds the passages of the handle's knowledge documents that fit a question or a few words, best first, with the document that each is from.",
    },
  }),
];
