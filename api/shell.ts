import { directionOf } from "../core/platform/language-tags.ts";
import type { View } from "./route.ts";

/** One HTML document of the service. */
interface HtmlDocument {
  /** BCP 47. */
  language: string;
  title: string;
  /** HTML of the body. */
  body: string;
  /** Further elements of the head, as HTML. */
  head?: readonly string[];
  /** Style sheets in /assets. */
  styles?: readonly string[];
  /** Class of the body, by which style sheets recognise the kind of page. */
  look?: string;
}

/** The shell of every HTML page for people: language, direction, title and head around a body. */
export function htmlDocument({ language, title, body, head = [], styles = ["page.css"], look }: HtmlDocument): string {
  const sheets = styles.map((file) => `<link rel="stylesheet" href="/assets/${file}">`);
  return `<!doctype html>
<html lang="${escapeHtml(language)}" dir="${directionOf(language)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
${[...head, ...sheets].join("\n")}
</head>
<body${look ? ` class="${look}"` : ""}>
${body}
</body>
</html>
`;
}

/** A public page as search engines and previews of its link show it. */
export interface LinkPreview {
  title: string;
  summary: string;
  /** The page's canonical address. */
  url: string;
  image?: string | null;
}

/** Elements of the head that describe a public page: its summary, Open Graph properties (ogp.me) and canonical address. */
export function linkPreview({ title, summary, url, image }: LinkPreview): string[] {
  const metadata = [
    ["name", "description", summary],
    ["property", "og:title", title],
    ["property", "og:description", summary],
    ["property", "og:image", image],
    ["property", "og:url", url],
  ].filter(([, , content]) => content);
  const tags = metadata.map(([kind, name, content]) => `<meta ${kind}="${name}" content="${escapeHtml(content!)}">`);
  return [...tags, `<link rel="canonical" href="${escapeHtml(url)}">`];
}

/** Keeps a page out of search engines. */
export const unlisted = '<meta name="robots" content="noindex">';

/** Data for a script of the page, as JSON that can't end its element. */
export function jsonScript(id: string, data: unknown): string {
  return `<script type="application/json" id="${id}">${JSON.stringify(data).replace(/</g, "\\u003c")}</script>`;
}

/** Escapes text for HTML content and attribute values. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

/** Fills the placeholders (`{email}`) of a sentence, as HTML; the names are emphasised and keep their own text direction. */
export function sentence(text: string, names: Readonly<Record<string, string>>): string {
  const name = (place: string, key: string): string =>
    names[key] === undefined ? place : `<strong dir="auto">${escapeHtml(names[key])}</strong>`;
  return escapeHtml(text).replace(/\{(\w+)\}/g, name);
}

/** Redirects a browser. A code in the address is sent to no other host and stored nowhere. */
export function redirect({ location }: { location: string }): View {
  const headers = { Location: location, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer" };
  return { type: "text/plain; charset=utf-8", body: "", status: 303, headers };
}
