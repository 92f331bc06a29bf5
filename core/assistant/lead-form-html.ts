import { Buffer } from "node:buffer";
import sanitize from "sanitize-html";
import type { FormField } from "../../schemas/assistant.ts";
import { escapeHtml } from "../platform/words.ts";
import { isNative, leadFields } from "./lead-fields.ts";

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

/** The valid fields of a proposal and their form; without the generated fields if they would make it too large. */
export function leadForm(proposed: unknown, submitLabel: string): { fields: FormField[]; html: string } {
  const fields = leadFields(proposed);
  const html = formHtml(fields, submitLabel);
  if (html !== undefined) return { fields, html };
  const fewer = fields.filter(({ key }) => isNative(key));
  return { fields: fewer, html: formHtml(fewer, submitLabel) as string };
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
