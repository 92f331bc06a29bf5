const UNREAD: ReadonlySet<string> = new Set(
  (
    "script style template noscript iframe object embed svg math canvas audio video select datalist textarea button label " +
    "head title noembed noframes del s strike"
  ).split(" "),
);
const UNSEEN =
  /^(?:display:none|visibility:(?:hidden|collapse)|content-visibility:hidden|(?:opacity|font-size):[0.]+[a-z%]*)(?:!important)?$/;

/** True if readers see the text of an element: no script, form control or hidden part of the page. */
export function isSeen(element: Element): boolean {
  const name = element.localName;
  if (isUnread(element) || element.hasAttribute("hidden") || (name === "dialog" && !element.hasAttribute("open")))
    return false;
  if (element.getAttribute("aria-hidden") === "true") return false;
  const style = element.getAttribute("style");
  return style === null || !isUnseen(style);
}

/** A button that is a heading, or in one, opens what it names. */
function isUnread({ localName, parentElement }: Element): boolean {
  return UNREAD.has(localName) && !(localName === "button" && /^h[1-6]$/.test(parentElement?.localName ?? ""));
}

function isUnseen(style: string): boolean {
  const declarations = withoutComments(style).toLowerCase().replace(/\s+/g, "").split(";");
  return declarations.some((declaration) => UNSEEN.test(declaration));
}

function withoutComments(style: string): string {
  const [first = "", ...others] = style.split("/*");
  return first + others.map((part) => (part.includes("*/") ? part.slice(part.indexOf("*/") + 2) : "")).join("");
}
