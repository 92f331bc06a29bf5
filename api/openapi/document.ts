import { chatChunk } from "../../schemas/assistant.ts";
import { problem } from "../../schemas/errors.ts";
import { instant, object, string } from "../../schemas/schema.ts";
import { webhookData } from "../../schemas/webhooks.ts";
import type { Row } from "../route.ts";
import { mediaTypes, operation, tags, webhookHeaders } from "./operation.ts";
import { published, type Surroundings } from "./published.ts";

/** The OpenAPI 3.1 document of the rows, for a service at `baseUrl`. */
export function openApi(rows: Row[], baseUrl: string): Record<string, unknown> {
  const readPaths = rows.filter(({ method }) => method === "GET").map(({ path }) => path);
  const around: Surroundings = { components: {}, baseUrl, readPaths };
  // Operations refer to these by their names.
  for (const shape of [problem, chatChunk]) published(shape, { owner: "", components: around.components });
  const paths: Record<string, Record<string, unknown>> = {};
  for (const row of rows.filter(({ hidden }) => !hidden)) {
    const path = row.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [row.method.toLowerCase()]: operation(row, around) };
  }
  return {
    openapi: "3.1.0",
    info,
    servers: [{ url: baseUrl, description: "This service" }],
    tags,
    paths,
    webhooks: webhooks(around),
    components: {
      securitySchemes,
      parameters: { RequestId: requestId, IdempotencyKey: idempotencyKey },
      headers,
      schemas: Object.fromEntries(Object.entries(around.components).sort(([one], [other]) => (one < other ? -1 : 1))),
    },
  };
}

const info = {
  title: "Handle platform",
  version: "2",
  summary: "Public pages with an assistant, email automation, scheduling and account access.",
  description: [
    "Owner routes are under `/v2/handles/{handle}` and `/v2/account` and need a bearer token. Public routes need none and can be called from any origin.",
    "Failures are `application/problem+json` (RFC 9457) with a stable `code`. Lists take `limit` and `cursor`. PUT is partial: an absent field keeps its value.",
    "`/v2` changes by addition only, so clients must ignore fields that they do not know.",
  ].join("\n\n"),
  license: { name: "MIT", identifier: "MIT" },
};

const securitySchemes = {
  bearer: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "A session token. Where scopes are listed, also a personal access token (`pat_…`) with one of them.",
  },
  standardWebhooks: {
    type: "apiKey",
    in: "header",
    name: "webhook-signature",
    description: "`v1,` and the base64 HMAC-SHA256 of `{webhook-id}.{webhook-timestamp}.{body}` (Standard Webhooks).",
  },
  stripe: {
    type: "apiKey",
    in: "header",
    name: "stripe-signature",
    description: "The signature that Stripe computes with `STRIPE_WEBHOOK_SECRET`.",
  },
};

const requestId = {
  name: "X-Request-Id",
  in: "header",
  description: "An id for this request. The response, problem documents and the log repeat it.",
  schema: { type: "string", pattern: "^[A-Za-z0-9._-]{1,64}$", examples: ["checkout-42"] },
};
const idempotencyKey = {
  name: "Idempotency-Key",
  in: "header",
  description: "Makes the request safe to repeat for 24 h: the same key and body get the stored response again.",
  schema: { type: "string", minLength: 1, maxLength: 255, examples: ["9f1c2a1e-booking-1"] },
};
const headers = {
  RequestId: { description: "The id of the request, sent or generated.", schema: { type: "string" } },
  RetryAfter: { description: "Seconds after which a retry makes sense.", schema: { type: "integer", minimum: 1 } },
  IdempotencyReplayed: {
    description: "`true` if this is the stored response of an earlier request.",
    schema: { type: "string", const: "true" },
  },
};

/** Every webhook event with the schema of its body (docs/reference.md, "Webhook events"). */
function webhooks(around: Surroundings): Record<string, unknown> {
  const events = Object.entries(webhookData).map(([type, { summary, data }]) => {
    const body = object({ type: string({ const: type }), timestamp: instant, data });
    const owner = type.replace(/[._](\w)/g, (_, letter: string) => letter.toUpperCase());
    const post = {
      operationId: owner,
      summary,
      description:
        "Answer 2xx within 15 s. Any other answer is retried; 410 disables the webhook. `webhook-id` is the same in all attempts.",
      tags: ["Webhooks"],
      security: [{ standardWebhooks: [] }],
      parameters: webhookHeaders,
      requestBody: { required: true, content: mediaTypes({ "application/json": body }, owner, around) },
      responses: { "2XX": { description: "Received" }, "410": { description: "Gone: the webhook is disabled" } },
    };
    return [type, { post }];
  });
  return Object.fromEntries(events);
}
