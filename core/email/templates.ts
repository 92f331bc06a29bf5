import { convert } from "html-to-text";
import { parse, serialize } from "parse5";
import {
  type newTemplate,
  type Purpose,
  type previewAnswer,
  template as shape,
  type Template,
  type TemplateContent,
  type templateChange,
  type templatePreview,
} from "../../schemas/email.ts";
import { wordsOf } from "../../schemas/languages.ts";
import { type Infer, type Input, onlyOf } from "../../schemas/schema.ts";
import { epochOf } from "../account/face.ts";
import { isBlank } from "../platform/characters.ts";
import { Fail, invalid } from "../platform/errors.ts";
import { MAX_NESTING } from "../platform/html.ts";
import { languageOf } from "../platform/languages.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import type { Listed, ListInput } from "../store/paging.ts";
import { type Companion, conflict, parseStored, Records } from "../store/records.ts";
import { versionedCache } from "../store/versioned-cache.ts";
import { deriveText, mustFitSubject, namesIn, type Pieces, parseHtml, parsePlain, render } from "./grammar.ts";
import { lastLineAt } from "./html-contexts.ts";
import { UNSUBSCRIBE_PATH } from "./return-path.ts";

/** The variable that the service fills with the recipient's unsubscribe address. */
export const unsubscribeVariable = "unsubscribeUrl";

type TemplateName = Input<"handle" | "templateId">;
type StoredTemplate = Omit<Template, "handle">;

export const templateRecords = new Records<StoredTemplate>({
  record: keys.template,
  list: keys.templates,
  missing: "email_template_not_found",
});

/** A parsed version of a template, from which messages are rendered. */
interface ParsedTemplate {
  subject: Pieces;
  html: Pieces | null;
  text: Pieces;
  names: string[];
}

export type Rendered = Infer<typeof previewAnswer>;

/** Creates a template; `template_invalid`, `email_template_already_exists`. */
export async function createTemplate(
  runtime: Runtime,
  input: Input<"handle", typeof newTemplate>,
): Promise<{ template: Template }> {
  const { handle, templateId, name } = input;
  const content = contentOf(input, { subject: "", html: null, text: null });
  const at = runtime.now();
  const instant = new Date(at).toISOString();
  const stamps = { activeVersion: 1, status: "ACTIVE", createdAt: instant, updatedAt: instant } as const;
  const value: StoredTemplate = { templateId, name, ...content, ...stamps };
  const companion = contentCompanion(handle, value);
  if (!(await templateRecords.create(runtime, handle, { id: templateId, value, at, companion })))
    throw new Fail("email_template_already_exists");
  return { template: { ...value, handle } };
}

/**
 * Changes the given fields of a template. Other content becomes a new version; earlier versions stay readable. `email_template_not_found`,
 * `template_invalid`, `version_conflict` if `activeVersion` is not the expected one.
 */
export async function updateTemplate(
  runtime: Runtime,
  input: Input<"handle" | "templateId", typeof templateChange>,
): Promise<{ template: Template }> {
  const { handle, templateId, expectedVersion } = input;
  const change = (current: StoredTemplate): StoredTemplate => {
    if ((expectedVersion ?? current.activeVersion) !== current.activeVersion) throw conflict(current.activeVersion);
    const content = contentOf(input, current);
    const activeVersion = sameContent(content, current) ? current.activeVersion : current.activeVersion + 1;
    const { name = current.name, status = current.status } = input;
    return { ...current, name, status, ...content, activeVersion, updatedAt: new Date(runtime.now()).toISOString() };
  };
  const companion = (next: StoredTemplate): Companion => contentCompanion(handle, next);
  const changed = await templateRecords.change(runtime, handle, { id: templateId, change, companion });
  if (changed === undefined) throw new Fail("email_template_not_found");
  return { template: onlyOf(shape, { ...changed, handle }) };
}

/** One template in its active version. */
export async function readTemplate(runtime: Runtime, input: TemplateName): Promise<{ template: Template }> {
  const { handle, templateId } = input;
  const stored = await templateRecords.read(runtime, handle, templateId);
  return { template: onlyOf(shape, { ...stored, handle }) };
}

/** One template with the content of an earlier version. */
export async function readTemplateVersion(
  runtime: Runtime,
  input: TemplateName & { version: string },
): Promise<{ template: Template }> {
  const { template } = await readTemplate(runtime, input);
  const version = Number(input.version);
  const key = keys.templateContent(input.handle, input.templateId, version);
  const json = await runtime.redis.get(key);
  if (json === null || input.version !== String(version)) throw new Fail("email_template_not_found");
  return { template: { ...template, ...parseStored<TemplateContent>(key, json), activeVersion: version } };
}

/** The handle's templates, newest first. */
export async function listTemplates(runtime: Runtime, input: ListInput): Promise<Listed<"templates", Template>> {
  const { records, nextCursor } = await templateRecords.list(runtime, input);
  const { handle } = input;
  return { templates: records.map((stored) => onlyOf(shape, { ...stored, handle })), nextCursor };
}

/** The rendered mail for a client's variables, or for those of a rule, with a sample unsubscribe address; `template_variables_missing`. */
export async function previewTemplate(
  runtime: Runtime,
  input: Input<"handle" | "templateId", typeof templatePreview> & { purpose?: Purpose },
): Promise<Rendered> {
  const { template } = await readTemplate(runtime, input);
  const parsed = parseTemplate(template, input.purpose);
  const variables = { [unsubscribeVariable]: `${runtime.env.BASE_URL}${UNSUBSCRIBE_PATH}/sample`, ...input.variables };
  mustHaveAll(parsed, variables);
  if (input.purpose === undefined) mustFitSubject(parsed.subject, variables);
  return renderTemplate(parsed, variables);
}

