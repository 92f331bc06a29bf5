import type { ErrorObject } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { isAddress } from "../core/platform/address.ts";
import { isBlank } from "../core/platform/characters.ts";
import { Fail, pointerTo } from "../core/platform/errors.ts";
import { isLanguageTag } from "../core/platform/language-tags.ts";
import { isZone } from "../core/platform/zones.ts";
import type { ErrorCode, InputError } from "../schemas/errors.ts";
import { formOf, propertiesOf, type Schema } from "../schemas/schema.ts";
import { normaliseInput } from "./lenient-input.ts";
import { hasQuery, type Row } from "./route.ts";

/** Most single faults that one answer names. */
const MAX_ERRORS = 20;

/** Checks the merged input of a row and returns it with defaults; throws the code that the shape names, or `invalid_request`. */
export function checkInput(row: Row, input: Record<string, unknown>): unknown {
  if (hasQuery(row)) readIntegers(row.input, input);
  const isPublic = row.access.kind === "public";
  normaliseInput(row.input, input, isPublic);
  // The engine compiles a schema at its first use.
  const check = engines[isPublic ? "public" : "owner"].compile(row.input);
  if (check(input)) return input;
  throw failure(row.input, { found: check.errors ?? [], input });
}

const engines = { owner: engine(false), public: engine(true) };

/** A test checks the rows against the meta-schema: compiling it would cost a process 0.2 s at its first requests. */
function engine(removeAdditional: boolean): Ajv2020 {
  const reports = { allErrors: true, verbose: true };
  const trusts = { strict: false, meta: false, validateSchema: false };
  const ajv = new Ajv2020({ ...reports, ...trusts, useDefaults: true, removeAdditional });
  formats.default(ajv, ["date", "uri"]);
  ajv.addKeyword({ keyword: "x-filled", type: "string", validate: (_: true, text: string) => !isBlank(text) });
  const own = { address: isAddress, instant: isInstant, language: isLanguageTag, line: isLine, "time-zone": isZone };
  for (const [name, validate] of Object.entries(own)) ajv.addFormat(name, validate);
  return ajv.addFormat("instant-or-date", (text) => isInstant(text) || isDate(text));
}

/** Reads the integers of a query, which sends everything as text. Text that is no decimal integer stays, and fails the check. */
function readIntegers(schema: Schema<unknown>, input: Record<string, unknown>): void {
  for (const [name, property] of Object.entries(propertiesOf(schema))) {
    const text = input[name];
    if (property.type === "integer" && typeof text === "string" && /^-?\d{1,300}$/.test(text))
      input[name] = Number(text);
  }
}

function failure(
  schema: Schema<unknown>,
  { found, input }: { found: ErrorObject[]; input: Record<string, unknown> },
): Fail {
  // The items of a list have one place in the schema, and so one code.
  const places = uniqueBy(found, ({ schemaPath, params }) => `${schemaPath} ${params.missingProperty}`);
  const named = places.map((error) => codeAt(schema, error)).find((code) => code !== undefined);
  const faults = found
    .filter(({ schemaPath }) => !wrapped.test(schemaPath))
    .slice(0, MAX_ERRORS)
    .map((error): InputError => ({ path: pathOf(error), message: sentenceOf(error, input) }));
  return new Fail(named ?? "invalid_request", {
    errors: uniqueBy(faults, ({ path, message }) => `${path} ${message}`),
  });
}

/** Errors that say less than those beside them: of an alternative of another type, and of an object about the name of a property. */
const wrapped = /\/anyOf\/\d+\/type$|\/propertyNames$/;

/** The first item of each key. A body can have tens of thousands of faults. */
function uniqueBy<T>(all: T[], key: (one: T) => string): T[] {
  const first = new Map<string, T>();
  for (const one of all) if (!first.has(key(one))) first.set(key(one), one);
  return [...first.values()];
}

