import { Buffer } from "node:buffer";
import {
  fieldName,
  type Lead,
  leadContext,
  lead as leadShape,
  leadTexts,
  MAX_FIELDS,
  MAX_VALUE_LENGTH,
  newLead,
} from "../../schemas/leads.ts";
import { type Infer, onlyOf, propertiesOf, type Schema } from "../../schemas/schema.ts";
import { isAddress } from "../platform/address.ts";
import { firstCharacters, isLonger } from "../platform/characters.ts";
import { Fail, invalid, pointerTo } from "../platform/errors.ts";
import { ResponseRefused } from "../platform/exchange.ts";
import { parseJson } from "../platform/json.ts";
import { typedText } from "../platform/typed.ts";

const contentNames = [...leadTexts, "email", "leadContext", "tracking", "consent"] as const satisfies (keyof Lead)[];

/** The content of a lead that a repeated capture may change. */
type LeadContent = Pick<Lead, (typeof contentNames)[number] | "fields">;

export type StoredLead = Lead & {
  /** Content that the person verified by a code; only another code changes it. */
  confirmed?: LeadContent | undefined;
  /** The language of the page if the service speaks it, else of the browser (BCP 47). */
  language?: string | undefined;
  /** Later content for the same address that awaits a code. */
  unconfirmed?: LeadContent | undefined;
};

/** The page and the campaign of a lead. */
export type LeadPlace = Pick<Lead, "pageSlug" | "campaignId">;

export type LeadInput = LeadContent & LeadPlace & { language: string | undefined };

/** Maximum length of a text in `tracking`, in characters. */
const MAX_TRACKING_LENGTH = 200;
/** Maximum length of the JSON of a nested object. */
const MAX_PART_LENGTH = 20_000;

/**
 * Parses a visitor's input once, of a filled honeypot its place alone. Unknown keys become custom fields if they have scalars or lists of
 * them (checkboxes with one name); others are ignored. `invalid_request` with the path of a value that can't be stored.
 */
export function readLeadInput(input: Infer<typeof newLead>): LeadInput | LeadPlace {
  const { email, website, ...content } = input;
  const context = decorativePart(content.leadContext);
  const conversation = context ? disclosed(context) : null;
  // The page of the conversation, if the lead names none.
  const pageSlug = (content.pageSlug ?? conversation?.pageSlug) || null;
  const place = { pageSlug, campaignId: content.campaignId ?? null };
  if (isFilled(website)) return place;
  const address = typeof email === "string" ? typedText(email) : "";
  if (!isAddress(address)) throw invalid("/email", "must be an email address");
  const tracking = decorativePart(content.tracking);
  const custom = Object.entries(content).filter(([name, value]) => !ownKeys.has(name) && !isNested(value));
  return {
    email: address,
    ...Object.fromEntries(
      leadTexts.map((name) => [name, name === "message" ? content[name] : onOneLine(content[name])]),
    ),
    fields: customFields([
      ...Object.entries(part(content.fields, "/fields") ?? {}).map(inFields),
      ...custom.map(([name, value]) => ({ path: pointerTo(name), name, value })),
    ]),
    ...place,
    leadContext: conversation,
    tracking: tracking ? (cutTexts(tracking) as Record<string, unknown>) : null,
    consent: content.consent === "" ? null : (content.consent ?? null),
    language: content.visitorLanguage,
  };
}

function isFilled(honeypot: unknown): boolean {
  return typeof honeypot === "string" ? honeypot.trim() !== "" : (honeypot ?? false) !== false;
}

/** A pasted tab or line break becomes a space: subjects of mails contain these texts, and must be one line. */
function onOneLine(text: string | undefined): string | undefined {
  return text?.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim();
}

/** The native keys of a lead with the path's; other keys are custom fields. */
const ownKeys = new Set(["handle", ...Object.keys(newLead.properties ?? {})]);
const inFields = ([name, value]: [string, unknown]) => ({ path: pointerTo("fields", name), name, value });

/** True for a value that can't be a custom field: an object, or a list of anything but scalars. */
function isNested(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return !Array.isArray(value) || value.some((one) => typeof one === "object");
}

