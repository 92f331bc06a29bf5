import { type ErrorCode, errors } from "../../schemas/errors.ts";
import { propertiesOf, type Schema } from "../../schemas/schema.ts";
import { headerInputs } from "../request.ts";
import { type Access, hasQuery, pathNames, type Row } from "../route.ts";
import { sample } from "./code-samples.ts";
import {
  type Content,
  exampleOf,
  type Parameter,
  type Published,
  published,
  publishedProperties,
  requiredNames,
  type Surroundings,
  type Writing,
  writable,
} from "./published.ts";

/** The nouns of the service, in reading order; `api/rows.ts` names that of each table. */
export const tags = [
  { name: "Account", description: "The signed-in user, sessions, tokens, desktop pairing and settings." },
  { name: "Pages", description: "HTML pages of a handle, served to visitors once they are published." },
  { name: "Knowledge", description: "Documents that the assistant and agents may quote." },
  { name: "Assistant", description: "Answers visitors' questions about a published page. No authentication." },
  { name: "Leads", description: "Submissions of visitors, and their use by owners." },
  { name: "Campaigns", description: "Group leads; email rules send when a lead is captured or converts." },
  { name: "Domains", description: "Domains of an account, and the DNS records that let them send mail." },
  { name: "Email", description: "Senders, templates, messages, delivery events and suppressions." },
  { name: "Scheduling", description: "Schedules, event types and bookings, for owners." },
  { name: "Booking", description: "Event types, slots and bookings, for visitors. No authentication." },
  { name: "Connected accounts", description: "Calendars, video meetings and payment at other providers." },
  { name: "Payments", description: "Checkout of paid pages, their purchases, and events of the payment provider." },
  { name: "Webhooks", description: "Endpoints that receive signed events, and their deliveries." },
  { name: "Strategy", description: "Retrieval of strategy examples, for agents." },
  { name: "MCP", description: "The tools of the Model Context Protocol." },
];

/** The `operationId` of a row: the name of its function, without the number that a bundler may append. */
export function operationId({ run }: Pick<Row, "run">): string {
  return run.name.replace(/\d+$/, "");
}

/** The summary of a row: its own, else the words of its function's name, such as "Get an event type" for `readEventType`. */
export function summaryOf(row: Pick<Row, "run" | "summary">): string {
  const [verb = "", ...nouns] = operationId(row).split(/(?=[A-Z])/);
  const noun = nouns.join(" ").toLowerCase();
  const article = /^[aeiou]/.test(noun) ? "an" : "a";
  const derived = verb === "list" ? `list ${noun}` : `${verb === "read" ? "get" : verb} ${article} ${noun}`;
  return row.summary ?? derived.charAt(0).toUpperCase() + derived.slice(1);
}

/** The operation of a row: summary, parameters, body, responses and failures. */
export function operation(row: Row, around: Surroundings): Record<string, unknown> {
  const parameters = [...pathAndQuery(row, around), ...headerParameters(row)];
  const body = bodyOf(row, around);
  const shared = [...(row.idempotent ? ["IdempotencyKey"] : []), "RequestId"];
  return {
    operationId: operationId(row),
    summary: summaryOf(row),
    description: row.description,
    tags: [row.tag],
    security: security(row),
    parameters: [...parameters, ...shared.map((name) => ({ $ref: `#/components/parameters/${name}` }))],
    requestBody: body,
    responses: { ...successes(row, around), ...failures(row) },
    "x-codeSamples": [
      { lang: "Shell", label: "curl", source: sample(row, { parameters, content: body?.content, around }) },
    ],
  };
}

/** Fields of the input that are neither in the path nor in a header, with their notes. */
function otherFields(row: Row, around: Surroundings): [string, Published][] {
  const elsewhere = [...pathNames(row.path), ...headerInputs(row.input)];
  return publishedProperties(row.input, writing(row, around)).filter(([name]) => !elsewhere.includes(name));
}

function writing(row: Row, { components }: Surroundings): Writing {
  return { owner: operationId(row), components: row.access.kind === "public" ? components : undefined };
}