/** The name of a value of each format, for error messages. */
const EXPECTED: Record<string, string> = {
  address: "must be an email address",
  date: "must be a date, such as 2026-11-01",
  instant: "must be an instant with its offset, such as 2026-11-01T09:30:00Z",
  "instant-or-date": "must be a date, such as 2026-11-01, or an instant with its offset, such as 2026-11-01T09:30:00Z",
  language: "must be a language tag, such as en or pt-BR",
  line: "must be one line",
  "time-zone": "must be an IANA time zone, such as Europe/Berlin",
  uri: "must be a URI, such as https://example.com/",
};

/** What a value must be, by keyword, in our words. */
const LIMITED: Record<string, (params: ErrorObject["params"]) => string | undefined> = {
  type: ({ type }) => `must be ${[type].flat().map(withArticle).join(" or ")}`,
  pattern: ({ pattern }) => (pattern === "\\S" ? "must not be blank" : undefined),
  "x-filled": () => "must not be blank",
  anyOf: () => "has none of the documented forms",
  uniqueItems: () => "must not contain an item twice",
  enum: ({ allowedValues }) => `must be ${allowedValues.length > 1 ? "one of " : ""}${allowedValues.join(", ")}`,
  minimum: ({ limit }) => `must be at least ${limit}`,
  maximum: ({ limit }) => `must be at most ${limit}`,
  minLength: ({ limit }) => (limit === 1 ? "must not be empty" : `must have at least ${limit} characters`),
  maxLength: ({ limit }) => `must have at most ${limit} characters`,
  minItems: ({ limit }) => (limit === 1 ? "must not be empty" : `must have at least ${limit} items`),
  maxItems: ({ limit }) => (limit === 1 ? "must have at most 1 item" : `must have at most ${limit} items`),
};

function withArticle(type: string): string {
  if (type === "null") return type;
  return /^[aeio]/.test(type) ? `an ${type}` : `a ${type}`;
}

/** The fault of one input, as the end of a sentence that its path begins. */
function sentenceOf(error: ErrorObject, input: Record<string, unknown>): string {
  const { keyword, params, message = "is not valid", instancePath, parentSchema } = error;
  if (keyword === "required") return "is required";
  if (keyword === "additionalProperties") return "is not a known field";
  const form = keyword === "pattern" || keyword === "x-filled" ? formOf(parentSchema) : undefined;
  const expected = keyword === "format" ? EXPECTED[params.format as string] : LIMITED[keyword]?.(params);
  const isTime = keyword === "format" && String(params.format).startsWith("instant");
  const isSpaced = isTime && /T\S+ \d\d:?\d\d$/i.test(String(input[instancePath.slice(1)] ?? ""));
  return isSpaced ? `${expected}; in a query a plus sign is written as %2B` : (form ?? expected ?? message);
}

/** JSON pointer to the fault: to the missing or unknown property itself, not to its object. */
function pathOf(error: ErrorObject): string {
  const name = error.params.missingProperty ?? error.params.additionalProperty;
  return error.instancePath + (name === undefined ? "" : pointerTo(String(name)));
}

/** The ajv keywords that fail for an absent, mistyped or blank value. */
const absences = new Set(["required", "type", "minLength", "pattern", "x-filled"]);

/** The code named nearest above the fault, if any. */
function codeAt(schema: Schema<unknown>, error: ErrorObject): ErrorCode | undefined {
  let at = schema;
  let code: unknown;
  for (const step of pathOf(error).split("/").slice(1)) {
    at = propertiesOf(at)[step] ?? {};
    code = at["x-code"] ?? code;
  }
  return ((absences.has(error.keyword) && at["x-absent-code"]) || code) as ErrorCode | undefined;
}

const { validate: isDate } = formats.default.get("date") as { validate: (text: string) => boolean };
const timestamp = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d)$/;

function isInstant(text: string): boolean {
  return timestamp.test(text) && !Number.isNaN(Date.parse(text)) && isDate(text.slice(0, 10));
}

function isLine(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) < 32 || text.charCodeAt(at) === 127) return false;
  return true;
}