/** An object, also as JSON text in a form. */
function part(value: unknown, path: string): Record<string, unknown> | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  const parsed = typeof value === "string" ? parse(value, path) : value;
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) throw invalid(path, "must be an object");
  if (JSON.stringify(parsed).length > MAX_PART_LENGTH) throw invalid(path, "is too large");
  return parsed as Record<string, unknown>;
}

/** The same for optional decoration: undefined if it is no object or too large. */
function decorativePart(value: unknown): Record<string, unknown> | undefined {
  try {
    return part(value, "");
  } catch (error) {
    if (error instanceof Fail) return undefined;
    throw error;
  }
}

/** The value with all its texts shortened, at any depth. */
function cutTexts(value: unknown): unknown {
  if (typeof value === "string") return firstCharacters(value, MAX_TRACKING_LENGTH);
  if (Array.isArray(value)) return value.map(cutTexts);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, cutTexts(one)]));
}

function parse(text: string, path: string): unknown {
  try {
    return parseJson(Buffer.from(text));
  } catch (error) {
    throw invalid(path, error instanceof ResponseRefused ? "is nested too deep" : "must be valid JSON", error);
  }
}

const hasFieldName = new RegExp(`^${fieldName}$`, "u");

function customFields(list: { path: string; name: string; value: unknown }[]): Record<string, string> {
  const entries = list.flatMap(({ path, name, value }) => {
    if (!hasFieldName.test(name)) throw invalid(path, "must be a name of at most 64 letters, digits, _, . and -");
    if (isNested(value)) throw invalid(path, "must be a string, a number, a boolean or a list of them");
    const values = [value ?? []].flat();
    const text = values.join(", ").trim();
    if (isLonger(text, MAX_VALUE_LENGTH)) throw invalid(path, `is longer than ${MAX_VALUE_LENGTH} characters`);
    return values.length === 0 ? [] : [[name, text]];
  });
  const fields: Record<string, string> = Object.fromEntries(entries);
  if (Object.keys(fields).length > MAX_FIELDS) throw invalid("/fields", `has more than ${MAX_FIELDS} custom fields`);
  return fields;
}

/** The parts of a conversation that its shape names, cut to their lengths. */
function disclosed(context: Record<string, unknown>): Lead["leadContext"] {
  const { evidenceTitles: list = {}, ...texts } = propertiesOf(leadContext);
  const cut = (value: unknown, { maxLength }: Schema<unknown>) =>
    typeof value === "string" ? [firstCharacters(value, maxLength as number)] : [];
  const named = Object.entries(texts).flatMap(([name, text]) => cut(context[name], text).map((value) => [name, value]));
  const titles = Array.isArray(context.evidenceTitles) ? context.evidenceTitles : [];
  const evidenceTitles = titles.flatMap((title) => cut(title, list.items as Schema<unknown>));
  return { ...Object.fromEntries(named), evidenceTitles: evidenceTitles.slice(0, list.maxItems as number) };
}

/** Overlays content over earlier content: later values win, absent ones stay. Nothing else of either lead is in the result. */
export function overlaid(earlier: LeadContent | undefined, later: LeadContent): LeadContent {
  const values = contentNames.map((name) => [name, later[name] ?? earlier?.[name] ?? later[name]]);
  return { ...Object.fromEntries(values), fields: mergedFields(earlier?.fields ?? {}, later.fields) };
}

/** The lead after the right code: all its content is verified. */
export function verified(lead: StoredLead, at: string): StoredLead {
  const confirmed = overlaid(lead, lead.unconfirmed ?? lead);
  return { ...lead, ...confirmed, status: "VERIFIED", confirmed, unconfirmed: undefined, updatedAt: at };
}

/** A lead as its owner sees it. */
export function presentLead(stored: StoredLead): Lead {
  return onlyOf(leadShape, stored);
}

/** True while some content awaits verification. */
export function awaitsCode({ status, unconfirmed }: StoredLead): boolean {
  return status === "UNVERIFIED" || unconfirmed !== undefined;
}

/** Custom fields of one person: the later ones, and as many of the newest earlier ones as fit. */
function mergedFields(earlier: Lead["fields"], later: Lead["fields"]): Lead["fields"] {
  const others = Object.entries(earlier).filter(([name]) => !Object.hasOwn(later, name));
  const room = MAX_FIELDS - Object.keys(later).length;
  return { ...Object.fromEntries(others.slice(Math.max(0, others.length - room))), ...later };
}
