import { randomBytes } from "node:crypto";
import { type Readiness, readiness } from "../core/operations/face.ts";
import { lazyByKey } from "../core/platform/lazy.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { nothing } from "../schemas/schema.ts";
import { operatorTexts } from "./failure-view.ts";
import { html, htmlDocument, htmlView } from "./html.ts";
import type { Metrics } from "./metrics.ts";
import { openApi } from "./openapi/document.ts";
import { type SharedBody, sharedBody } from "./reply.ts";
import type { Request } from "./request.ts";
import { anyone, metrics as metricsAccess, page, type Row, route, type View } from "./route.ts";

const unlogged = { logged: false };
const quiet = { ...unlogged, hidden: true };
const openApiView = (body: SharedBody, request: Request) => body(request, { "Cache-Control": "no-cache" });
const text = (type: string) => (body: string) => ({ type: `${type}; charset=utf-8`, body });

/** Health checks, metrics and the documents that describe the service. */
export function systemRows(metrics: Metrics, all: () => Row[]): Row[] {
  const openApiBody = lazyByKey(({ env }: Runtime) =>
    sharedBody("application/json; charset=utf-8", JSON.stringify(openApi(all(), env.BASE_URL))),
  );
  return [
    route("GET /healthz", anyone, nothing, async () => ({ status: "ok" }), quiet),
    page("GET /readyz", nothing, readiness, readinessView, unlogged),
    route("GET /metrics", metricsAccess, nothing, () => metrics.text(), {
      ...quiet,
      failureTexts: operatorTexts,
      view: text("text/plain; version=0.0.4"),
    }),
    page("GET /openapi.json", nothing, async (runtime) => openApiBody(runtime), openApiView, unlogged),
    page("GET /docs", nothing, async () => ({}), docsView, unlogged),
    route("GET /.well-known/jwks.json", anyone, nothing, async ({ sessions }) => sessions.jwks, {
      ...quiet,
      headers: { "Cache-Control": "public, max-age=300" },
    }),
  ];
}

function readinessView(result: Readiness): View {
  const isReady = result.status === "ready";
  const headers = { "Cache-Control": "no-store", ...(isReady ? {} : { "Retry-After": "2" }) };
  return { ...text("application/json")(JSON.stringify(result)), status: isReady ? 200 : 503, headers };
}

/** The API reference: a renderer shows /openapi.json. */
function docsView(): View {
  const nonce = randomBytes(16).toString("base64url");
  const body = htmlDocument({
    language: "en",
    title: "API reference",
    styles: ["api-docs.css"],
    // The renderer copies the page's nonce to its style elements.
    head: [
      html`<meta property="csp-nonce" content="" nonce="${nonce}">`,
      html`<script type="module" src="/assets/api-docs.js"></script>`,
    ],
    body: html`<div id="reference"><main><h1>API reference</h1><p>The whole description is <a href="/openapi.json">openapi.json</a>.</p></main></div>`,
  });
  const policy = [
    "default-src 'none'; script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:; font-src data:; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  ];
  return htmlView(body, policy, { headers: { "Referrer-Policy": "no-referrer" } });
}
