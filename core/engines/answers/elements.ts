/** Elements whose text readers don't see. */
export const UNREAD: ReadonlySet<string> = new Set(
  (
    "script style template noscript iframe object embed svg math canvas audio video select datalist textarea button label " +
    "head title noembed noframes del s strike"
  ).split(" "),
);
/** Elements that begin and end a line. */
export const BLOCKS: ReadonlySet<string> = new Set(
  (
    "address article aside blockquote caption center details dialog div dl dt dd fieldset figcaption figure footer form " +
    "h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol p pre section summary table tbody tfoot thead tr td th ul"
  ).split(" "),
);
/** Questions of a `details` or a `dl` are headings below h6. */
export const QUESTION_LEVEL = 7;

const BOLD: ReadonlySet<string> = new Set(["b", "strong"]);
const UNSEEN =
  /^(?:display:none|visibility:(?:hidden|collapse)|content-visibility:hidden|(?:opacity|font-size):[0.]+[a-z%]*)(?:!important)?$/;

/** An element by its name and attributes, in lower case, and the name of the one around it. */
export interface Element {
  name: string;
  attributes: Readonly<Record<string, string>>;
  parent: string | undefined;
}

/** True if readers see the text of an element: no script, form control or hidden part of the page. */
export function isSeen(element: Element): boolean {
  const { name, attributes } = element;
  if (isUnread(element) || "hidden" in attributes || (name === "dialog" && !("open" in attributes))) return false;
  return attributes["aria-hidden"] !== "true" && !isUnseen(attributes.style ?? "");
}

/** A button in a heading or a term opens what it names. */
function isUnread({ name, parent = "" }: Element): boolean {
  return UNREAD.has(name) && !(name === "button" && /^(?:h[1-6]|dt)$/.test(parent));
}

function isUnseen(style: string): boolean {
  const declarations = withoutComments(style).toLowerCase().replace(/\s+/g, "").split(";");
  return declarations.some((declaration) => UNSEEN.test(declaration));
}

function withoutComments(style: string): string {
  const [first = "", ...others] = style.split("/*");
  return first + others.map((part) => (part.includes("*/") ? part.slice(part.indexOf("*/") + 2) : "")).join("");
}

/** True for bold text by its style, which editors write, else by its name: a copied text may stand in a `b` of normal weight. */
export function isBold({ name, attributes }: Element): boolean {
  const [, weight] = /font-weight:\s*(\w+)/i.exec(attributes.style ?? "") ?? [];
  return weight === undefined ? BOLD.has(name) : /^(?:bold|[6-9]00)/i.test(weight);
}

export function isNaming(element: Element): boolean {
  return element.name === "dt" || levelOf(element) > 0;
}

/** A heading within a `summary` is its question. */
export function levelOf({ name, parent }: Element): number {
  if (name === "summary") return QUESTION_LEVEL;
  if (!/^h[1-6]$/.test(name)) return 0;
  return parent === "summary" ? QUESTION_LEVEL : Number(name[1]);
}
