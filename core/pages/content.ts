import { Buffer } from "node:buffer";
import { MAX_CONTENT_BYTES } from "../../schemas/pages.ts";
import { Fail, invalid } from "../platform/errors.ts";
import { addressAttributes, animations, type HtmlListener, HtmlReader, type StartTag } from "../platform/html.ts";
import { faultAt } from "../platform/source-position.ts";

const refusedElements = new Set(
  "html head body script iframe object embed base meta link frame frameset applet".split(" "),
);
/** Elements of the shell that a fragment could end. */
const shell = new Set(["html", "head", "body"]);
/** Attributes with the values of an SVG animation. */
const animated = new Set(["to", "from", "by", "values"]);
/** Elements whose content isn't parsed as HTML. Old browsers ignore them inside a select, new ones don't. */
const otherwiseRead = new Set("style title textarea xmp noembed noframes plaintext noscript svg math".split(" "));
const MAX_ELEMENTS = 200_000;
const MAX_FAULTS = 10;

type Fragment = "content" | "teaser";

/** The markup before a fragment in the page; a line break and the end tags follow it. */
const before: Record<Fragment, string> = {
  content: "<!doctype html><html><head></head><body>\n",
  teaser: '<!doctype html><html><head></head><body>\n<main class="svc-preview">',
};

/**
 * Checks an HTML fragment by parsing it in the context of its page. `invalid_page_content` names the first place of each forbidden element,
 * handler attribute and kind of script URL, and of what would swallow or end the surrounding page, ten at most; `invalid_request` for too
 * many bytes. The fragment itself is stored as sent.
 */
export function checkContent(name: Fragment, source: string): void {
  if (Buffer.byteLength(source) > MAX_CONTENT_BYTES)
    throw invalid(`/${name}`, `is longer than ${MAX_CONTENT_BYTES} bytes`);
  const faults = faultsOf(name, source);
  if (faults.length === 0) return;
  const found = faults.slice(0, MAX_FAULTS).map(([why, at]) => faultAt(source, at, why));
  const errors = found.map(({ message }) => ({ path: `/${name}`, message }));
  const more = { field: name, ...found[0]?.coordinates };
  throw new Fail("invalid_page_content", { detail: `${name}, ${found[0]?.message}.`, errors, more });
}

/** With scripting `noscript` contains text, without it elements: a fragment with one is parsed in both ways. */
function faultsOf(name: Fragment, source: string): [why: string, at: number][] {
  const faults = new Faults();
  for (const scripting of /<noscript/i.test(source) ? [true, false] : [true]) {
    const reader = new HtmlReader(faults, { before: before[name], scripting, maxElements: MAX_ELEMENTS });
    reader.read(source);
    reader.finish();
  }
  return [...faults.found].sort(([, one], [, other]) => one - other);
}

/** The faults of a fragment with their positions, without duplicates. */
class Faults implements HtmlListener {
  readonly found = new Map<string, number>();

  startTag({ name, attributes, at, inSelect }: StartTag): void {
    if (refusedElements.has(name)) this.refused(`<${name}> is not allowed`, at);
    if (inSelect && otherwiseRead.has(name)) this.refused(`<${name}> inside <select> is not allowed`, at);
    for (const attribute of attributes) this.#attribute(name, attribute);
  }

  endTag(name: string, at: number): void {
    if (shell.has(name)) this.refused(`</${name}> is not allowed`, at);
  }

  doctype(at: number): void {
    this.refused("a doctype is not allowed", at);
  }

  refused(why: string, at: number): void {
    if (!this.found.has(why)) this.found.set(why, at);
  }

  #attribute(element: string, { name, value, start }: StartTag["attributes"][number]): void {
    if (/^on/.test(name)) this.refused(`the attribute ${name} is not allowed`, start);
    if (runs(element, name, value)) this.refused(`a script address in ${name} is not allowed`, start);
  }
}

function runs(element: string, attribute: string, value: string): boolean {
  if (animations.has(element) && animated.has(attribute)) return value.split(";").some(isScript);
  return addressAttributes.has(attribute) && isScript(value);
}

/** Browsers ignore white space and control characters in a URL's scheme. */
function isScript(address: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
  const bare = address.replace(/[\u0000-\u0020\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202f\ufeff]/g, "");
  return /^(javascript|vbscript):/i.test(bare);
}