function pathAndQuery(row: Row, around: Surroundings): Parameter[] {
  const names = pathNames(row.path);
  const required = requiredNames(row.input);
  const path = publishedProperties(row.input, writing(row, around)).filter(([name]) => names.includes(name));
  const query = hasQuery(row) ? otherFields(row, around) : [];
  return [...path, ...query].map(([name, { description, ...schema }], at) => ({
    name,
    in: at < path.length ? "path" : "query",
    required: required.includes(name),
    ...(description ? { description: String(description) } : {}),
    schema,
  }));
}

/** Header parameters that a client sets: those of the row, and those of a signature. Browsers set the others themselves. */
function headerParameters({ input, signed }: Row): Parameter[] {
  const resumes = "lastEventId" in propertiesOf(input);
  return [...(resumes ? [lastEventId] : []), ...(signed === "standardWebhooks" ? webhookHeaders : [])];
}

const lastEventId: Parameter = {
  name: "Last-Event-ID",
  in: "header",
  description: "The id of the last event that was read; the stream goes on after it.",
  schema: { type: "string", pattern: "^\\d{1,15}$", examples: ["12"] },
};

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

function security({ access, signed }: Row): object[] {
  if (signed) return [{ [signed]: [] }];
  if (access.kind === "public") return [];
  return [{ bearer: access.kind === "handle" ? [...(access.scopes ?? [])] : [] }];
}

function bodyOf(row: Row, around: Surroundings): { required: boolean; content: Content } | undefined {
  if (hasQuery(row)) return undefined;
  if (row.consumes) return { required: true, content: mediaTypes(row.consumes, operationId(row), around) };
  const fields = otherFields(row, around);
  if (fields.length === 0) return undefined;
  const schema = objectOf(row, fields);
  const body = { schema, example: exampleOf(schema, around.components) };
  const types = ["application/json", ...(row.accepts === "form" ? formTypes : [])];
  return { required: schema.required !== undefined, content: Object.fromEntries(types.map((type) => [type, body])) };
}

const formTypes = ["application/x-www-form-urlencoded", "multipart/form-data"];

function objectOf(row: Row, fields: [string, Published][]): Published {
  const required = requiredNames(row.input).filter((name) => fields.some(([field]) => field === name));
  return {
    type: "object",
    properties: Object.fromEntries(fields),
    ...(required.length > 0 ? { required } : {}),
    ...(isClosed(row) ? { additionalProperties: false } : {}),
  };
}

/** True if the row rejects unknown fields, in its query too. */
function isClosed({ access, input }: Row): boolean {
  return access.kind !== "public" && input.additionalProperties === false;
}

/** Response schemas by content type. They stay open, since `/v2` changes by addition. */
export function mediaTypes(types: Record<string, Schema<unknown>>, owner: string, around: Surroundings): Content {
  const content = Object.entries(types).map(([type, accepted]) => {
    const schema = published(accepted, { owner, components: around.components });
    return [type, { schema, example: exampleOf(schema, around.components) }];
  });
  return Object.fromEntries(content);
}

/** Responses without a failure, by status: the usual one, the one for a created result, and those without content. */
function successes(row: Row, around: Surroundings): Record<number, object> {
  const { status, created, empty = {}, idempotent, createdId } = row;
  const usual = status ?? (row.returns || row.produces ? 200 : 204);
  const content = answerOf(row, around);
  const headers = { ...requestIdHeader, ...(idempotent ? replayedHeader : {}), ...(empty[304] ? etagHeader : {}) };
  const bare = Object.entries(empty).map(([code, description]) => {
    const more = code === "303" ? locationHeader("Where the browser goes on.") : {};
    return [code, { description, headers: { ...headers, ...more } }];
  });
  const success = (code: number): object => {
    const isLocated = code === 201 && createdId && around.readPaths.some((path) => isOneOf(row.path, path));
    const more = isLocated ? locationHeader("The address of what was created.") : {};
    return { description: meanings[code] ?? "Success", headers: { ...headers, ...more }, content };
  };
  return {
    [usual]: success(usual),
    ...(created ? { [created]: success(created) } : {}),
    ...Object.fromEntries(bare),
  };
}

