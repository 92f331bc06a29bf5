import { firstCharacters, isBlank, sameWord, withoutTabs } from "../core/platform/characters.ts";
import { asObject } from "../core/platform/json.ts";
import { isLanguageTag } from "../core/platform/language-tags.ts";
import { typedText } from "../core/platform/typed.ts";
import { isOptional, propertiesOf, type Schema } from "../schemas/schema.ts";

/**
 * Normalises an input before validation; changes objects in place. Read-only properties are removed. The spelling of enum words doesn't
 * matter. In a visitor's input, `null` and blank text in optional properties are absent, texts are trimmed, numbers and booleans become
 * text if the schema asks for text, and optional decoration is shortened or dropped.
 */
export function normaliseInput(schema: Schema<unknown>, input: Record<string, unknown>, isVisitors: boolean): void {
  const properties = propertiesOf(schema);
  for (const [name, given] of Object.entries(input)) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (property === undefined) continue;
    const value = property.readOnly ? undefined : normalised(property, given, isVisitors);
    if (value === undefined) delete input[name];
    else input[name] = value;
  }
}

function normalised(schema: Schema<unknown>, value: unknown, isVisitors: boolean): unknown {
  const { items } = schema as { items?: Schema<unknown> };
  if (Array.isArray(value) && items) return value.map((one) => normalised(items, one, isVisitors));
  normaliseInput(schema, asObject(value), isVisitors);
  if (isVisitors) return lenient(schema, value);
  return typeof value === "string" ? foldedText(schema, value) : value;
}

function lenient(schema: Schema<unknown>, value: unknown): unknown {
  if (value === null && isOptional(schema)) return undefined;
  const choices = schema.anyOf as Schema<unknown>[] | undefined;
  if (choices)
    return choices.reduce((one, choice) => (takes(choice, one) ? normalised(choice, one, true) : one), value);
  if (isOf(schema, "string")) return text(schema, value);
  return schema["x-decoration"] && !takes(schema, value) ? undefined : value;
}

function text(schema: Schema<unknown>, value: unknown): unknown {
  const isDecoration = schema["x-decoration"] === true;
  const isScalar = typeof value === "number" || typeof value === "boolean";
  const asText = isScalar && (isDecoration || schema["x-as-text"]) ? String(value) : value;
  if (typeof asText !== "string") return isDecoration ? undefined : asText;
  const given = schema.format === "line" ? withoutTabs(asText) : asText;
  const isTrimmed = isOptional(schema) || schema["x-trim"] === true;
  const trimmed = isBlank(given) ? "" : given.trim();
  const typed = schema.format === "address" ? typedText(given) : trimmed;
  const cut = isDecoration ? firstCharacters(given, schema.maxLength as number) : isTrimmed ? typed : given;
  if (isDecoration && schema.format === "language" && !isLanguageTag(cut)) return undefined;
  return cut === "" && isOptional(schema) ? undefined : foldedText(schema, cut);
}

/** The enum word that the value means, else the value in lower case. */
function foldedText(schema: Schema<unknown>, value: string): string {
  const known = schema["x-words"] as readonly string[] | undefined;
  const lower = value.toLowerCase();
  if (known === undefined || known.includes(lower)) return known === undefined ? value : lower;
  return known.find((word) => sameWord(word, value)) ?? lower;
}

function takes(schema: Schema<unknown>, value: unknown): boolean {
  return isOf(schema, Array.isArray(value) ? "array" : value === null ? "null" : typeof value);
}

function isOf({ type }: Schema<unknown>, kind: string): boolean {
  return Array.isArray(type) ? type.includes(kind) : type === kind;
}
