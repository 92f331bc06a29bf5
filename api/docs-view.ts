import { randomBytes } from "node:crypto";
import { tagOf, tags } from "./openapi/tags.ts";
import type { Row, View } from "./route.ts";
import { escapeHtml, htmlDocument } from "./shell.ts";

/** The API reference: a renderer shows /openapi.json. Without scripts the page lists the operations. */
export function docsView(rows: Row[]): View {
  const nonce = randomBytes(16).toString("base64url");
  const shown = rows.filter((row) => !row.hidden);
  const groups = tags
    .map(({ name }) =>
      group(
        name,
        shown.filter((row) => tagOf(row) === name),
      ),
    )
    .join("");
  return {
    type: "text/html; charset=utf-8",
    body: page(groups, nonce),
    headers: {
      "Content-Security-Policy": policy(nonce),
      "Cache-Control": "no-store",
      "Referrer-Policy": "no-referrer",
    },
  };
}

/** The renderer copies the page's nonce to its style elements. */
function page(groups: string, nonce: string): string {
  return htmlDocument({
    language: "en",
    title: "API reference",
    styles: ["api-docs.css"],
    head: [`<meta property="csp-nonce" nonce="${nonce}">`, '<script type="module" src="/assets/api-docs.js"></script>'],
    body: `<div id="reference"><main><h1>API reference</h1><p>The whole description is <a href="/openapi.json">openapi.json</a>.</p>${groups}</main></div>`,
  });
}

function policy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src data:",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

function group(name: string, rows: Row[]): string {
  const lines = rows.map(({ method, path, summary = "" }) => {
    const address = `${method} ${path.replace(/:(\w+)/g, "{$1}")}`;
    return `<li>${escapeHtml(summary)} <code>${escapeHtml(address)}</code></li>`;
  });
  return lines.length === 0 ? "" : `<h2>${name}</h2><ul>${lines.join("")}</ul>`;
}
