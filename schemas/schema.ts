/** A small schema language: each value is a JSON Schema (2020-12) that carries its TypeScript type. */

declare const shape: unique symbol;
declare const absent: unique symbol;

/** A JSON Schema whose accepted values have type T. */
export interface Schema<T> {
  readonly [keyword: string]: unknown;
  readonly [shape]?: T;
}

interface Optional<T> extends Schema<T> {
  readonly [absent]: true;
}

/** The type of the values that a schema accepts. */
export type Infer<S> = S extends Schema<infer T> ? T : never;

type Properties = Record<string, Schema<unknown>>;
type OptionalKeys<P> = { [K in keyof P]: P[K] extends Optional<unknown> ? K : never }[keyof P];
type Flat<T> = { [K in keyof T]: T[K] };
type Fields<P> = Flat<
  { [K in Exclude<keyof P, OptionalKeys<P>>]: Infer<P[K]> } & { [K in OptionalKeys<P>]?: Infer<P[K]> | undefined }
>;

const optionalMark = Symbol("optional");
const sourceMark = Symbol("source");
const publishedMark = Symbol("published");
const nameMark = Symbol("name");
const formMark = Symbol("form");

/** A closed object; owner routes refuse other properties, public routes drop them. */
export function object<P extends Properties>(properties: P, more: Schema<unknown> = {}): Schema<Fields<P>> {
  const required = Object.keys(properties).filter((name) => !isOptional(properties[name]));
  return { type: "object", properties, required, additionalProperties: false, ...more } as Schema<Fields<P>>;
}

/** A shape that the OpenAPI document names: it becomes a type of generated clients. */
export function named<S extends Schema<unknown>>(name: string, schema: S): S {
  return { ...schema, [nameMark]: name };
}

/** A closed object with such a name. */
export function component<P extends Properties>(name: string, properties: P): Schema<Fields<P>> {
  return named(name, object(properties));
}

/** The name of a shape, if it has one. */
export function nameOf(schema: Schema<unknown>): string | undefined {
  return (schema as { [nameMark]?: string })[nameMark];
}

/** The message for a text that does not match the pattern of this schema, if it has one. */
export function formOf(schema: object | undefined): string | undefined {
  return (schema as { [formMark]?: string } | undefined)?.[formMark];
}

/** The properties of an object's schema; none for any other schema. */
export function propertiesOf(schema: Schema<unknown>): Properties {
  return (schema.properties ?? {}) as Properties;
}

/** The properties of a value that its shape has. A stored value has others where a newer deploy has stored them, and was rolled back. */
export function onlyOf<T extends object>(schema: Schema<T>, value: T): T {
  const properties = propertiesOf(schema);
  return Object.fromEntries(Object.entries(value).filter(([name]) => Object.hasOwn(properties, name))) as T;
}

/** Marks a property of `object` as one that may be absent. */
export function optional<T>(schema: Schema<T>): Optional<T> {
  return { ...schema, [optionalMark]: true, [sourceMark]: sourceOf(schema) } as unknown as Optional<T>;
}

/** A property that may be absent and then has this value. */
export function withDefault<T>(schema: Schema<T>, value: T): Schema<T> {
  return { ...schema, default: value, [optionalMark]: true, [sourceMark]: sourceOf(schema) } as unknown as Schema<T>;
}

/** True for a property that `object` doesn't list as required. */
export function isOptional(schema: Schema<unknown> | undefined): boolean {
  return schema !== undefined && optionalMark in schema;
}

/** The schema of which this one is an optional or nullable copy, else the schema itself. */
export function sourceOf(schema: Schema<unknown>): Schema<unknown> {
  return (schema as { [sourceMark]?: Schema<unknown> })[sourceMark] ?? schema;
}

/** A value that the function checks: the OpenAPI document shows `published` instead of the accepted schema. */
export function documented<S extends Schema<unknown>>(accepted: S, published: Schema<unknown>): S {
  return { ...accepted, [publishedMark]: published };
}

/** A property that may be absent and have any value, until the function checks it: the OpenAPI document shows this schema. */
export function unchecked(published: Schema<unknown>): Optional<unknown> {
  return documented(optional(anything), published);
}

/** The schema that the OpenAPI document shows for this one. */
export function publishedOf(schema: Schema<unknown>): Schema<unknown> {
  return (schema as { [publishedMark]?: Schema<unknown> })[publishedMark] ?? schema;
}

/** Sets the error code of this value (absent, mistyped or malformed), which wins over `invalid_request`. */
export const withCode = annotation<string>("x-code");
/** Sets the error code of this value if it is absent, blank or mistyped; a malformed one stays `invalid_request`. */
export const needed = annotation<string>("x-absent-code");
/** A word in any case, with `-` or `_`; unknown words are converted to lower case. */
export const folded = annotation<readonly string[]>("x-words");
/** A visitor's text that is trimmed; optional properties always are. */
export const trimmed = mark("x-trim");
/** A visitor's text that also accepts numbers and booleans. */
export const asText = mark("x-as-text");
/** Decoration that never fails a visitor's request: a text is cut to its `maxLength`, and a value of another type is dropped. */
export const decoration = mark("x-decoration");

/** A keyword of our own with a value, which `api/input.ts` reads. */
function annotation<V>(keyword: string) {
  return <S extends Schema<unknown>>(schema: S, value: V): S => ({ ...schema, [keyword]: value });
}

function mark(keyword: string) {
  return <S extends Schema<unknown>>(schema: S): S => ({ ...schema, [keyword]: true });
}

