import type { FormField } from "../../schemas/assistant.ts";
import { clip, oneLine } from "../platform/characters.ts";
import { membersOf } from "../platform/json.ts";

/** Most generated fields beyond the native ones. */
const MAX_GENERATED_FIELDS = 3;
/** Longest label or option, in UTF-16 units. */
const MAX_LABEL_LENGTH = 80;
/** Most choices of a select. */
const MAX_OPTIONS = 8;

const native: Record<string, FormField> = {
  email: { key: "email", label: "Email", type: "email", required: true },
  name: { key: "name", label: "Name", type: "text", required: false },
  company: { key: "company", label: "Company", type: "text", required: false },
  phone: { key: "phone", label: "Phone", type: "tel", required: false },
  message: { key: "message", label: "Message", type: "textarea", required: false },
};

/** Names with a meaning of their own in the lead route, which generated fields must not use. */
const reserved = [
  "firstName",
  "service",
  "source",
  "fields",
  "pageSlug",
  "campaignId",
  "leadContext",
  "tracking",
  "consent",
  "website",
];

/**
 * Form fields from an untrusted proposal: `email` always and first, native fields with their own types, at most three generated ones,
 * labels and options as plain text. Invalid parts are dropped; at most eight fields remain.
 */
export function leadFields(proposed: unknown): FormField[] {
  const fields = new Map<string, FormField>([["email", native.email!]]);
  for (const one of Array.isArray(proposed) ? proposed : []) {
    const field = readField(one);
    if (field && (field.key === "email" || !fields.has(field.key)) && hasRoom(fields, field))
      fields.set(field.key, field);
  }
  return [...fields.values()];
}

/** True for `email`, `name`, `company`, `phone` and `message`. */
export function isNative(key: string): boolean {
  return Object.hasOwn(native, key);
}

function hasRoom(fields: Map<string, FormField>, field: FormField): boolean {
  return isNative(field.key) || [...fields.keys()].filter((key) => !isNative(key)).length < MAX_GENERATED_FIELDS;
}

function readField(proposed: unknown): FormField | undefined {
  const { key, label, type, required, options } = membersOf(proposed);
  const shown = plainLine(label);
  if (typeof key !== "string") return undefined;
  if (isNative(key))
    return {
      ...native[key]!,
      ...(shown === "" ? {} : { label: shown }),
      required: key === "email" || required === true,
    };
  if (shown === "" || !/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/.test(key) || reserved.includes(key)) return undefined;
  return { key, label: shown, required: required === true, ...readType(type, options) };
}

function readType(type: unknown, options: unknown): Pick<FormField, "type" | "options"> {
  const listed = Array.isArray(options) ? options.map(plainLine).filter((option) => option !== "") : [];
  const choices = [...new Set(listed)].slice(0, MAX_OPTIONS);
  if (type === "select" && choices.length >= 2) return { type, options: choices };
  return { type: type === "textarea" ? type : "text" };
}

function plainLine(value: unknown): string {
  return typeof value === "string" ? clip(oneLine(value), MAX_LABEL_LENGTH) : "";
}
