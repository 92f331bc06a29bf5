import type { Published } from "./published.ts";

type Components = Record<string, Published>;

/** The example of a text without a documented one. */
const madeUp = "example";

/** A value that a published schema accepts: its own example, else the simplest value of its type. */
export function exampleOf(schema: Published, components: Components): unknown {
  const [example] = (schema.examples ?? []) as unknown[];
  if (example !== undefined) return example;
  if (typeof schema.$ref === "string") return exampleOf(referenced(schema.$ref, components), components);
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return schema.default;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (Array.isArray(schema.anyOf)) return exampleOf(schema.anyOf[0], components);
  return ofType(schema, components);
}

function referenced(reference: string, components: Components): Published {
  return components[reference.split("/").at(-1) as string] as Published;
}

function ofType(schema: Published, components: Components): unknown {
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "object") return objectOf(schema, components);
  if (type === "array") {
    const item = exampleOf(schema.items as Published, components);
    return Array.from({ length: Math.max(1, Number(schema.minItems ?? 1)) }, () => item);
  }
  if (type === "integer" || type === "number") return schema.minimum ?? 1;
  if (type === "boolean") return true;
  return type === "string" ? textOf(schema) : {};
}

/** Required properties, and the optional ones that have an example. */
function objectOf({ properties = {}, required = [] }: Published, components: Components): object {
  const shown = Object.entries(properties as Record<string, Published>).filter(
    ([name, property]) => (required as string[]).includes(name) || property.examples !== undefined,
  );
  return Object.fromEntries(shown.map(([name, property]) => [name, exampleOf(property, components)]));
}

function textOf({ format }: Published): string {
  if (format === "date-time") return "2026-11-23T08:00:00.000Z";
  if (format === "date") return "2026-12-24";
  if (format === "email") return "ada@example.com";
  return format === "uri" ? "https://example.com/" : madeUp;
}
