import { type Readiness, readiness } from "../core/operations/face.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { object } from "../schemas/schema.ts";
import { docsView } from "./docs-view.ts";
import type { Metrics } from "./metrics.ts";
import { openApi } from "./openapi/document.ts";
import { anyone, metrics as metricsAccess, type Row, route, type View } from "./route.ts";

const nothing = object({});
const quiet = { logged: false, hidden: true };

/** Health checks, metrics and the documents that describe the service. */
export function systemRows(metrics: Metrics, all: () => Row[]): Row[] {
  let document: string | undefined;
  const openApiText = ({ env }: Runtime): string => {
    document ??= JSON.stringify(openApi(all(), env.BASE_URL));
    return document;
  };
  return [
    route("GET /healthz", anyone, nothing, async () => ({ status: "ok" }), quiet),
    route("GET /readyz", anyone, nothing, readiness, { ...quiet, view: readinessView }),
    route("GET /metrics", metricsAccess, nothing, () => metrics.text(), {
      ...quiet,
      view: (body) => ({ type: "text/plain; version=0.0.4; charset=utf-8", body }),
    }),
    route("GET /openapi.json", anyone, nothing, async (runtime) => openApiText(runtime), {
      ...quiet,
      view: (body) => ({ type: "application/json; charset=utf-8", body }),
    }),
    route("GET /docs", anyone, nothing, async () => all(), { ...quiet, view: docsView }),
    route("GET /.well-known/jwks.json", anyone, nothing, async ({ sessions }) => sessions.jwks, {
      ...quiet,
      headers: { "Cache-Control": "public, max-age=300" },
    }),
  ];
}

function readinessView(result: Readiness): View {
  const status = result.status === "ready" ? 200 : 503;
  const headers: Record<string, string> = status === 503 ? { "Retry-After": "2" } : {};
  return {
    type: "application/json; charset=utf-8",
    status,
    body: JSON.stringify(result),
    headers: { ...headers, "Cache-Control": "no-store" },
  };
}
