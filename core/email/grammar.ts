import { Buffer } from "node:buffer";
import { QuoteType, Tokenizer } from "htmlparser2";
import { Fail, invalid } from "../platform/errors.ts";

/**
 * Where a placeholder stands, which decides how its value is written: `header` and `plain` as it is, `text` and `attribute` with HTML
 * escapes, `address` as a whole URL, `path` and `query` as a part of one.
 */
export type Place = "header" | "plain" | "text" | "attribute" | "address" | "path" | "query";

/** A parsed template: literal text and placeholders in their order. */
export type Pieces = (string | { name: string; place: Place })[];

type Field = "subject" | "html" | "text";

/** Most characters that one rendered field may have. */
const longestRendered = 1_048_576;
/** Longest header value (RFC 5322, 2.1.1). */
const longestHeader = 998;
const placeholder = /\{\{([A-Za-z0-9_.-]{1,64})\}\}/y;

/** Parses a subject or a text body; `template_invalid` with the position of anything else that starts with `{{`. */
export function parsePlain(field: "subject" | "text", source: string): Pieces {
  return parse(field, source, () => (field === "subject" ? "header" : "plain"));
}

/** Parses an HTML body; a placeholder may stand in text and in quoted attribute values, elsewhere it is `template_invalid`. */
export function parseHtml(source: string): Pieces {
  const regions = regionsOf(source);
  let at = 0;
  return parse("html", source, (position) => {
    while ((regions[at]?.end ?? Number.POSITIVE_INFINITY) <= position) at++;
    const region = regions[at];
    if (region === undefined || region.start > position)
      return "a placeholder is not allowed in a comment, a tag name or an unquoted attribute";
    return region.attribute === undefined
      ? placeInElement(region)
      : placeInAttribute(region.attribute, source.slice(region.start, position));
  });
}

/** Reads a text leniently: only the placeholders named are ones, all else is literal. */
export function parseKnown(source: string, names: ReadonlySet<string>): Pieces {
  const parts = source.split(/\{\{([A-Za-z0-9_.-]{1,64})\}\}/);
  return parts.map((part, at) =>
    at % 2 === 0 ? part : names.has(part) ? { name: part, place: "plain" } : `{{${part}}}`,
  );
}

/** Names of the variables that a template asks for. */
export function namesIn(pieces: Pieces): string[] {
  return [...new Set(pieces.flatMap((piece) => (typeof piece === "string" ? [] : [piece.name])))];
}

/** Writes the values at their places, once: what a value holds is never read as a placeholder. Absent values are empty. */
export function render(pieces: Pieces, variables: Readonly<Record<string, string>>): string {
  const written = pieces.map((piece) =>
    typeof piece === "string" ? piece : write(piece.name, piece.place, given(variables, piece.name)),
  );
  mustFit(written.reduce((sum, part) => sum + part.length, 0));
  return written.join("");
}

/** Checks the values without writing them: those that can't stand where they are asked for are `invalid_request`. */
export function checkValues(pieces: Pieces, variables: Readonly<Record<string, string>>): void {
  let length = 0;
  for (const piece of pieces) {
    if (typeof piece === "string") length += piece.length;
    else if (piece.place === "header" || piece.place === "address")
      length += write(piece.name, piece.place, given(variables, piece.name)).length;
    else length += given(variables, piece.name).length;
  }
  mustFit(length);
}

/** The value of a variable, by own property alone. */
export function hasValue(variables: Readonly<Record<string, string>>, name: string): boolean {
  return Object.hasOwn(variables, name);
}

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Text as HTML text or as a quoted attribute value. */
function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => entities[letter] as string);
}

function parse(field: Field, source: string, placeAt: (position: number) => string): Pieces {
  const pieces: Pieces = [];
  let done = 0;
  for (let at = source.indexOf("{{"); at !== -1; at = source.indexOf("{{", done)) {
    placeholder.lastIndex = at;
    const [whole, name] = placeholder.exec(source) ?? [];
    if (whole === undefined || name === undefined)
      throw malformed(
        field,
        source,
        at,
        "{{ must start a placeholder {{name}} of at most 64 letters, digits, _, . and -",
      );
    const place = placeAt(at);
    if (!isPlace(place)) throw malformed(field, source, at, place);
    pieces.push(source.slice(done, at), { name, place });
    done = at + whole.length;
  }
  pieces.push(source.slice(done));
  return pieces.filter((piece) => piece !== "");
}

const places: readonly string[] = [
  "header",
  "plain",
  "text",
  "attribute",
  "address",
  "path",
  "query",
] satisfies Place[];

function isPlace(word: string): word is Place {
  return places.includes(word);
}