/** Read-only properties of the resource: accepted and ignored, so that a client may send back what it read. */
export function ignored<const N extends string>(...names: N[]): Record<N, Optional<unknown>> {
  const readOnly = optional<unknown>({ readOnly: true });
  return Object.fromEntries(names.map((name) => [name, readOnly])) as Record<N, Optional<unknown>>;
}

/** The same value, or null: for a schema that names its type. */
export function nullable<T>(schema: Schema<T>): Schema<T | null> {
  const { type, enum: values } = schema;
  const more = Array.isArray(values) ? { enum: [...values, null] } : {};
  const either = { ...schema, ...more, type: [type, "null"], [sourceMark]: sourceOf(schema) };
  return either as unknown as Schema<T | null>;
}

/** The properties as optional ones: the shape of a partial PUT. */
export function partial<P extends Properties>(properties: P): { [K in keyof P]: Optional<Infer<P[K]>> } {
  const loose = Object.entries(properties).map(([name, { default: _default, ...rest }]) => [name, optional(rest)]);
  return Object.fromEntries(loose) as { [K in keyof P]: Optional<Infer<P[K]>> };
}

export const string = (more: Schema<unknown> = {}): Schema<string> => ({ type: "string", ...more }) as Schema<string>;
export const text = (maxLength: number): Schema<string> => string({ maxLength });
/** A text that matches a pattern; `form` is the message for one that does not. */
export const formed = (pattern: string, form: string, more: Schema<unknown> = {}): Schema<string> =>
  ({ ...string({ pattern, ...more }), [formMark]: form }) as Schema<string>;
/** A text with a visible character. The pattern is for clients: `x-filled` also counts characters that show nothing as blank. */
export const filled = { minLength: 1, pattern: "\\S", "x-filled": true };
/** One line with a visible character and without control characters. The pattern reads each character once, however long the text is. */
export const line = (maxLength: number): Schema<string> =>
  formed(
    "^[^\\S\\u0000-\\u001f\\u007f]*[^\\s\\u0000-\\u001f\\u007f][^\\u0000-\\u001f\\u007f]*$",
    "must be one line that is not blank",
    { minLength: 1, maxLength, "x-filled": true },
  );
export const integer = (minimum?: number, maximum?: number): Schema<number> => ({ type: "integer", minimum, maximum });
export const number: Schema<number> = { type: "number" };
export const boolean: Schema<boolean> = { type: "boolean" };
export const anything: Schema<unknown> = {};
export const oneOf = <const V extends readonly string[]>(...values: V): Schema<V[number]> =>
  ({ type: "string", enum: values }) as Schema<V[number]>;
export const array = <T>(items: Schema<T>, more: Schema<unknown> = {}): Schema<T[]> =>
  ({ type: "array", items, ...more }) as Schema<T[]>;
export const map = <T>(values: Schema<T>, more: Schema<unknown> = {}): Schema<Record<string, T>> =>
  ({ type: "object", additionalProperties: values, ...more }) as Schema<Record<string, T>>;
export const either = <A, B>(first: Schema<A>, second: Schema<B>): Schema<A | B> =>
  ({ anyOf: [first, second] }) as Schema<A | B>;
/** A handle: the owner namespace (docs/reference.md, "Identifiers"). */
export const handle = formed("^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$", "must be the name of a handle");
/** A page or event slug (docs/reference.md, "Identifiers"). */
export const slug = formed(
  "^[a-z0-9]+(?:-[a-z0-9]+)*$",
  "must consist of lower-case letters and digits, with single hyphens between them",
  { maxLength: 96 },
);
/** An addr-spec of RFC 5321 in the form that mail systems accept: dot-atom local part, domain name. */
export const email = string({ format: "address", maxLength: 254 });
/** A web address from a user: without white space and control characters, which a parser would drop silently. */
export const webAddress = formed("^[^\\s\\u0000-\\u001f\\u007f-\\u009f]+$", "must not contain white space", {
  minLength: 1,
  maxLength: 2048,
});
/** An instant of RFC 3339 with an offset. */
export const instant = string({ format: "instant" });
/** An instant, or a date (RFC 3339, full-date): its first instant in UTC. */
export const instantOrDate = string({ format: "instant-or-date" });
/** An IANA zone name that this platform knows. */
export const timeZone = string({ format: "time-zone", maxLength: 64 });
/** A language tag (BCP 47). */
export const language = string({ format: "language", maxLength: 64 });
/** An opaque id made by the service. */
export const id = formed("^[A-Za-z0-9_.:-]+$", "must consist of letters, digits, _, ., : and -", {
  minLength: 1,
  maxLength: 128,
});
/** A currency of ISO 4217, in any case. */
export const currency = formed("^[A-Za-z]{3}$", "must be a currency code, such as EUR");

/** The two query parameters of every list (docs/reference.md, "Envelopes and lists"): `limit` is clamped to 100. */
export const listing = { limit: withDefault(integer(1), 25), cursor: optional(string({ maxLength: 512 })) };
export const listQuery = object(listing);
/** The input of a route that takes its path alone. */
export const nothing = object({});
/** The input of a function: the parameters of its route's path, and the values that the schema accepts. */
export type Input<N extends string, S = typeof nothing> = Infer<S> & { [K in N]: string };

/** What the service writes on a resource with each change. */
export const stamps = { version: integer(1), createdAt: instant, updatedAt: instant };
/** The version that the caller has seen: `version_conflict` if it has changed (docs/reference.md, "Updates"). */
export const expected = { expectedVersion: optional(integer(0)) };

/** One page of a list under its name, and the cursor of the next page. */
export function listOf<T>(name: string, items: Schema<T>): Schema<unknown> {
  return object({ [name]: array(items), nextCursor: nullable(string()) });
}
