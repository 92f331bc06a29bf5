import * as core from "../core/knowledge/face.ts";
import * as shape from "../schemas/knowledge.ts";
import { listOf, listQuery, nothing, object } from "../schemas/schema.ts";
import { creator, type Row, route } from "./route.ts";

const documents = "/v2/handles/:handle/knowledge/documents";

export const knowledgeRows: Row[] = [
  route(`POST ${documents}`, creator, shape.newDocument, core.createDocument, {
    status: 202,
    createdId: ({ document }) => document.documentId,
    returns: object({ document: shape.documentWithContent }),
    description:
      "The document can be found by its words at once; vectors are added in the background. The tag `public-page-agent` lets the assistant of every page quote it.",
  }),
  route(`GET ${documents}`, creator, listQuery, core.listDocuments, { returns: listOf("documents", shape.document) }),
  route(`GET ${documents}/:documentId`, creator, nothing, core.readDocument, {
    returns: object({ document: shape.documentWithContent }),
    description: "With its content.",
  }),
  route(`PUT ${documents}/:documentId`, creator, shape.documentChange, core.updateDocument, {
    returns: object({ document: shape.documentWithContent }),
  }),
  route(`DELETE ${documents}/:documentId`, creator, nothing, core.deleteDocument),
  route("POST /v2/handles/:handle/knowledge/query", creator, shape.knowledgeQuery, core.queryKnowledge, {
    isReadOnly: true,
    returns: shape.queryAnswer,
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