/** The part of a template that a send needs. */
export type TemplateState = Pick<Template, "templateId" | "status" | "activeVersion">;

/** Bytes of parsed templates that a process caches; one takes about three times its JSON. */
const MAX_PARSED_BYTES = 32 * 2 ** 20;
const cacheOf = versionedCache<ParsedTemplate & { bytes: number }>(MAX_PARSED_BYTES, ({ bytes }) => bytes);

/** A version of a template, parsed for a purpose. Versions are immutable, so a process reads and parses each once. */
export async function templateVersion(
  { redis }: Runtime,
  at: TemplateName & { version: number; purpose: Purpose },
): Promise<ParsedTemplate> {
  const key = keys.templateContent(at.handle, at.templateId, at.version);
  return cacheOf(redis).get(`${key} ${at.purpose}`, await epochOf(redis, at.handle), async () => {
    const json = await redis.get(key);
    if (json === null) throw new Fail("email_template_not_found");
    return { ...parseTemplate(parseStored<TemplateContent>(key, json), at.purpose), bytes: 3 * json.length };
  });
}

/**
 * Parses a content; `template_invalid` with the position of the fault. For a purpose that recipients can unsubscribe from, a last line with
 * the unsubscribe address is added if the content has none; that variable is then filled in by the service.
 */
export function parseTemplate(given: TemplateContent, purpose?: Purpose): ParsedTemplate {
  const content = purpose === "PRODUCT_NOTIFICATION" ? withUnsubscribeLine(given) : given;
  const subject = parsePlain("subject", content.subject);
  const html = content.html === null ? null : parseHtml(content.html);
  // A derived text is derived once and not from each mail.
  const text = content.text === null ? deriveText(html ?? [], textOf) : parsePlain("text", content.text);
  const names = new Set([subject, html ?? [], text].flatMap(namesIn));
  if (purpose === "PRODUCT_NOTIFICATION") names.delete(unsubscribeVariable);
  return { subject, html, text, names: [...names] };
}

/** A content with a last line for the unsubscribe address, in the mail's language, in an HTML or text that has none. */
function withUnsubscribeLine({ subject, html, text }: TemplateContent): TemplateContent {
  const asked = `{{${unsubscribeVariable}}}`;
  const word = wordsOf(languageOf(`${subject}\n${text ?? textOf(html ?? "")}`)).unsubscribe.action;
  const link = `<p style="margin-top:2em;font-size:small"><a href="${asked}">${word}</a></p>`;
  const end = lastLineAt(html ?? "");
  return {
    subject,
    html: !html || html.includes(asked) ? html : `${html.slice(0, end)}\n${link}\n${html.slice(end)}`,
    text: !text || text.includes(asked) ? text : `${text.trimEnd()}\n\n${word}: ${asked}\n`,
  };
}

/** `template_variables_missing` with every variable of the template that has no value. */
export function mustHaveAll({ names }: ParsedTemplate, variables: Readonly<Record<string, string>>): void {
  const missing = names.filter((name) => !Object.hasOwn(variables, name));
  if (missing.length === 0) return;
  throw new Fail("template_variables_missing", {
    detail: `These variables have no value: ${missing.join(", ")}.`,
    errors: missing.map((name) => ({ path: `/variables/${name}`, message: "is required" })),
  });
}

/** Renders a parsed content with values; `invalid_request` for a value that its context forbids. */
export function renderTemplate(
  { subject, html, text }: ParsedTemplate,
  variables: Readonly<Record<string, string>>,
): Rendered {
  return {
    subject: render(subject, variables),
    html: html === null ? null : render(html, variables),
    text: render(text, variables),
  };
}

/** The text part of an HTML mail. The HTML is nested as browsers do it first, or the converter would nest what they don't. */
function textOf(html: string): string {
  return convert(serialize(parse(html)), textOptions);
}

const textOptions = {
  wordwrap: false as const,
  // The converter also nests the raw text of an iframe. The elements of a body are nested 100 deep at most, within those of the document.
  limits: { maxDepth: MAX_NESTING + 50, ellipsis: "" },
  selectors: [
    { selector: "a", options: { hideLinkHrefIfSameAsText: true } },
    { selector: "img", format: "skip" },
    // The case stays: a heading may contain a placeholder.
    ...["h1", "h2", "h3", "h4", "h5", "h6"].map((selector) => ({ selector, options: { uppercase: false } })),
    { selector: "table", options: { uppercaseHeaderCells: false } },
  ],
};

function contentOf(
  input: { [K in keyof TemplateContent]?: TemplateContent[K] | undefined },
  current: TemplateContent,
): TemplateContent {
  const { subject = current.subject, html = current.html, text = current.text } = input;
  const content = { subject, html: isBlank(html ?? "") ? null : html, text: isBlank(text ?? "") ? null : text };
  if (content.html === null && content.text === null) throw invalid("/html", "or text is required");
  parseTemplate(content);
  return content;
}

function sameContent(one: TemplateContent, other: TemplateContent): boolean {
  return one.subject === other.subject && one.html === other.html && one.text === other.text;
}

/** The content of the active version has its own key, which later versions don't overwrite. */
function contentCompanion(
  handle: string,
  { templateId, activeVersion, subject, html, text }: StoredTemplate,
): Companion {
  const key = keys.templateContent(handle, templateId, activeVersion);
  return { key, value: JSON.stringify({ subject, html, text }) };
}
