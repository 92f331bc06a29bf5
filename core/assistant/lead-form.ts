import { Buffer } from "node:buffer";
import sanitize from "sanitize-html";
import type { FormField, LeadSection } from "../../schemas/assistant.ts";
import { type PagePath, pageUrl } from "../pages/face.ts";
import { clip, oneLine } from "../platform/characters.ts";
import { Fail } from "../platform/errors.ts";
import { escapeHtml } from "../platform/escaping.ts";
import { asObject } from "../platform/json.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { mustBeOpen } from "./gate.ts";

/** Lifetime of a section's form in seconds (docs/reference.md, "Form frame"). */
const FORM_TTL_SECONDS = 86_400;
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
  ...["firstName", "service", "source", "fields", "pageSlug", "campaignId"],
  ...["leadContext", "tracking", "consent", "website"],
];
/** Most bytes of a form's HTML (docs/reference.md, "Tools"). */
export const MAX_FORM_BYTES = 12_288;

/** Longest answer by type of field, in UTF-16 units; the widget applies the same limits. */
const MAX_LENGTHS: Record<FormField["type"], number> = { text: 200, email: 254, tel: 40, textarea: 2000, select: 80 };

const completions: Record<string, string> = { email: "email", name: "name", company: "organization", phone: "tel" };

/** The allowed elements of a form. No tag loads, runs or links anything, and no attribute contains a URL, a style or a handler. */
const allowed: sanitize.IOptions = {
  allowedTags: ["form", "div", "label", "span", "input", "textarea", "select", "option", "button"],
  allowedAttributes: {
    "*": ["class"],
    div: ["aria-hidden"],
    span: ["aria-hidden"],
    label: ["for"],
    input: ["id", "name", "type", "required", "maxlength", "autocomplete", "tabindex"],
    textarea: ["id", "name", "required", "maxlength", "rows"],
    select: ["id", "name", "required"],
    option: ["value"],
    button: ["type"],
  },
  allowedSchemes: [],
  allowProtocolRelative: false,
};

/** The stored part of a section that was shown to a visitor, with its language (BCP 47). */
export type StoredForm = Pick<LeadSection, "fields" | "submitLabel"> & { language?: string };

/** The same with the address of the page that shows it. */
export type LeadForm = StoredForm & { pageUrl: string };

type FormPath = PagePath & { sectionId: string };

/** Stores the form of a lead section for 24 h, so that its frame has an address. */
export async function storeLeadForm({ redis }: Runtime, path: FormPath, form: StoredForm): Promise<void> {
  await redis.set(formKey(path), JSON.stringify(form), "EX", FORM_TTL_SECONDS);
}

/** The form of a section; `not_found` if it was never shown on this page or has expired. */
export async function readLeadForm(runtime: Runtime, path: FormPath): Promise<LeadForm> {
  await mustBeOpen(runtime, path);
  const form = await runtime.redis.get(formKey(path));
  if (form === null) throw new Fail("not_found");
  return { ...(JSON.parse(form) as StoredForm), pageUrl: pageUrl(runtime, path.handle, path.pageSlug) };
}

function formKey({ handle, pageSlug, sectionId }: FormPath): string {
  return keys.leadSection(handle, pageSlug, sectionId);
}

/** The valid fields of a proposal and their form; without the generated fields if they would make it too large. */
export function leadForm(proposed: unknown, submitLabel: string): { fields: FormField[]; html: string } {
  const fields = leadFields(proposed);
  const html = formHtml(fields, submitLabel);
  if (html !== undefined) return { fields, html };
  const fewer = fields.filter(({ key }) => isNative(key));
  return { fields: fewer, html: formHtml(fewer, submitLabel) as string };
}

/**
 * Form fields from an untrusted proposal: `email` always and first, native fields with their own types, at most three generated ones,
 * labels and options as plain text. Invalid parts are dropped; at most eight fields remain.
 */
export function leadFields(proposed: unknown): FormField[] {
  const fields = new Map<string, FormField>([["email", native.email!]]);
  for (const one of Array.isArray(proposed) ? proposed : []) {
    const field = readField(one);
    const generated = [...fields.keys()].filter((key) => !isNative(key)).length;
    if (!field || (fields.has(field.key) && field.key !== "email")) continue;
    if (isNative(field.key) || generated < MAX_GENERATED_FIELDS) fields.set(field.key, field);
  }
  return [...fields.values()];
}

function isNative(key: string): boolean {
  return Object.hasOwn(native, key);
}

function readField(proposed: unknown): FormField | undefined {
  const { key, label, type, required, options } = asObject(proposed);
  const shown = plainLine(label);
  if (typeof key !== "string") return undefined;
  if (isNative(key))
    return { ...native[key]!, ...(shown && { label: shown }), required: key === "email" || required === true };
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

/**
 * The form of checked fields, rendered by an escaping template and sanitised; undefined over 12 KB. A `trap` is an invisible field that
 * bots fill in.
 */
export function formHtml(fields: FormField[], submitLabel: string, trap = false): string | undefined {
  const rows = fields.map(row).join("") + (trap ? trapRow : "");
  return safeForm(
    `<form class="svc-lead-form">${rows}<button type="submit">${escapeHtml(submitLabel)}</button></form>`,
  );
}

/** HTML with form elements only; undefined over 12 KB. */
export function safeForm(html: string): string | undefined {
  // Oversized input is refused before it is parsed.
  if (Buffer.byteLength(html) > MAX_FORM_BYTES) return undefined;
  const safe = sanitize(html, allowed);
  return Buffer.byteLength(safe) > MAX_FORM_BYTES ? undefined : safe;
}

function row(field: FormField): string {
  const mark = field.required ? ' <span class="svc-required" aria-hidden="true">*</span>' : "";
  return `<div class="svc-field"><label for="${inputId(field.key)}">${escapeHtml(field.label)}${mark}</label>${control(field)}</div>`;
}

const trapRow = `<div class="svc-trap" aria-hidden="true"><label for="${inputId("website")}">Leave this empty</label><input id="${inputId("website")}" name="website" type="text" tabindex="-1" autocomplete="off" /></div>`;

function control(field: FormField): string {
  const common = `id="${inputId(field.key)}" name="${escapeHtml(field.key)}"${field.required ? " required" : ""}`;
  const limit = `maxlength="${MAX_LENGTHS[field.type]}"`;
  if (field.type === "textarea") return `<textarea ${common} ${limit} rows="3"></textarea>`;
  if (field.type === "select")
    return `<select ${common}>${['<option value=""></option>', ...(field.options ?? []).map(option)].join("")}</select>`;
  return `<input ${common} type="${field.type}" ${limit} autocomplete="${completions[field.key] ?? "off"}" />`;
}

function option(text: string): string {
  return `<option>${escapeHtml(text)}</option>`;
}

/** Prefixed, so that no key becomes a property of the frame's window. */
function inputId(key: string): string {
  return `svc-field-${key}`;
}
