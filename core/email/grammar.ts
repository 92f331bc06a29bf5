import { Buffer } from "node:buffer";
import { clip } from "../platform/characters.ts";
import { Fail, invalid } from "../platform/errors.ts";
import { escapeHtml } from "../platform/escaping.ts";
import { faultAt } from "../platform/source-position.ts";
import { type HtmlContext, hasSafeScheme, htmlContexts } from "./html-contexts.ts";

/** The context of a placeholder, which decides how its value is escaped: `header` and `plain` as they are, others as HTML. */
type PlaceholderContext = "header" | "plain" | HtmlContext;

/** Contexts whose values are percent-encoded. */
const ENCODED: readonly PlaceholderContext[] = ["after host", "path", "query", "mailbox"];

/** A parsed template: literal text and placeholders in order. */
export type Pieces = (string | { name: string; context: PlaceholderContext })[];

type Field = "subject" | "html" | "text";

/** Most characters of one rendered field. */
const MAX_RENDERED_LENGTH = 1_048_576;
/** Longest header value (RFC 5322, section 2.1.1). */
const MAX_HEADER_LENGTH = 998;

/** Parses a subject or a text body; `template_invalid` with the position of any malformed `{{`. */
export function parsePlain(field: "subject" | "text", source: string): Pieces {
  return piecesOf(source, placeholdersIn(field, source), () => (field === "subject" ? "header" : "plain"));
}

/**
 * Parses an HTML body as browsers do. Placeholders may be in text and in quoted attribute values. `template_invalid` with the position of
 * any other placeholder, of an unfinished construct, and of elements nested too deep.
 */
export function parseHtml(source: string): Pieces {
  const found = placeholdersIn("html", source);
  const contexts = htmlContexts(source, found, (at, why) => {
    throw malformed("html", source, { at, why });
  });
  return piecesOf(source, found, (start) => contexts.get(start) as HtmlContext);
}

/**
 * The pieces of a text that is derived from an HTML body: only its placeholders are placeholders, everything else is literal. Those in a part
 * of an address stay encoded.
 */
export function deriveText(html: Pieces, textOf: (html: string) => string): Pieces {
  const marks = html.map((piece) => {
    if (typeof piece === "string") return piece;
    return ENCODED.includes(piece.context) ? `{{${piece.context} ${piece.name}}}` : `{{${piece.name}}}`;
  });
  const known = new Map(html.map((piece, at) => [marks[at], piece]));
  const parts = textOf(marks.join("")).split(/(\{\{[A-Za-z0-9_. -]+\}\})/);
  return parts.map((part) => {
    const piece = known.get(part);
    return typeof piece !== "object" ? part : ENCODED.includes(piece.context) ? piece : { ...piece, context: "plain" };
  });
}

/** Names of a template's variables. */
export function namesIn(pieces: Pieces): string[] {
  return [...new Set(pieces.flatMap((piece) => (typeof piece === "string" ? [] : [piece.name])))];
}

/**
 * Renders a template in one pass: placeholders in values are not expanded. Absent values are empty, and those in a subject become one line.
 * `invalid_request` for a value that its context forbids, and as soon as the result is too long.
 */
export function render(pieces: Pieces, variables: Readonly<Record<string, string>>): string {
  let text = "";
  for (const piece of pieces) {
    text += typeof piece === "string" ? piece : written(piece.name, piece.context, variables);
    if (text.length > MAX_RENDERED_LENGTH)
      throw invalid("/variables", `make the body longer than ${MAX_RENDERED_LENGTH} characters`);
  }
  return text;
}

/** Characters that no header value may contain, so that it can't add headers. */
const NO_LINE = /[\p{Cc}\u2028\u2029]+/gu;

/** `invalid_request` for a value that would not be in the subject as it is. */
export function mustFitSubject(subject: Pieces, variables: Readonly<Record<string, string>>): void {
  for (const name of namesIn(subject)) {
    const value = variables[name] ?? "";
    if (value.search(NO_LINE) !== -1)
      throw invalid(`/variables/${name}`, "must not contain control characters: it is used in the subject");
    if (value.length > MAX_HEADER_LENGTH)
      throw invalid(`/variables/${name}`, `is longer than ${MAX_HEADER_LENGTH} characters, too long for the subject`);
  }
}

/** A placeholder in a source; offsets are in UTF-16 units. */
interface Placeholder {
  name: string;
  start: number;
  end: number;
}

function placeholdersIn(field: Field, source: string): Placeholder[] {
  const found = source.matchAll(/\{\{(?:([A-Za-z0-9_.-]{1,64})\}\})?/g);
  return Array.from(found, ({ 0: whole, 1: name, index: start }) => {
    const why = "{{ starts nothing but {{name}}, with a name of A-Z a-z 0-9 _ . -";
    if (name === undefined) throw malformed(field, source, { at: start, why });
    return { name, start, end: start + whole.length };
  });
}

function piecesOf(source: string, found: Placeholder[], contextOf: (start: number) => PlaceholderContext): Pieces {
  const ends = [0, ...found.map(({ end }) => end)];
  const pieces = found.flatMap(
    ({ name, start }, at): Pieces => [source.slice(ends[at], start), { name, context: contextOf(start) }],
  );
  return [...pieces, source.slice(ends.at(-1))].filter((piece) => piece !== "");
}

function malformed(field: Field, source: string, { at, why }: { at: number; why: string }): Fail {
  const { coordinates, message } = faultAt(source, at, why);
  return new Fail("template_invalid", { errors: [{ path: `/${field}`, message }], more: { field, ...coordinates } });
}

/** The value of a variable in its context; only the template's own variables count, not inherited ones. */
function written(name: string, context: PlaceholderContext, variables: Readonly<Record<string, string>>): string {
  const value = Object.hasOwn(variables, name) ? (variables[name] as string) : "";
  if (context === "plain") return value;
  if (context === "header") return clip(value.replace(NO_LINE, " "), MAX_HEADER_LENGTH);
  // Texts are longer than addresses, and encoding one would take a hundred times as long as escaping it.
  return escapeHtml(context === "html" ? value : addressPart(name, context, value));
}

/** A value as a URL or a part of one. It can't change the host that the template's own text names. */
function addressPart(name: string, context: Exclude<HtmlContext, "html">, value: string): string {
  if (context === "query") return encoded(value);
  if (context === "mailbox") return encoded(value).replaceAll("%40", "@").replaceAll("%2B", "+");
  const path = encoded(value).replaceAll("%2F", "/");
  if (context === "path") return path;
  if (context === "after host") return /^\/|^$/.test(path) ? path : `/${path}`;
  if (context === "host" && !/^[\p{L}\p{N}.-]*$/u.test(value))
    throw invalid(`/variables/${name}`, "is not part of a host name");
  if (context === "address" && !hasSafeScheme(value))
    throw invalid(`/variables/${name}`, "is not an address of http, https, mailto or tel");
  return value;
}

/** Percent-encoded UTF-8 (RFC 3986, section 2.1), also the one sign that HTML would escape; a lone surrogate becomes U+FFFD. */
function encoded(value: string): string {
  return encodeURIComponent(Buffer.from(value).toString()).replaceAll("'", "%27");
}
