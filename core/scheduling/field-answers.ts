import type { InputError } from "../../schemas/errors.ts";
import type { BookingField } from "../../schemas/scheduling.ts";
import { isAddress } from "../platform/address.ts";
import { isBlank, isLonger, withoutTabs } from "../platform/characters.ts";
import { Fail } from "../platform/errors.ts";
import { isPhoneNumber, typedDigits, typedText } from "../platform/typed.ts";

/** Most characters of an answer, in a line and in a text area. */
const MAX_LINE_LENGTH = 1000;
const MAX_TEXT_LENGTH = 10_000;

/** Returns the fault of an answer, or undefined. */
type Check = (answer: string, field: BookingField) => string | undefined;

/**
 * A visitor's answers as text by field id, without blank ones and without answers to unknown questions (docs/reference.md, "Bookings").
 * `invalid_booking_answers` names all missing and malformed ones.
 */
export function checkAnswers(
  fields: readonly BookingField[],
  answers: Record<string, unknown>,
): Record<string, string> {
  const read = fields.map((field) => ({ field, ...readAnswer(field, answers) }));
  const errors = read.flatMap(({ field, fault }): InputError[] =>
    fault === undefined ? [] : [{ path: `/answers/${field.id}`, message: fault }],
  );
  if (errors.length > 0) throw new Fail("invalid_booking_answers", { errors });
  return Object.fromEntries(read.flatMap(({ field, text }) => (text === "" ? [] : [[field.id, text]])));
}

function readAnswer(
  field: BookingField,
  answers: Record<string, unknown>,
): { text: string; fault?: string | undefined } {
  const given = Object.hasOwn(answers, field.id) ? answers[field.id] : undefined;
  if (given !== undefined && given !== null && !["string", "number", "boolean"].includes(typeof given))
    return { text: "", fault: "is not text" };
  const typed = String(given ?? "");
  const text = isBlank(typed) ? "" : (readings[field.type]?.(typed) ?? typed.trim());
  const isMissing = text === "" || (field.type === "checkbox" && !isTrue(text));
  if (isMissing && field.required) return { text: "", fault: "is required" };
  return { text, fault: text === "" ? undefined : checks[field.type](text, field) };
}

/** How the text of an answer is read, if more than its outer spaces changes. */
const readings: Partial<Record<BookingField["type"], (text: string) => string>> = {
  text: (text) => withoutTabs(text).trim(),
  email: typedText,
  phone: (text) => typedDigits(withoutTabs(text)),
  number: typedDigits,
};

function line(text: string): string | undefined {
  if (/\p{Cc}/u.test(text)) return "is not one line";
  return isLonger(text, MAX_LINE_LENGTH) ? `is longer than ${MAX_LINE_LENGTH} characters` : undefined;
}

/** A check of one line, which is short before anything else is read from it. */
function lineOf(fits: (text: string) => boolean, fault: string): Check {
  return (text) => line(text) ?? (fits(text) ? undefined : fault);
}

const area: Check = (text) =>
  isLonger(text, MAX_TEXT_LENGTH) ? `is longer than ${MAX_TEXT_LENGTH} characters` : undefined;
/** Spaces around an option don't count, as around every answer. */
const choice: Check = (text, { options = [] }) =>
  options.some((option) => option.trim() === text) ? undefined : "is not one of the options";
const decision: Check = (text) => (isTrue(text) || isFalse(text) ? undefined : "is neither true nor false");

const checks: Record<BookingField["type"], Check> = {
  text: line,
  textarea: area,
  text_area: area,
  "text-area": area,
  email: (text) => (isAddress(text) ? undefined : "must be an email address"),
  phone: lineOf(isPhoneNumber, "is not a phone number"),
  number: lineOf((text) => /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d{1,3})?$/i.test(text), "is not a number"),
  select: choice,
  radio: choice,
  checkbox: decision,
  boolean: decision,
  url: lineOf(isWebAddress, "is not an http(s) address"),
};

/** True if a checkbox or a decision was answered with yes. */
export function isTrue(text: string): boolean {
  return /^(true|yes|on|1)$/i.test(text);
}

function isFalse(text: string): boolean {
  return /^(false|no|off|0)$/i.test(text);
}

function isWebAddress(text: string): boolean {
  return /^https?:\/\/[^\s]+$/i.test(text) && URL.canParse(text);
}