/** True for the path of one resource of a list. */
function isOneOf(list: string, path: string): boolean {
  return path.startsWith(`${list}/:`) && /^:\w+$/.test(path.slice(list.length + 1));
}

const meanings: Record<number, string> = { 201: "Created", 202: "Accepted", 204: "Done" };
const requestIdHeader = { "X-Request-Id": { $ref: "#/components/headers/RequestId" } };
const replayedHeader = { "Idempotency-Replayed": { $ref: "#/components/headers/IdempotencyReplayed" } };
const locationHeader = (description: string) => ({
  Location: { description, schema: { type: "string", format: "uri-reference" } },
});
const etagHeader = {
  ETag: { description: "Changes with the content (RFC 9110, section 8.8.3).", schema: { type: "string" } },
};

function answerOf(row: Row, around: Surroundings): object | undefined {
  const { produces, returns } = row;
  if (produces) {
    const { types, schema = { type: "string" }, example } = produces;
    return Object.fromEntries(types.map((type) => [type, { schema, example }]));
  }
  return returns && mediaTypes({ "application/json": returns }, `${operationId(row)}.answer`, around);
}

const problem = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };
const retryAfter = { "Retry-After": { $ref: "#/components/headers/RetryAfter" } };

function failures(row: Row): Record<string, object> {
  const codes = failureCodes(row);
  const statuses = codes.map((code) => errors[code][0]);
  const described = statuses.map((status) => [status, failure(status, codes)]);
  return { ...Object.fromEntries(described), default: { description: "Any other failure", content: problem } };
}

function failure(status: number, codes: ErrorCode[]): object {
  const own = codes.filter((code) => errors[code][0] === status);
  const description = own.map((code) => `\`${code}\`: ${errors[code][1]}`).join("\n\n");
  return { description, ...(status === 429 || status === 503 ? { headers: retryAfter } : {}), content: problem };
}

/** The failure codes of a row: those of its access, its path, its input and its columns, and its own. */
function failureCodes(row: Row): ErrorCode[] {
  const { access, input, idempotent, failures: own = [] } = row;
  const hasBody = !hasQuery(row);
  const codes: (ErrorCode | false)[] = [
    ...accessCodes(access),
    (hasBody || isClosed(row) || isChecked(input)) && "invalid_request",
    ...inputCodes(input),
    hasBody && "payload_too_large",
    hasBody && !row.consumes && "unsupported_media_type",
    !own.some((code) => errors[code][0] === 404) && pathCode(row),
    Object.hasOwn(propertiesOf(input), "expectedVersion") && "version_conflict",
    row.guard !== undefined && "rate_limited",
    ...(idempotent ? (["idempotency_conflict", "idempotency_in_progress"] as const) : []),
    ...own,
    "service_unavailable",
  ];
  return [...new Set(codes.filter((code) => code !== false))];
}

/** The code for an unknown last parameter of the path: `booking_not_found` for `:bookingUid`, `page_not_found` for `:pageSlug`. */
function pathCode({ path }: Row): ErrorCode | false {
  const name = pathNames(path).at(-1) ?? "";
  const noun = name.replace(/(U?[Ii]d|Slug)$/, "").replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.hasOwn(errors, `${noun}_not_found`) && (`${noun}_not_found` as ErrorCode);
}

function accessCodes(access: Access): ErrorCode[] {
  if (access.kind === "public") return [];
  const codes: ErrorCode[] = ["missing_bearer_token", "invalid_token"];
  if (access.kind !== "handle") return codes;
  codes.push("forbidden");
  if (access.role !== "CREATOR") codes.push("insufficient_role");
  if (access.scopes) codes.push("insufficient_scope");
  return codes;
}

/** True if a value of the right type can still be invalid. */
function isChecked(schema: Schema<unknown>): boolean {
  return writable(schema).some(([, { type: _type, ...rest }]) => Object.keys(rest).length > 0);
}

function inputCodes(schema: Schema<unknown>): ErrorCode[] {
  const here = [schema["x-code"], schema["x-absent-code"]].filter((code) => code !== undefined) as ErrorCode[];
  return [...here, ...Object.values(propertiesOf(schema)).flatMap(inputCodes)];
}
