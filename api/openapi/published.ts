import { components } from "../../schemas/components.ts";
import { type FieldNote, fields } from "../../schemas/fields.ts";
import { isOptional, publishedOf, type Schema, sourceOf } from "../../schemas/schema.ts";

/** JSON Schema as the OpenAPI document and the tools show it. */
export type Published = Record<string, unknown>;

/** The named shapes that operations refer to, and the address of the service. */
export interface Surroundings {
  components: Record<string, Published>;
  baseUrl: string;
}

/** One parameter of an operation. */
export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required?: boolean;
  description?: string;
  schema: Published;
}

/** A content type with its shape and an example. */
export type Content = Record<string, { schema: Published; example: unknown }>;

/** How a shape is written down. */
export interface Writing {
  /** Whose fields these are, for notes that hold there alone: a component or an operation. */
  owner: string;
  /** True where unknown fields are allowed: nothing is closed, and named shapes are references. */
  open: boolean;
}

const names = new Map(Object.entries(components).map(([name, schema]) => [schema, name]));
/** Our formats by their public names; a format without one is left out. */
const formats: Record<string, string> = { address: "email", instant: "date-time", date: "date", uri: "uri" };

/** A shape in the words of JSON Schema alone: notes and examples are added, keywords of ours are left out. */
export function published(accepted: Schema<unknown>, how: Writing): Published {
  const schema = publishedOf(accepted);
  const name = how.open ? names.get(sourceOf(schema)) : undefined;
  if (name === undefined) return written(schema, how);
  const reference = { $ref: `#/components/schemas/${name}` };
  return isNullable(schema) && !isNullable(sourceOf(schema)) ? { anyOf: [reference, { type: "null" }] } : reference;
}

/** The named shapes, in the order of their table. */
export function publishedComponents(): Record<string, Published> {
  return Object.fromEntries(
    Object.entries(components).map(([owner, schema]) => [owner, written(schema, { owner, open: true })]),
  );
}

/** The properties of an object that a client may send or will read, with their notes. */
export function publishedProperties(schema: Schema<unknown>, how: Writing): [string, Published][] {
  return propertiesOf(schema).map(([name, property]) => [name, noted(published(property, how), noteOf(name, how))]);
}

/** Names of the properties that a client has to send. */
export function requiredNames(schema: Schema<unknown>): string[] {
  const required = (schema.required ?? []) as string[];
  return propertiesOf(schema)
    .filter(([name, property]) => {
      const shown = publishedOf(property);
      return shown === property ? required.includes(name) : !isOptional(shown);
    })
    .map(([name]) => name);
}

function propertiesOf(schema: Schema<unknown>): [string, Schema<unknown>][] {
  return Object.entries((schema.properties ?? {}) as Record<string, Schema<unknown>>).filter(
    ([, property]) => property.readOnly !== true,
  );
}

/** Keywords whose value is a shape, a list of shapes, or not for readers. */
function written(schema: Schema<unknown>, how: Writing): Published {
  const shown: Published = {};
  for (const [keyword, value] of Object.entries(schema)) {
    const said = keywordOf(keyword, value, schema, how);
    if (said !== undefined) shown[keyword] = said;
  }
  return shown;
}

function keywordOf(keyword: string, value: unknown, schema: Schema<unknown>, how: Writing): unknown {
  if (keyword.startsWith("x-")) return undefined;
  if (keyword === "format") return formats[value as string];
  if (keyword === "properties") return Object.fromEntries(publishedProperties(schema, how));
  if (keyword === "required") return requiredNames(schema);
  if (keyword === "additionalProperties" && typeof value === "boolean") return how.open ? undefined : value;
  if (keyword === "items" || keyword === "additionalProperties") return published(value as Schema<unknown>, how);
  if (keyword === "anyOf") return (value as Schema<unknown>[]).map((one) => published(one, how));
  return value;
}

function isNullable({ type }: Schema<unknown>): boolean {
  return Array.isArray(type) && type.includes("null");
}

function noteOf(name: string, { owner }: Writing): FieldNote | undefined {
  return fields[`${owner}.${name}`] ?? fields[name];
}

/** A field's own words beat those of the table. */
function noted(schema: Published, note: FieldNote | undefined): Published {
  if (note === undefined) return schema;
  const [description, example] = note;
  if (schema.$ref) return { ...schema, description };
  const examples = schema.examples ?? (example === undefined ? undefined : [example]);
  return { ...schema, description: schema.description ?? description, ...(examples === undefined ? {} : { examples }) };
}
