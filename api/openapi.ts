import { errors } from "../schemas/errors.ts";
import { instant, object, type Schema, string } from "../schemas/schema.ts";
import { webhookData } from "../schemas/webhooks.ts";
import { escapeHtml } from "./page-view.ts";
import type { Access, Row, View } from "./route.ts";

/** The OpenAPI 3.1 document of the rows: their paths, inputs, successes and the one shape of errors. */
export function openApi(rows: Row[]): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const row of rows.filter((one) => !one.hidden)) {
    const path = row.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [row.method.toLowerCase()]: operation(row) };
  }
  return published({
    openapi: "3.1.0",
    info: {
      title: "Handle platform",
      version: "2",
      description: "Public pages with an assistant, email, scheduling and account access.",
    },
    paths,
    webhooks: webhooks(),
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer", bearerFormat: "JWT" } },
      schemas: { Problem: problemShape },
    },
  }) as Record<string, unknown>;
}

/** Every event that an endpoint may get, with the shape of its body (contract 8). */
function webhooks(): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(webhookData).map(([type, { summary, data }]) => [
      type,
      {
        post: {
          summary,
          operationId: type.replace(/[._](\w)/g, (_, letter: string) => letter.toUpperCase()),
          description:
            "Signed by Standard Webhooks; `webhook-id` is the same in all attempts. Any 2xx within 15 s is success.",
          parameters: ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => ({
            name,
            in: "header",
            required: true,
            schema: { type: "string" },
          })),
          requestBody: {
            required: true,
            content: {
              "application/json": { schema: object({ type: string({ const: type }), timestamp: instant, data }) },
            },
          },
          responses: { "2XX": { description: "Taken" }, "410": { description: "Gone: the endpoint is disabled" } },
        },
      },
    ]),
  );
}

/** A shape as others read it: the formats and keywords that are ours alone in the words of JSON Schema. */
export function published(schema: Schema<unknown>): unknown {
  return JSON.parse(
    JSON.stringify(schema, (name, value) =>
      name.startsWith("x-") ? undefined : name === "format" ? known(value) : value,
    ),
  );
}

/** Our formats by their public names; those without one stay with us. A property may be called `format` too. */
const formats: Record<string, string> = { address: "email", instant: "date-time", date: "date", uri: "uri" };
const known = (format: unknown): unknown => (typeof format === "string" ? formats[format] : format);

const problemShape = {
  ...object({
    type: string(),
    title: string(),
    status: { type: "integer" },
    code: string({ enum: Object.keys(errors) }),
    detail: string(),
    requestId: string(),
  }),
  additionalProperties: true,
};

function operation(row: Row): Record<string, unknown> {
  const names = [...row.path.matchAll(/:(\w+)/g)].map(([, name]) => name as string);
  const properties = Object.entries((row.input.properties ?? {}) as Record<string, Schema<unknown>>).filter(
    ([, one]) => one.readOnly !== true,
  );
  const elsewhere = [...names, ...Object.values(row.takes ?? {})];
  const rest = properties.filter(([name]) => !elsewhere.includes(name));
  const query = row.method === "GET" || row.method === "DELETE";
  const inPath = names.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } }));
  return {
    summary: row.summary ?? "",
    operationId: `${row.method.toLowerCase()}${row.path.replace(/[^A-Za-z]+(\w)/g, (_, letter: string) => letter.toUpperCase())}`,
    tags: [row.path.split("/").find((part) => part !== "" && !/^(v2|handles|public|:.*)$/.test(part)) ?? "service"],
    ...security(row.access),
    parameters: [
      ...inPath,
      ...(query ? rest.map(([name, schema]) => ({ name, in: "query", required: isRequired(row, name), schema })) : []),
    ],
    ...(query || rest.length === 0 ? {} : { requestBody: body(row, rest) }),
    responses: { ...successes(row), default: problem },
  };
}

const problem = {
  description: "A problem (RFC 9457)",
  content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
};

function security(access: Access): object {
  return access.kind === "open"
    ? { security: [] }
    : { security: [{ bearer: access.kind === "handle" ? [...(access.scopes ?? [])] : [] }] };
}

function isRequired(row: Row, name: string): boolean {
  return (row.input.required as string[] | undefined)?.includes(name) ?? false;
}

function body(row: Row, rest: [string, Schema<unknown>][]): object {
  const required = rest.map(([name]) => name).filter((name) => isRequired(row, name));
  const schema = {
    type: "object",
    properties: Object.fromEntries(rest),
    required,
    additionalProperties: row.input.additionalProperties ?? false,
  };
  return { required: required.length > 0, content: { "application/json": { schema } } };
}

/** By status: the usual one, and that of what was made anew. */
function successes(row: Row): Record<number, object> {
  const usual = row.status ?? (row.returns || row.method === "GET" ? 200 : 204);
  const success = {
    description: "Success",
    ...(row.returns ? { content: { "application/json": { schema: row.returns } } } : {}),
  };
  return { [usual]: success, ...(row.created ? { [row.created]: success } : {}) };
}

/** A page that lists the operations, readable without a script. */
export function docsPage(document: Record<string, unknown>): View {
  const paths = Object.entries(document.paths as Record<string, Record<string, { summary: string }>>);
  const rows = paths.flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => docsRow(method, path, one)),
  );
  const body = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>API</title><link rel="stylesheet" href="/assets/page.css"></head><body><main><h1>API</h1><p>The whole description is <a href="/openapi.json">openapi.json</a>.</p>${rows.join("")}</main></body></html>`;
  return {
    type: "text/html; charset=utf-8",
    body,
    headers: {
      "Content-Security-Policy":
        "default-src 'none'; style-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
      "Cache-Control": "no-cache",
      "Referrer-Policy": "no-referrer",
    },
  };
}

function docsRow(method: string, path: string, one: object): string {
  const title = `<summary><code>${method.toUpperCase()} ${escapeHtml(path)}</code> ${escapeHtml((one as { summary: string }).summary)}</summary>`;
  return `<details>${title}<pre>${escapeHtml(JSON.stringify(one, null, 2))}</pre></details>`;
}
