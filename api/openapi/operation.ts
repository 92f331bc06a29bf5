import type { Schema } from "../../schemas/schema.ts";
import { type HeaderInput, hasQuery, type Row } from "../route.ts";
import { sample } from "./code-samples.ts";
import { exampleOf } from "./examples.ts";
import { failures } from "./failures.ts";
import {
  type Content,
  type Parameter,
  type Published,
  published,
  publishedProperties,
  requiredNames,
  type Surroundings,
} from "./published.ts";
import { tagOf } from "./tags.ts";

/** The `operationId` of a row: the name of its function, without the number that a bundler may append. */
export function operationId({ run }: Pick<Row, "run">): string {
  return run.name.replace(/\d+$/, "");
}

/** The operation of a row: summary, parameters, body, responses and failures. */
export function operation(row: Row, around: Surroundings): Record<string, unknown> {
  const parameters = [...pathAndQuery(row), ...headerParameters(row)];
  const body = bodyOf(row, around);
  return {
    operationId: operationId(row),
    summary: row.summary ?? "",
    ...(row.description ? { description: row.description } : {}),
    tags: [tagOf(row)],
    security: security(row),
    parameters: [...parameters, ...sharedParameters(row)],
    ...(body ? { requestBody: body } : {}),
    responses: { ...successes(row, around), ...failures(row) },
    "x-codeSamples": [
      { lang: "Shell", label: "curl", source: sample(row, { parameters, content: body?.content, around }) },
    ],
  };
}

function pathNames({ path }: Row): string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => name as string);
}

/** Fields of the input that are neither in the path nor in a header, with their notes. */
function otherFields(row: Row): [string, Published][] {
  const elsewhere = [...pathNames(row), ...(row.headerInputs ?? [])];
  return publishedProperties(row.input, writing(row)).filter(([name]) => !elsewhere.includes(name));
}

function writing(row: Row): { owner: string; open: boolean } {
  return { owner: operationId(row), open: row.access.kind === "open" };
}

function pathAndQuery(row: Row): Parameter[] {
  const fields = new Map(publishedProperties(row.input, writing(row)));
  const required = requiredNames(row.input);
  const parameter = (name: string, place: "path" | "query"): Parameter => {
    const { description, ...schema } = fields.get(name) ?? { type: "string" };
    const isNeeded = place === "path" || required.includes(name);
    return {
      name,
      in: place,
      required: isNeeded,
      ...(description ? { description: String(description) } : {}),
      schema,
    };
  };
  const query = hasQuery(row) ? otherFields(row) : [];
  return [...pathNames(row).map((name) => parameter(name, "path")), ...query.map(([name]) => parameter(name, "query"))];
}

/** Header parameters that a client sets: those of the row, and those of a signature. */
function headerParameters({ headerInputs = [], signed }: Row): Parameter[] {
  const taken = headerInputs.flatMap((name) => sentHeaders[name] ?? []);
  return [...taken, ...(signed === "standardWebhooks" ? webhookHeaders : [])];
}

/** The header inputs that are documented; browsers set the others themselves. */
const sentHeaders: Partial<Record<HeaderInput, Parameter>> = {
  lastEventId: {
    name: "Last-Event-ID",
    in: "header",
    description: "The id of the last event that was read; the stream goes on after it.",
    schema: { type: "string", pattern: "^\\d{1,15}$", examples: ["12"] },
  },
};

/** The other headers of Standard Webhooks. */
export const webhookHeaders: Parameter[] = [
  {
    name: "webhook-id",
    in: "header",
    required: true,
    description: "The id of the event, the same in all attempts.",
    schema: { type: "string", examples: ["evt_9XMDk3vWc8pRt5s"] },
  },
  {
    name: "webhook-timestamp",
    in: "header",
    required: true,
    description: "Seconds since 1970, when the attempt was made.",
    schema: { type: "string", pattern: "^\\d+$", examples: ["1764000000"] },
  },
];

function sharedParameters({ idempotent }: Row): object[] {
  const key = idempotent ? [{ $ref: "#/components/parameters/IdempotencyKey" }] : [];
  return [...key, { $ref: "#/components/parameters/RequestId" }];
}

function security({ access, signed }: Row): object[] {
  if (signed) return [{ [signed]: [] }];
  if (access.kind === "open") return [];
  return [{ bearer: access.kind === "handle" ? [...(access.scopes ?? [])] : [] }];
}

function bodyOf(row: Row, around: Surroundings): { required: boolean; content: Content } | undefined {
  if (hasQuery(row)) return undefined;
  if (row.consumes) return { required: true, content: mediaTypes(row.consumes, operationId(row), around) };
  const fields = otherFields(row);
  if (fields.length === 0) return undefined;
  const schema = objectOf(row, fields);
  const body = { schema, example: exampleOf(schema, around.components) };
  const types = ["application/json", ...(row.accepts === "form" ? formTypes : [])];
  return { required: schema.required !== undefined, content: Object.fromEntries(types.map((type) => [type, body])) };
}

const formTypes = ["application/x-www-form-urlencoded", "multipart/form-data"];

/** The schema of the body; closed if the row rejects unknown fields. */
function objectOf(row: Row, fields: [string, Published][]): Published {
  const required = requiredNames(row.input).filter((name) => fields.some(([field]) => field === name));
  const isClosed = row.access.kind !== "open" && row.input.additionalProperties === false;
  return {
    type: "object",
    properties: Object.fromEntries(fields),
    ...(required.length > 0 ? { required } : {}),
    ...(isClosed ? { additionalProperties: false } : {}),
  };
}

/** Response schemas by content type. They stay open, since `/v2` changes by addition. */
export function mediaTypes(types: Record<string, Schema<unknown>>, owner: string, around: Surroundings): Content {
  const content = Object.entries(types).map(([type, accepted]) => {
    const schema = published(accepted, { owner, open: true });
    return [type, { schema, example: exampleOf(schema, around.components) }];
  });
  return Object.fromEntries(content);
}

/** Successful responses by status: the usual one, the one for a created result, and 204 for none. */
function successes(row: Row, around: Surroundings): Record<number, object> {
  const usual = row.status ?? (row.returns || row.produces || row.method === "GET" ? 200 : 204);
  const content = answerOf(row, around);
  const headers = { ...requestIdHeader, ...(row.idempotent ? replayedHeader : {}) };
  const success = (status: number): object => ({
    description: meanings[status] ?? "Success",
    headers,
    ...(content ? { content } : {}),
  });
  return {
    [usual]: success(usual),
    ...(row.created ? { [row.created]: success(row.created) } : {}),
    ...(row.nothing ? { 204: { description: row.nothing, headers } } : {}),
  };
}

const meanings: Record<number, string> = { 200: "Success", 201: "Created", 202: "Accepted", 204: "Done" };
const requestIdHeader = { "X-Request-Id": { $ref: "#/components/headers/RequestId" } };
const replayedHeader = { "Idempotency-Replayed": { $ref: "#/components/headers/IdempotencyReplayed" } };

function answerOf(row: Row, around: Surroundings): object | undefined {
  const { produces, returns } = row;
  if (produces) {
    const { types, schema = { type: "string" }, example } = produces;
    return Object.fromEntries(types.map((type) => [type, { schema, example }]));
  }
  return returns && mediaTypes({ "application/json": returns }, `${operationId(row)}.answer`, around);
}
