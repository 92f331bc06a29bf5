import { escapeHtml } from "../core/platform/escaping.ts";
import { directionOf } from "../core/platform/language-tags.ts";
import type { View } from "./route.ts";

/** Markup: what it contains is already escaped. */
export class Html {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

/** The values of a template: texts are escaped, lists are joined, and absent parts leave nothing. */
export type Part = Html | string | number | false | null | undefined | readonly Part[];

/** A template of markup: html`<p>${text}</p>`. */
export function html(markup: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(String.raw({ raw: markup }, ...parts.map(written)));
}

function written(part: Part): string {
  if (part === undefined || part === null || part === false) return "";
  if (typeof part === "object") return part instanceof Html ? String(part) : part.map(written).join("");
  return escapeHtml(String(part));
}

/** Fills the placeholders (`{email}`) of a sentence. Names are emphasised and keep their own text direction. */
export function sentence(text: string, names: Readonly<Record<string, string | Html>>): Html {
  const parts = text.split(/\{(\w+)\}/).map((part, at) => (at % 2 === 0 ? part : emphasized(part, names[part])));
  return html`${parts}`;
}

function emphasized(place: string, name: string | Html | undefined): Part {
  if (name === undefined) return `{${place}}`;
  return typeof name === "string" ? html`<strong dir="auto">${name}</strong>` : name;
}

interface HtmlDocument {
  /** BCP 47. */
  language: string;
  title: string;
  body: Part;
  head?: readonly Part[];
  /** Style sheets in /assets. */
  styles?: readonly string[];
  /** Class of the body. */
  look?: string | undefined;
}

/** The shell of every HTML page for people: language, direction, title and head around a body. */
export function htmlDocument({ language, title, body, head = [], styles = ["page.css"], look }: HtmlDocument): string {
  const sheets = styles.map((file) => html`<link rel="stylesheet" href="/assets/${file}">`);
  return String(html`<!doctype html>
<html lang="${language}" dir="${directionOf(language)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
${[...head, ...sheets].filter(Boolean).map((element) => [element, "\n"])}</head>
<body${look && html` class="${look}"`}>
${body}
</body>
</html>
`);
}

/** A document as a response that is not cached; `policy` has the directives of its Content-Security-Policy. */
export function htmlView(
  body: string,
  policy: readonly string[],
  { status = 200, headers }: { status?: number | undefined; headers: View["headers"] },
): View {
  const own = { "Content-Security-Policy": policy.join("; "), "Cache-Control": "no-store" };
  return { type: "text/html; charset=utf-8", status, body, headers: { ...own, ...headers } };
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
export function linkPreview({ title, summary, url, image }: LinkPreview): Html[] {
  const properties = Object.entries({ title, description: summary, image, url }).filter(([, content]) => content);
  return [
    ...(summary ? [html`<meta name="description" content="${summary}">`] : []),
    ...properties.map(([name, content]) => html`<meta property="og:${name}" content="${content}">`),
    html`<link rel="canonical" href="${url}">`,
  ];
}

/** Keeps a page out of search engines. */
export const unlisted = html`<meta name="robots" content="noindex">`;

/** Data for a script of the page, as JSON that can't end its element. */
export function jsonScript(id: string, data: unknown): Html {
  const json = new Html(JSON.stringify(data).replace(/</g, "\\u003c"));
  return html`<script type="application/json" id="${id}">${json}</script>`;
}

/** Redirects a browser. A code in the address is sent to no other host and stored nowhere. */
export function redirect({ location, cookie }: { location: string; cookie?: string | string[] | undefined }): View {
  const cookies = cookie ? { "Set-Cookie": cookie } : {};
  const headers = { Location: location, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", ...cookies };
  return { type: "text/plain; charset=utf-8", body: "", status: 303, headers };
}
