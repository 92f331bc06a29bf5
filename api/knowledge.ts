import {
  changeDocument,
  createDocument,
  deleteDocument,
  listDocuments,
  readDocument,
} from "../core/knowledge/documents.ts";
import { queryKnowledge } from "../core/knowledge/query.ts";
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
    returns: documentAnswer,
    summary: "Create a document",
  }),
  route(`GET ${documents}`, creator, documentListing, listDocuments, {
    returns: documentList,
    summary: "List documents",
  }),
  route(`GET ${documents}/:documentId`, creator, documentPath, readDocument, {
    returns: documentAnswer,
    summary: "Get a document",
  }),
  route(`PUT ${documents}/:documentId`, creator, documentChange, changeDocument, {
    returns: documentAnswer,
    summary: "Update a document",
  }),
  route(`DELETE ${documents}/:documentId`, creator, documentPath, deleteDocument, { summary: "Delete a document" }),
  route("POST /v2/handles/:handle/knowledge/query", creator, knowledgeQuery, queryKnowledge, {
    reads: true,
    returns: queryAnswer,
    summary: "Query the documents",
    tool: { name: "knowledge_query", scope: "agent.knowledge.read" },
  }),
];
