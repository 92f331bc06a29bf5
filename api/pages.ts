import * as core from "../core/pages/face.ts";
import * as shape from "../schemas/pages.ts";
import { listOf, listQuery, nothing, object } from "../schemas/schema.ts";
import { failureView } from "./failure-view.ts";
import { pageView } from "./page-view.ts";
import { anyone, creator, page, type Row, route } from "./route.ts";

const pages = "/v2/handles/:handle/pages";

export const pageRows: Row[] = [
  route(`POST ${pages}`, creator, shape.newPage, core.createPage, {
    status: 201,
    createdId: ({ page }) => page.pageSlug,
    returns: object({ page: shape.page }),
    description:
      "A page is a DRAFT unless `status` says PUBLISHED. `content` and `teaser` are HTML fragments that are checked by parsing.",
    failures: ["page_already_exists", "invalid_page_content"],
  }),
  route(`GET ${pages}`, creator, listQuery, core.listPages, {
    returns: listOf("pages", shape.page),
    description: "Newest first, drafts included.",
    tool: {
      name: "pages_list",
      scope: "agent.pages.read",
      description:
        "Lists the pages of the handle, drafts included, newest first, without their content. Use pages_read to read one of them.",
      omits: ["content", "teaser"],
    },
  }),
  route(`GET ${pages}/:pageSlug`, creator, nothing, core.readPage, {
    returns: object({ page: shape.page }),
    tool: {
      name: "pages_read",
      scope: "agent.pages.read",
      description: "Reads one page by its slug, with its whole HTML content, also where it is a draft or a paid page.",
    },
  }),
  route(`PUT ${pages}/:pageSlug`, creator, shape.pageChange, core.updatePage, {
    returns: object({ page: shape.page }),
    description: "An absent field keeps its value. `status` publishes or unpublishes the page.",
    failures: ["invalid_page_content"],
  }),
  route(`DELETE ${pages}/:pageSlug`, creator, nothing, core.deletePage),
  route(`POST ${pages}/:pageSlug/publish`, creator, nothing, core.publishPage, {
    returns: object({ page: shape.page }),
    description: "Makes the page visible at its `url`.",
    failures: ["invalid_page_content", "version_conflict"],
  }),
  route("GET /v2/public/pages/:handle/:pageSlug/access-check", anyone, shape.pageVisit, core.checkPageAccess, {
    summary: "Check access to a page",
    returns: shape.accessAnswer,
    description: "Tells whether this browser may read the page, by its cookie. Nothing is redeemed.",
  }),
  page("GET /p/:handle/:pageSlug", shape.pageVisit, core.visitPage, pageView, {
    errorView: (fail, request) => (fail.status === 404 ? failureView(fail, request) : undefined),
  }),
];
