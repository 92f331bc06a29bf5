import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import t from "tap";
import { type Json, type Operation, readOpenApi, Shapes } from "../fixtures/document.ts";
import { projectRoot } from "../fixtures/sources.ts";
import { errors } from "../schemas/errors.ts";

const document = readOpenApi();
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, path, operation })),
);

/** Every shape of the document with where it is: of the named ones, and of each body and parameter. */
function* shapes(): Generator<[string, Json]> {
  for (const [name, schema] of Object.entries(document.components.schemas)) yield* within(name, schema);
  for (const { name, operation } of operations) yield* ofOperation(name, operation);
  for (const [name, { post }] of Object.entries(document.webhooks)) yield* ofOperation(name, post);
}

function* ofOperation(name: string, { parameters, requestBody, responses }: Operation): Generator<[string, Json]> {
  for (const parameter of parameters)
    if (parameter.schema) yield [`${name} ${parameter.name}`, parameter.schema as Json];
  const bodies = [requestBody, ...Object.values(responses)].flatMap((one) => Object.values(one?.content ?? {}));
  for (const { schema } of bodies) yield* within(name, schema);
}

/** A shape and all shapes in it. */
function* within(place: string, schema: Json): Generator<[string, Json]> {
  yield [place, schema];
  const inner = [schema.items, schema.additionalProperties, ...((schema.anyOf ?? []) as unknown[])];
  for (const one of inner) if (typeof one === "object" && one !== null) yield* within(place, one as Json);
  for (const [name, one] of Object.entries((schema.properties ?? {}) as Record<string, Json>))
    yield* within(`${place}.${name}`, one);
}

t.test("a linter of OpenAPI documents has no findings", (t) => {
  const file = join(t.testdir(), "openapi.json");
  writeFileSync(file, JSON.stringify(document));
  const linter = join(projectRoot, "node_modules/@redocly/cli/bin/cli.js");
  const env = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  const { stdout } = spawnSync("node", [linter, "lint", file, "--format=json"], { encoding: "utf8", env });
  const { totals, problems } = JSON.parse(stdout.slice(stdout.indexOf("{")));
  t.same(
    problems.map(({ ruleId, message }: Json) => `${ruleId}: ${message}`),
    [],
  );
  t.same([totals.errors, totals.warnings], [0, 0]);
  t.end();
});

t.test("every shape is valid JSON Schema, and every example fits its shape", (t) => {
  const open = new Shapes(document);
  let examples = 0;
  for (const [place, schema] of shapes()) {
    t.same(
      Object.keys(schema).filter((keyword) => keyword.startsWith("x-")),
      [],
      `${place} has standard keywords only`,
    );
    for (const example of (schema.examples ?? []) as unknown[]) {
      examples++;
      t.same(open.faults(schema, example), [], place);
    }
  }
  t.ok(examples > 300);
  t.end();
});

t.test("every body has an example that fits", (t) => {
  const exact = new Shapes(document, { closed: true });
  const bodies = [...operations.map(({ name, operation }) => [name, operation] as const), ...webhooks()];
  for (const [name, { requestBody, responses }] of bodies) {
    const answers = Object.entries(responses).filter(([status]) => /^2/.test(status));
    for (const { content = {} } of [requestBody ?? {}, ...answers.map(([, answer]) => answer)])
      for (const [type, { schema, example }] of Object.entries(content)) {
        t.ok(example !== undefined, `${name} ${type}`);
        t.notMatch(
          JSON.stringify(example),
          /"example"/,
          `${name} ${type}: give the field an example in schemas/fields.json`,
        );
        t.same(exact.faults(schema, example), [], `${name} ${type}`);
      }
  }
  t.end();
});

function webhooks(): [string, Operation][] {
  return Object.entries(document.webhooks).map(([name, { post }]) => [name, post]);
}

t.test("both paths that register a webhook say which events it receives", (t) => {
  const described = (path: string) => document.paths[`/v2/handles/{handle}${path}`]?.post?.description;
  t.match(described("/webhooks"), /Without `events` the webhook receives every event\./);
  t.match(described("/scheduling/webhooks"), /Without `events` the webhook receives the events of scheduling\./);
  t.end();
});

t.test("the answer in one piece is documented as legacy, and not as deprecated", async (t) => {
  const question = document.paths["/v2/public/pages/{handle}/{pageSlug}/agentic-question"]?.post;
  t.match(question?.description, /\blegacy\b/);
  t.notOk(operations.some(({ operation }) => "deprecated" in operation));
});

