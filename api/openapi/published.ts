import notes from "../../schemas/fields.json" with { type: "json" };
import { isOptional, nameOf, propertiesOf, publishedOf, type Schema, sourceOf } from "../../schemas/schema.ts";

/** JSON Schema as the OpenAPI document and the tools publish it. */
export type Published = Record<string, unknown>;

/** The named shapes that have been written so far. */
type Components = Record<string, Published>;

/** The named shapes that operations refer to, the base URL, and the paths of all GET routes. */
export interface Surroundings {
  components: Components;
  baseUrl: string;
  readPaths: string[];
}

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required?: boolean;
  description?: string;
  schema: Published;
}

/** A content type with its schema and an example. */
export type Content = Record<string, { schema: Published; example: unknown }>;

export interface Writing {
  /** The component or operation that owns the fields; some notes apply to one owner only. */
  owner: string;
  /** If given, unknown fields are allowed: objects stay open, and a named shape is written here and becomes a reference. */
  components?: Components | undefined;
}

/** What a field means, and the example that requests and answers show. */
type FieldNote = readonly [description: string, example?: unknown];

/**
 * Notes on fields for the OpenAPI document and the tools: by name if the name always means the same, else by `Shape.name`, which
 * also counts for what `createShape` and `updateShape` take, or by `operation.name`.
 */
const fields = notes as unknown as Record<string, FieldNote>;

/** Public names of our formats; others are omitted. */
const formats: Record<string, string> = { address: "email", instant: "date-time", date: "date", uri: "uri" };

/** Converts a schema to plain JSON Schema: adds notes and examples and omits our own keywords. */
export function published(accepted: Schema<unknown>, how: Writing): Published {
  const schema = publishedOf(accepted);
  const source = sourceOf(schema);
  const [{ components }, name] = [how, nameOf(source)];
  if (name === undefined) return converted(schema, how);
  if (components === undefined) return converted(schema, { owner: name });
  components[name] ??= converted(source, { owner: name, components });
  const reference = { $ref: `#/components/schemas/${name}` };
  const isNullable = Array.isArray(schema.type) && schema.type.includes("null");
  return isNullable ? { anyOf: [reference, { type: "null" }] } : reference;
}

/** The properties of an object with their notes. */
export function publishedProperties(schema: Schema<unknown>, how: Writing): [string, Published][] {
  return writable(schema).map(([name, property]) => [name, withNote(published(property, how), noteOf(name, how))]);
}

export function requiredNames(schema: Schema<unknown>): string[] {
  const required = writable(schema).filter(([, property]) => !isOptional(publishedOf(property)));
  return required.map(([name]) => name);
}

/** The properties that a client may send: ignored ones are not published. */
export function writable(schema: Schema<unknown>): [string, Schema<unknown>][] {
  return Object.entries(propertiesOf(schema)).filter(([, property]) => property.readOnly !== true);
}

/** Keywords whose value is a schema, a list of schemas, or internal. */
function converted(schema: Schema<unknown>, how: Writing): Published {
  const shown: Published = {};
  for (const [keyword, value] of Object.entries(schema)) {
    const part = keywordOf(keyword, value, schema, how);
    if (part !== undefined) shown[keyword] = part;
  }
  return shown;
}

function keywordOf(keyword: string, value: unknown, schema: Schema<unknown>, how: Writing): unknown {
  if (keyword.startsWith("x-")) return undefined;
  if (keyword === "format") return formats[value as string];
  if (keyword === "properties") return Object.fromEntries(publishedProperties(schema, how));
  if (keyword === "required") return requiredNames(schema);
  if (keyword === "additionalProperties" && typeof value === "boolean") return how.components ? undefined : value;
  if (keyword === "items" || keyword === "additionalProperties") return published(value as Schema<unknown>, how);
  if (keyword === "anyOf") return (value as Schema<unknown>[]).map((one) => published(one, how));
  return value;
}

/** The note of the owner's own field, else that of the resource which the owner writes, `Page` for `createPage`, else that of the name. */
function noteOf(name: string, { owner }: Writing): FieldNote | undefined {
  const resource = owner.replace(/^(?:add|create|put|update|New|Listed|Public)(?=[A-Z])/, "");
  return fields[`${owner}.${name}`] ?? fields[`${resource}.${name}`] ?? fields[name];
}

/** A note on the field itself wins over the table's. */
function withNote(schema: Published, note: FieldNote | undefined): Published {
  if (note === undefined) return schema;
  const [description, example] = note;
  if (schema.$ref) return { ...schema, description };
  const examples = schema.examples ?? (example === undefined ? undefined : [example]);
  return { ...schema, description: schema.description ?? description, ...(examples === undefined ? {} : { examples }) };
}

/** A value that a published schema accepts: its own example, else the simplest value of its type. */
export function exampleOf(schema: Published, components: Components): unknown {
  const [example] = (schema.examples ?? []) as unknown[];
  if (example !== undefined) return example;
  if (typeof schema.$ref === "string")
    return exampleOf(components[schema.$ref.split("/").at(-1) as string] as Published, components);
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (Array.isArray(schema.anyOf)) return exampleOf(schema.anyOf[0], components);
  return ofType(schema, components);
}

function ofType(schema: Published, components: Components): unknown {
  const { type } = schema;
  if (type === "object") return objectOf(schema, components);
  if (type === "array") {
    const item = exampleOf(schema.items as Published, components);
    return Array.from({ length: Number(schema.minItems ?? 1) }, () => item);
  }
  if (type === "boolean") return true;
  return schema.format === "date-time" ? "2026-11-23T08:00:00.000Z" : "example";
}

/** Required properties, and the optional ones that have an example. */
function objectOf({ properties = {}, required = [] }: Published, components: Components): object {
  const shown = Object.entries(properties as Record<string, Published>).filter(
    ([name, property]) => (required as string[]).includes(name) || property.examples !== undefined,
  );
  return Object.fromEntries(shown.map(([name, property]) => [name, exampleOf(property, components)]));
}
