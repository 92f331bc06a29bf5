import { Buffer } from "node:buffer";
import { Parser } from "htmlparser2";
import { largestContent } from "../../schemas/pages.ts";
import type { InputError } from "../../schemas/errors.ts";
import { Fail, invalid } from "../errors.ts";

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
const rawText = new Set(["style", "title", "textarea", "xmp", "noembed", "noframes", "plaintext", "noscript"]);
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
  const faults = new Set<string>();
  const foreign: string[] = [];
  const parser = new Parser(
    {
      onopentag(element, attributes) {
        if (refusedElements.has(element)) faults.add(`<${element}> is not allowed`);
        if (foreign.length > 0 && rawText.has(element))
          faults.add(`<${element}> inside <${foreign[0]}> is not allowed`);
        if (element === "svg" || element === "math") foreign.push(element);
        for (const [attribute, value] of Object.entries(attributes)) checkAttribute(faults, attribute, value);
      },
      onclosetag(element) {
        if (element === "svg" || element === "math") foreign.pop();
      },
      onprocessinginstruction(instruction) {
        if (/^!doctype/i.test(instruction)) faults.add("a doctype is not allowed");
      },
    },
    { decodeEntities: true, lowerCaseTags: true, lowerCaseAttributeNames: true },
  );
  parser.end(html);
  for (const [, name = ""] of withoutComments(html).matchAll(/<\/(html|head|body)(?=[\s/>])/gi))
    faults.add(`</${name.toLowerCase()}> is not allowed`);
  return [...faults];
}

/** The parser says nothing of end tags without a start; in comments they are text. */
function withoutComments(html: string): string {
  return html.replace(/<!--[\s\S]*?(?:-->|$)/g, "");
}

function checkAttribute(faults: Set<string>, attribute: string, value: string): void {
  if (/^on/.test(attribute)) faults.add(`the attribute ${attribute} is not allowed`);
  if (attribute === "srcdoc") faults.add("the attribute srcdoc is not allowed");
  if (!addressAttributes.has(attribute)) return;
  if (/^(javascript|vbscript):/i.test(bare(value))) faults.add(`a script address in ${attribute} is not allowed`);
}

/** Browsers skip white space and control characters in an address's scheme. */
function bare(value: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
  return value.replace(/[\u0000-\u0020\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202f\ufeff]/g, "");
}