t.test("operations have unique names, a summary, a known tag and a say about security", (t) => {
  const ids = [...operations.map(({ operation }) => operation), ...webhooks().map(([, one]) => one)].map(
    ({ operationId }) => operationId,
  );
  t.same(
    ids.filter((id, at) => ids.indexOf(id) !== at),
    [],
    "unique",
  );
  const known = document.tags.map(({ name }) => name);
  for (const { name, operation } of operations) {
    t.match(operation.operationId, /^[a-z][a-zA-Z]+[a-z]$/, name);
    t.match(operation.summary, /^[A-Z][^.]{5,60}[^.]$/, name);
    t.ok(
      operation.description === undefined || /^[A-Z`].*\.$/s.test(operation.description),
      `${name}: whole sentences`,
    );
    t.ok(known.includes(operation.tags[0] as string), `${name}: give its table a tag in api/rows.ts`);
    t.ok(Array.isArray(operation.security), name);
  }
  t.same(
    known.filter((tag) => !operations.some(({ operation }) => operation.tags[0] === tag)),
    [],
    "no empty tag",
  );
  t.end();
});

t.test("every field and every parameter has a description", (t) => {
  const silent = [...shapes()].flatMap(([place, schema]) =>
    Object.entries((schema.properties ?? {}) as Record<string, Json>)
      .filter(([, field]) => field.description === undefined && field.const === undefined && !isNamed(field))
      .map(([name]) => `${place}.${name}`),
  );
  t.same(
    [...new Set(silent)],
    [],
    "describe them in schemas/fields.json: the note of a resource serves what creates and updates it too",
  );
  for (const { name, operation } of operations)
    for (const parameter of operation.parameters)
      t.ok(parameter.$ref ?? parameter.description, `${name} ${parameter.name}`);
  t.end();
});

/** True for a reference to a named shape, and for a list of them. */
function isNamed(field: Json): boolean {
  return field.$ref !== undefined || (field.items as Json | undefined)?.$ref !== undefined;
}

t.test("every operation names the failures of its access and its body, by status and code", (t) => {
  for (const { name, operation } of operations) {
    const codes = Object.entries(operation.responses).flatMap(([status, { description }]) =>
      [...description.matchAll(/^`([a-z_]+)`: /gm)].map(([, code]) => ({ status, code: code as keyof typeof errors })),
    );
    for (const { status, code } of codes) t.equal(String(errors[code][0]), status, `${name} ${code}`);
    const has = (code: string): boolean => codes.some((one) => one.code === code);
    t.ok(Object.keys(operation.responses).some((status) => /^4/.test(status)) || operation.security.length === 0, name);
    t.equal(has("missing_bearer_token"), "bearer" in (operation.security[0] ?? {}), name);
    if (operation.requestBody) t.ok(has("invalid_request") && has("payload_too_large"), name);
  }
  t.end();
});

t.test("bodies of visitors are open, those of owners are closed, and no answer is closed", (t) => {
  for (const { name, operation } of operations) {
    const schema = operation.requestBody?.content["application/json"]?.schema;
    // JSON-RPC says itself what a message may have.
    if (schema?.properties && !operation.tags.includes("MCP"))
      t.equal(schema.additionalProperties === false, "bearer" in (operation.security[0] ?? {}), name);
    const answers = Object.values(operation.responses).flatMap(({ content = {} }) => Object.values(content));
    for (const [, answer] of answers.flatMap(({ schema }) => [...within(name, schema)]))
      t.not(answer.additionalProperties, false, name);
  }
  t.end();
});

t.test("responses that are not JSON have their content type, and significant headers are parameters", (t) => {
  const of = (path: string, method: string): Operation => document.paths[path]?.[method] as Operation;
  const page = "/v2/public/pages/{handle}/{pageSlug}";
  const types = (operation: Operation, status = "200"): string[] =>
    Object.keys(operation.responses[status]?.content ?? {});
  const headers = (operation: Operation): unknown[] => operation.parameters.map(({ name, $ref }) => name ?? $ref);
  t.same(types(of(`${page}/agentic-chat`, "post")), ["text/event-stream"]);
  const stream = of(`${page}/agentic-chat/{chatId}/stream`, "get");
  t.same([types(stream), types(stream, "204")], [["text/event-stream"], []]);
  t.ok(headers(stream).includes("Last-Event-ID"));
  t.same(types(of("/v2/handles/{handle}/leads/export", "get")), ["text/csv"]);
  t.same(types(of(`${page}/lead-sections/{sectionId}/form`, "get")), ["text/html"]);
  const event = "/v2/public/scheduling/{handle}/{eventSlug}";
  t.same(types(of(`${event}/bookings/{bookingUid}/calendar.ics`, "get")), ["text/calendar"]);
  t.ok(headers(of(`${event}/bookings`, "post")).includes("#/components/parameters/IdempotencyKey"));
  t.same(Object.keys(of(`${event}/slots`, "get").responses).slice(0, 2), ["200", "304"]);
  const { responses } = of(`${page}/checkout`, "post");
  t.same(Object.keys(responses).slice(0, 2), ["200", "303"]);
  t.match(responses["303"], { headers: { Location: { schema: { type: "string" } } } });
  t.match(of(`${event}/bookings`, "post").responses["201"], { headers: { Location: Object } });
  t.notMatch(of("/v2/handles/{handle}/campaigns", "post").responses["201"], { headers: { Location: Object } });
  t.same(Object.keys(of("/mcp/{handle}/mcp", "post").responses).slice(0, 2), ["200", "202"]);
  t.ok(headers(of("/v2/email/feedback", "post")).includes("webhook-timestamp"));
  t.same(of("/v2/email/feedback", "post").security, [{ standardWebhooks: [] }]);
  t.same(Object.keys(of("/v2/email/inbound", "post").requestBody?.content ?? {}), ["message/rfc822"]);
  t.ok(
    "application/x-www-form-urlencoded" in (of("/v2/public/handles/{handle}/leads", "post").requestBody?.content ?? {}),
  );
  t.end();
});
