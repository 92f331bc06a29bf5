import {
  checkPageAccess,
  createPage,
  deletePage,
  listPages,
  publishPage,
  readPage,
  shareAccess,
  updatePage,
  visitPage,
} from "../core/pages/face.ts";
import {
  accessAnswer,
  newPage,
  pageAnswer,
  pageChange,
  pageList,
  pageListing,
  pagePath,
  pageSharing,
  pageVisit,
} from "../schemas/pages.ts";
import { failureView } from "./failure-view.ts";
import { pageView, sharedView } from "./page-view.ts";
import { anyone, creator, type Row, route } from "./route.ts";

const pages = "/v2/handles/:handle/pages";
const visitor = { headerInputs: ["cookie", "method"] } as const;

/** Pages: owners' routes and the public page. */
export const pageRows: Row[] = [
  route(`POST ${pages}`, creator, newPage, createPage, {
    status: 201,
    wrote: ({ page }) => page.pageSlug,
    returns: pageAnswer,
    summary: "Create a page",
    description:
      "A page is a DRAFT unless `status` says PUBLISHED. `content` and `teaser` are HTML fragments that are checked by parsing.",
    failures: ["page_already_exists", "invalid_page_content"],
  }),
  route(`GET ${pages}`, creator, pageListing, listPages, {
    returns: pageList,
    summary: "List pages",
    description: "Newest first, drafts included.",
    tool: {
      name: "pages_list",
      scope: "agent.pages.read",
      description:
        "Lists the pages of the handle, drafts included, newest first, without their content. Use pages_read to read one of them.",
      omits: ["content", "teaser"],
    },
  }),
  route(`GET ${pages}/:pageSlug`, creator, pagePath, readPage, {
    returns: pageAnswer,
    summary: "Get a page",
    failures: ["page_not_found"],
    tool: {
      name: "pages_read",
      scope: "agent.pages.read",
      description: "Reads one page by its slug, with its whole HTML content, also where it is a draft or a paid page.",
    },
  }),
  route(`PUT ${pages}/:pageSlug`, creator, pageChange, updatePage, {
    returns: pageAnswer,
    summary: "Update a page",
    description: "An absent field keeps its value. `status` publishes or unpublishes the page.",
    failures: ["page_not_found", "invalid_page_content"],
  }),
  route(`DELETE ${pages}/:pageSlug`, creator, pagePath, deletePage, {
    summary: "Delete a page",
    failures: ["page_not_found"],
  }),
  route(`POST ${pages}/:pageSlug/publish`, creator, pagePath, publishPage, {
    returns: pageAnswer,
    summary: "Publish a page",
    description: "Makes the page visible at its `url`.",
    failures: ["page_not_found", "invalid_page_content", "version_conflict"],
  }),
  route("GET /v2/public/pages/:handle/:pageSlug/access-check", anyone, pageVisit, checkPageAccess, {
    ...visitor,
    summary: "Check access to a page",
    returns: accessAnswer,
    description: "Tells whether this browser may read the page, by its cookie. Nothing is redeemed.",
    failures: ["page_not_found"],
  }),
  route("POST /v2/public/pages/:handle/:pageSlug/access-code", anyone, pageSharing, shareAccess, {
    headerInputs: ["cookie", "host"],
    accepts: "form",
    view: sharedView,
    errorView: failureView,
    hidden: true,
  }),
  route("GET /p/:handle/:pageSlug", anyone, pageVisit, visitPage, {
    ...visitor,
    view: pageView,
    errorView: (fail, request) => (fail.status === 404 ? failureView(fail, request) : undefined),
    hidden: true,
  }),
];
