import { randomBytes } from "node:crypto";
import { html, htmlDocument } from "./html.ts";
import { tagOf, tags } from "./openapi/tags.ts";
import type { Row, View } from "./route.ts";

/** The API reference: a renderer shows /openapi.json. Without scripts the page lists the operations. */
export function docsView(rows: Row[]): View {
  const nonce = randomBytes(16).toString("base64url");
  const lists = tags.map(({ name }) => {
    const operations = rows.filter((row) => !row.hidden && tagOf(row) === name).map(operationItem);
    return operations.length > 0 && html`<h2>${name}</h2><ul>${operations}</ul>`;
  });
  const body = htmlDocument({
    language: "en",
    title: "API reference",
    styles: ["api-docs.css"],
    // The renderer copies the page's nonce to its style elements.
    head: [
      html`<meta property="csp-nonce" nonce="${nonce}">`,
      html`<script type="module" src="/assets/api-docs.js"></script>`,
    ],
    body: html`<div id="reference"><main><h1>API reference</h1><p>The whole description is <a href="/openapi.json">openapi.json</a>.</p>${lists}</main></div>`,
  });
  const headers = {
    "Content-Security-Policy": `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data:; font-src data:; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
  };
  return { type: "text/html; charset=utf-8", body, headers };
}

function operationItem({ method, path, summary }: Row) {
  return html`<li>${summary} <code>${method} ${path.replace(/:(\w+)/g, "{$1}")}</code></li>`;
}