function malformed(field: Field, source: string, position: number, why: string): Fail {
  const before = source.slice(0, position).split("\n");
  const [line, column] = [before.length, (before.at(-1) as string).length + 1];
  return new Fail("template_invalid", {
    errors: [{ path: `/${field}`, message: `at position ${position} (line ${line}, column ${column}): ${why}` }],
    more: { field, position, line, column },
  });
}

interface Region {
  start: number;
  end: number;
  /** The raw text element that holds this text, if one does. */
  element?: string;
  attribute?: string;
}

const rawElements = new Set(["script", "style", "iframe", "noembed", "noframes", "xmp", "plaintext"]);

/** The stretches of an HTML source that are text or quoted attribute values, in their order. */
function regionsOf(source: string): Region[] {
  const regions: Region[] = [];
  let element = "";
  let attribute = "";
  let value: number | undefined;
  const ignore = () => {};
  const tokenizer = new Tokenizer(
    { xmlMode: false, decodeEntities: false },
    {
      onopentagname: (start, end) => {
        element = source.slice(start, end).toLowerCase();
      },
      onclosetag: (start, end) => {
        if (source.slice(start, end).toLowerCase() === element) element = "";
      },
      onattribname: (start, end) => {
        attribute = source.slice(start, end).toLowerCase();
        value = undefined;
      },
      onattribdata: (start) => {
        value ??= start;
      },
      onattribend: (quote, end) => {
        const quoted = quote === QuoteType.Single || quote === QuoteType.Double;
        if (value !== undefined && quoted) regions.push({ start: value, end, attribute });
      },
      ontext: (start, end) => regions.push({ start, end, element }),
      onattribentity: ignore,
      oncdata: ignore,
      oncomment: ignore,
      ondeclaration: ignore,
      onend: ignore,
      onopentagend: ignore,
      onprocessinginstruction: ignore,
      onselfclosingtag: ignore,
      ontextentity: ignore,
    },
  );
  tokenizer.write(source);
  tokenizer.end();
  return regions;
}

function placeInElement({ element = "" }: Region): string {
  return rawElements.has(element) ? `a placeholder is not allowed in <${element}>` : "text";
}

const addressAttributes = new Set([
  "href",
  "src",
  "action",
  "formaction",
  "background",
  "cite",
  "poster",
  "data",
  "longdesc",
  "xlink:href",
]);

/** The place after `before`, the part of the attribute's value that precedes the placeholder. */
function placeInAttribute(attribute: string, before: string): string {
  if (attribute.startsWith("on") || attribute === "style" || attribute === "srcset")
    return `a placeholder is not allowed in the attribute ${attribute}`;
  if (!addressAttributes.has(attribute)) return "attribute";
  if (before.trim() === "") return "address";
  if (!hasSafeScheme(before)) return "the address before the placeholder is not one of http, https, mailto or tel";
  return /[?#]/.test(before) ? "query" : "path";
}

function mustFit(length: number): void {
  if (length > longestRendered) throw invalid("/variables", `make the body longer than ${longestRendered} characters`);
}

function write(name: string, place: Place, value: string): string {
  if (place === "plain") return value;
  if (place === "header") return header(name, value);
  if (place === "address" && !hasSafeScheme(value))
    throw invalid(`/variables/${name}`, "must be an http, https, mailto or tel address");
  return escapeHtml(place === "path" || place === "query" ? part(place, value) : value);
}

function given(variables: Readonly<Record<string, string>>, name: string): string {
  return hasValue(variables, name) ? (variables[name] as string) : "";
}

/** A value that goes into a header: one line, or it could add headers. */
function header(name: string, value: string): string {
  if (/[\p{Cc}\u2028\u2029]/u.test(value))
    throw invalid(`/variables/${name}`, "must not contain control characters: it is used in the subject");
  if (value.length > longestHeader)
    throw invalid(`/variables/${name}`, `is longer than ${longestHeader} characters, too long for the subject`);
  return value;
}

/** A value as part of an address; through UTF-8, where a lone surrogate becomes U+FFFD. */
function part(place: "path" | "query", value: string): string {
  const encoded = encodeURIComponent(Buffer.from(value).toString()).replaceAll("%40", "@");
  return place === "path" ? encoded.replaceAll("%2F", "/") : encoded;
}

const safeSchemes = ["http", "https", "mailto", "tel"];

/** True unless the text names a scheme that isn't for links. Browsers skip spaces and control characters before and in a scheme. */
function hasSafeScheme(text: string): boolean {
  const [, scheme] = /^([a-z][a-z0-9+.-]*):/i.exec(text.replace(/[\p{Cc}\s]/gu, "")) ?? [];
  return scheme === undefined || safeSchemes.includes(scheme.toLowerCase());
}
