import { changePage, createPage, deletePage, listPages, publishPage, readPage } from "../core/pages/pages.ts";
import { checkAccess, visitPage } from "../core/pages/visits.ts";
import { newPage, pageAnswer, pageChange, pageList, pageListing, pagePath, pageVisit } from "../schemas/pages.ts";
import { missingPage, pageView } from "./page-view.ts";
import { creator, open, type Row, route } from "./route.ts";

const pages = "/v2/handles/:handle/pages";
const visitor = { takes: { cookie: "cookie", ":method": "method" } };

/** Pages: the owner's routes, and what a visitor opens. */
export const pageRows: Row[] = [
  route(`POST ${pages}`, creator, newPage, createPage, { status: 201, returns: pageAnswer, summary: "Create a page" }),
  route(`GET ${pages}`, creator, pageListing, listPages, {
    returns: pageList,
    summary: "List pages",
    tool: { name: "pages_list", scope: "agent.pages.read" },
  }),
  route(`GET ${pages}/:pageSlug`, creator, pagePath, readPage, {
    returns: pageAnswer,
    summary: "Get a page",
    tool: { name: "pages_read", scope: "agent.pages.read" },
  }),
  route(`PUT ${pages}/:pageSlug`, creator, pageChange, changePage, { returns: pageAnswer, summary: "Update a page" }),
  route(`DELETE ${pages}/:pageSlug`, creator, pagePath, deletePage, { summary: "Delete a page" }),
  route(`POST ${pages}/:pageSlug/publish`, creator, pagePath, publishPage, {
    returns: pageAnswer,
    summary: "Publish a page",
  }),
  route("GET /v2/public/pages/:handle/:pageSlug/access-check", open, pageVisit, checkAccess, {
    ...visitor,
    summary: "Check access to a page",
  }),
  route("GET /p/:handle/:pageSlug", open, pageVisit, visitPage, {
    ...visitor,
    view: pageView,
    failed: (fail) => (fail.status === 404 ? missingPage() : undefined),
    hidden: true,
  }),
];
