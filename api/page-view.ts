import { Buffer } from "node:buffer";
import type { Visit } from "../core/pages/face.ts";
import { wordsLanguage, wordsOf } from "../schemas/languages.ts";
import { entityTag } from "./reply.ts";
import type { View } from "./route.ts";
import { documentOf, escapeHtml } from "./shell.ts";

/** Only the service's own scripts run; content may style itself and show images and media of any safe origin. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' https: data:",
  "media-src 'self' https:",
  "font-src 'self' https:",
  "connect-src 'self'",
  "frame-src 'self'",
  "form-action 'self' https:",
  "base-uri 'none'",
  "frame-ancestors 'self'",
].join("; ");

/** A page in the service's shell; a paid one without access shows title, description and teaser. */
export function pageView(visit: Visit): View {
  const { bytes, tag } = rendered(visit);
  const sharing = visit.page.accessMode === "PAID" || visit.cookie ? "private, no-cache" : "public, no-cache";
  const headers = {
    ETag: tag,
    "Cache-Control": sharing,
    "Content-Security-Policy": policy,
    ...guards,
    ...(visit.cookie ? { "Set-Cookie": visit.cookie } : {}),
  };
  return { type: "text/html; charset=utf-8", body: bytes, headers };
}

/** The plain page of an address that shows nothing; the same for drafts and for what never was. */
export function missingPage(): View {
  const body = documentOf({
    language: "en",
    title: "Not found",
    body: "<main><h1>Not found</h1><p>There is no page at this address.</p></main>",
  });
  return {
    type: "text/html; charset=utf-8",
    status: 404,
    body,
    headers: { "Content-Security-Policy": policy, "Cache-Control": "no-cache", ...guards },
  };
}

const guards = { "Referrer-Policy": "strict-origin-when-cross-origin" };

interface Rendered {
  bytes: Buffer;
  tag: string;
}

const kept = new WeakMap<object, Map<string, Rendered>>();

/** The page's bytes and their tag, made once for each way in which it can be shown and kept as long as the page itself. */
function rendered(visit: Visit): Rendered {
  const ways = kept.get(visit.page) ?? new Map<string, Rendered>();
  kept.set(visit.page, ways);
  const way = `${visit.hasAccess ? 1 : 0}${visit.assistant ? 1 : 0}`;
  const known = ways.get(way);
  if (known) return known;
  const bytes = Buffer.from(document(visit));
  const made = { bytes, tag: entityTag(bytes) };
  ways.set(way, made);
  return made;
}

function document(visit: Visit): string {
  const { page, language } = visit;
  const content = visit.hasAccess ? page.content : preview(page);
  const head = [...description(visit), ...(visit.assistant ? agent(visit) : [])];
  return documentOf({ language, title: page.title, head, body: content });
}

/** What search engines and previews of links read of a page. */
function description({ page: { title, description }, url }: Visit): string[] {
  const told = [
    ...(description === "" ? [] : [["name", "description", description] as const]),
    ["property", "og:title", title] as const,
    ...(description === "" ? [] : [["property", "og:description", description] as const]),
    ["property", "og:url", url] as const,
  ];
  const tags = told.map(([kind, name, content]) => `<meta ${kind}="${name}" content="${escapeHtml(content)}">`);
  return [...tags, `<link rel="canonical" href="${escapeHtml(url)}">`];
}

function preview(page: Visit["page"]): string {
  return `<main class="svc-preview"><h1>${escapeHtml(page.title)}</h1><p>${escapeHtml(page.description)}</p>${page.teaser}\n</main>`;
}

/** The assistant's config and script: before the content, which can't take them in. */
function agent({ handle, page, language }: Visit): string[] {
  const root = `/v2/public/pages/${handle}/${page.pageSlug}`;
  const config = {
    handle,
    pageSlug: page.pageSlug,
    chatUrl: `${root}/agentic-chat`,
    questionUrl: `${root}/agentic-question`,
    leadUrl: `/v2/public/handles/${handle}/leads`,
    language,
    wordsLanguage: wordsLanguage(language),
    words: wordsOf(language).widget,
    assistant: page.assistant ?? {},
  };
  const json = JSON.stringify(config).replace(/</g, "\\u003c");
  return [
    `<script type="application/json" id="svc-public-page-agent-config">${json}</script>`,
    '<script async src="/assets/public-page-agent.js"></script>',
  ];
}
