import { Buffer } from "node:buffer";
import { largestContent } from "../../schemas/pages.ts";
import type { InputError } from "../../schemas/errors.ts";
import { Fail, invalid } from "../platform/errors.ts";
import { readTags, type TagReader } from "./tags.ts";

const refusedElements = new Set([
  "html",
  "head",
  "body",
  "script",
  "iframe",
  "object",
  "embed",
  "base",
  "meta",
  "link",
  "frame",
  "frameset",
  "applet",
]);
/** Elements of the shell that a fragment would end. */
const shell = new Set(["html", "head", "body"]);
const addressAttributes = new Set([
  "href",
  "src",
  "action",
  "formaction",
  "xlink:href",
  "poster",
  "background",
  "data",
  "cite",
  "ping",
  "srcset",
]);
/** Elements by which SVG moves other attributes, and the attributes that hold the values. */
const animations = new Set(["animate", "set", "animatetransform", "animatemotion", "animatecolor"]);
const animated = new Set(["to", "from", "by", "values"]);
/** Elements whose content isn't read as HTML. Old browsers ignore them in a list of options, new ones don't. */
const otherwiseRead = new Set([
  "style",
  "title",
  "textarea",
  "xmp",
  "noembed",
  "noframes",
  "plaintext",
  "noscript",
  "svg",
  "math",
]);
/** Most faults that one answer names. */
const mostFaults = 10;

/**
 * Checks an HTML fragment by parsing it: `invalid_page_content` names each element, handler attribute and `javascript:` address
 * that a page may not hold. The fragment itself is kept as sent.
 */
export function checkContent(name: "content" | "teaser", html: string): void {
  if (Buffer.byteLength(html) > largestContent) throw invalid(`/${name}`, `is longer than ${largestContent} bytes`);
  const faults = faultsOf(html);
  if (faults.length === 0) return;
  const listed = faults.slice(0, mostFaults).map((message): InputError => ({ path: `/${name}`, message }));
  throw new Fail("invalid_page_content", { detail: `${name}: ${faults[0]}.`, errors: listed });
}

function faultsOf(html: string): string[] {
  const faults = new Faults();
  readTags(html, faults);
  return [...faults.found];
}

/** What is wrong with the tags of a fragment, each fault once. */
class Faults implements TagReader {
  readonly found = new Set<string>();

  opened(element: string, attributes: readonly { name: string; value: string }[], inSelect: boolean): void {
    if (refusedElements.has(element)) this.found.add(`<${element}> is not allowed`);
    if (inSelect && otherwiseRead.has(element)) this.found.add(`<${element}> inside <select> is not allowed`);
    for (const { name, value } of attributes) this.#attribute(element, name, value);
  }

  closed(element: string): void {
    if (shell.has(element)) this.found.add(`</${element}> is not allowed`);
  }

  doctype(): void {
    this.found.add("a doctype is not allowed");
  }

  tangled(): void {
    this.found.add("unclosed elements are not allowed in such numbers");
  }

  #attribute(element: string, name: string, value: string): void {
    if (/^on/.test(name)) this.found.add(`the attribute ${name} is not allowed`);
    if (name === "srcdoc") this.found.add("the attribute srcdoc is not allowed");
    if (runs(element, name, value)) this.found.add(`a script address in ${name} is not allowed`);
  }
}

function runs(element: string, attribute: string, value: string): boolean {
  if (animations.has(element) && animated.has(attribute)) return value.split(";").some(isScript);
  return addressAttributes.has(attribute) && isScript(value);
}

function isScript(address: string): boolean {
  return /^(javascript|vbscript):/i.test(bare(address));
}

/** Browsers skip white space and control characters in an address's scheme. */
function bare(value: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
  return value.replace(/[\u0000-\u0020\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202f\ufeff]/g, "");
}
