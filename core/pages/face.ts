/** What other modules may import from pages. */
export { handleOfHost, hostName, listPublished, visitedUrl } from "./hosts.ts";
export {
  createPage,
  deletePage,
  listPages,
  type PagePath,
  pageUrl,
  publishPage,
  readPage,
  updatePage,
} from "./pages.ts";
export { type PublicPage, type PublicPages, publicPages } from "./public-text.ts";
export {
  checkPageAccess,
  type PageVisit,
  publicPageOf,
  publishedPage,
  visitPage,
  wayToPage,
} from "./visits.ts";
