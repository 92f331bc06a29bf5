import { isLanguageTag } from "../core/platform/language-tags.ts";
import { cutText, sameWord } from "../core/platform/words.ts";
import { isOptional, propertiesOf, type Schema } from "../schemas/schema.ts";

/**
 * Normalises a visitor's input before validation: `null` in optional properties is absent, texts are trimmed, numbers and booleans become
 * text if the schema asks for text, and optional decoration is shortened or dropped. Changes objects in place.
 */
export function lenientInput(schema: Schema<unknown>, input: Record<string, unknown>): void {
  eachProperty(schema, input, (property, value) => {
    if (value === null && isOptional(property)) return undefined;
    return lenient(property, value, isOptional(property));
  });
}

/** Normalises the spelling of enum words in an owner's input: case, `-` and `_` don't matter. Changes objects in place. */
export function foldedInput(schema: Schema<unknown>, input: Record<string, unknown>): void {
  eachProperty(schema, input, folded);
}

/** Changes the known properties; removes those that are read-only or become undefined. */
function eachProperty(
  schema: Schema<unknown>,
  input: Record<string, unknown>,
  change: (property: Schema<unknown>, value: unknown) => unknown,
): void {
  const properties = propertiesOf(schema);
  for (const name of Object.keys(input)) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (property === undefined) continue;
    const value = property.readOnly ? undefined : change(property, input[name]);
    if (value === undefined) delete input[name];
    else input[name] = value;
  }
}

function lenient(schema: Schema<unknown>, value: unknown, isOptionalText = false): unknown {
  if (Array.isArray(value) && schema.items) return value.map((one) => lenient(schema.items as Schema<unknown>, one));
  const choices = schema.anyOf as Schema<unknown>[] | undefined;
  if (choices)
    return choices.reduce((changed, choice) => (takes(choice, changed) ? lenient(choice, changed) : changed), value);
  if (takes(schema, value, "object") && schema.properties) lenientInput(schema, value as Record<string, unknown>);
  else if (isOf(schema, "string")) return text(schema, value, isOptionalText);
  else if (schema["x-decoration"] && !takes(schema, value)) return undefined;
  return value;
}

function text(schema: Schema<unknown>, value: unknown, isOptionalText: boolean): unknown {
  const isDecoration = schema["x-decoration"] === true;
  const isScalar = typeof value === "number" || typeof value === "boolean";
  const given = isScalar && (isDecoration || schema["x-as-text"]) ? String(value) : value;
  if (typeof given !== "string") return isDecoration ? undefined : given;
  const isTrimmed = isOptionalText || schema["x-trim"] === true;
  const cut = isDecoration ? cutText(given, schema.maxLength as number) : isTrimmed ? given.trim() : given;
  if (isDecoration && schema.format === "language" && !isLanguageTag(cut)) return undefined;
  return foldedText(schema, cut);
}

function folded(schema: Schema<unknown>, value: unknown): unknown {
  if (Array.isArray(value) && schema.items) return value.map((one) => folded(schema.items as Schema<unknown>, one));
  if (takes(schema, value, "object") && schema.properties) foldedInput(schema, value as Record<string, unknown>);
  return typeof value === "string" ? foldedText(schema, value) : value;
}

/** The enum word that the value means, else the value in lower case. */
function foldedText(schema: Schema<unknown>, value: string): string {
  const known = schema["x-words"] as readonly string[] | undefined;
  const lower = value.toLowerCase();
  if (known === undefined || known.includes(lower)) return known === undefined ? value : lower;
  return known.find((word) => sameWord(word, value)) ?? lower;
}

/** True if the schema accepts the value's type and, if `named` is given, it is that type. */
function takes(schema: Schema<unknown>, value: unknown, named?: string): boolean {
  const kind = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
  return isOf(schema, kind) && (named ?? kind) === kind;
}

function isOf({ type }: Schema<unknown>, kind: string): boolean {
  return Array.isArray(type) ? type.includes(kind) : type === kind;
}
