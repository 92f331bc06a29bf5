import { listPublished } from "../core/pages/face.ts";
import { wordsOf } from "../schemas/languages.ts";
import { publishedPages } from "../schemas/pages.ts";
import { nothing } from "../schemas/schema.ts";
import { cardLink, cardView, otherLink } from "./card.ts";
import { html } from "./html.ts";
import type { Request } from "./request.ts";
import { page, type Row, type View } from "./route.ts";

const quiet = { logged: false };

/**
 * Requests of browsers and crawlers to a host itself. The crawlers' rows of a page host come before the page row, whose path matches
 * too.
 */
export const frontDoorRows: Row[] = [
  page("GET /", nothing, async () => ({}), frontDoorView),
  page("GET /robots.txt", nothing, async () => ({}), robotsView, quiet),
];

export const crawlerRows: Row[] = [
  page("GET /p/:handle/robots.txt", publishedPages, listPublished, pageRobotsView, quiet),
  page("GET /p/:handle/sitemap.xml", publishedPages, listPublished, sitemapView, quiet),
];

/** The page at the root of the service, with links to the docs and the sign-in. */
function frontDoorView(_nothing: object, request: Request): View {
  const { BASE_URL, LOGIN_BUILTIN, LOGIN_URL } = request.runtime.env;
  const language = request.language();
  const { frontDoor: words } = wordsOf(language);
  const [{ host: service }, login] = [new URL(BASE_URL), new URL(LOGIN_URL)];
  const signIn = (LOGIN_BUILTIN || login.host !== service) && cardLink(words.signIn, login.href);
  const body = html`<p>${words.detail}</p>\n${signIn}\n${otherLink(words.docs, "/docs")}`;
  return cardView({ language, title: service, isListed: true, body });
}

/** Crawlers may index people's pages, but not the service's interfaces. */
function robotsView(): View {
  return text(["User-agent: *", "Disallow: /v2/", "Disallow: /oauth/"]);
}

function pageRobotsView({ root }: { root: string }): View {
  return text(["User-agent: *", "Allow: /", `Sitemap: ${root}sitemap.xml`]);
}

/** The addresses of the published pages on this host (sitemaps.org, protocol 0.9). */
function sitemapView({ addresses }: { addresses: string[] }): View {
  const urls = addresses.map((address) => html`<url><loc>${address}</loc></url>\n`);
  const body = html`<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
${urls}</urlset>
`;
  return { type: "application/xml; charset=utf-8", body: String(body), headers: freshFor };
}

function text(lines: string[]): View {
  return { type: "text/plain; charset=utf-8", body: `${lines.join("\n")}\n`, headers: freshFor };
}

const freshFor = { "Cache-Control": "public, max-age=300" };
