import { addressAttributes, animations, type HtmlListener, HtmlReader, type StartTag } from "../platform/html.ts";

/**
 * The context of a placeholder in HTML: `html` in text and most attributes, a whole `address`, or a part of one: its `host`, right
 * `after host`, its `path` or `query`, or the `mailbox` or number of a mailto or tel address.
 */
export type HtmlContext = "html" | "address" | "host" | "after host" | "path" | "query" | "mailbox";

/** Most elements of a body: its text part is derived on the event loop. */
const MAX_ELEMENTS = 10_000;

/** Most placeholders of a tag: the attributes around each are read on the event loop too. */
const MAX_IN_TAG = 100;

/** Rejects a template with a reason and the offset of the fault. It throws. */
type Refuse = (at: number, why: string) => never;

/**
 * The context of each placeholder, by its start offset, in a body that is parsed as browsers do. Rejects a placeholder whose value could
 * become markup, run as a script, or change the target of a link; a body that ends inside a construct; and nesting over 100.
 */
export function htmlContexts(
  source: string,
  found: readonly { start: number }[],
  refuse: Refuse,
): Map<number, HtmlContext> {
  const contexts = new Map<number, HtmlContext>();
  const quoted: number[] = [];
  const reader = new HtmlReader(tagListener(source, { contexts, quoted }, refuse), { maxElements: MAX_ELEMENTS });
  for (const [at, { start }] of found.entries()) {
    reader.read(source.slice(found[at - 1]?.start, start));
    if (reader.context === "text") contexts.set(start, "html");
    else if (quoted.length === MAX_IN_TAG) refuse(start, `a tag has at most ${MAX_IN_TAG} placeholders`);
    else if (reader.context === "quoted value") quoted.push(start);
    else if (reader.context === "raw text") refuse(start, notAllowedIn(`<${reader.openElement}>`));
    else refuse(start, reasonAgainst(source.slice(Math.max(start - 40, 0), start)));
  }
  reader.read(source.slice(found.at(-1)?.start));
  reader.finish();
  return contexts;
}

/** Where a last line of an HTML body belongs: before `</body>`, else at the end. */
export function lastLineAt(source: string): number {
  let end = source.length;
  const endTag = (name: string, at: number): void => {
    if (name === "body") end = at;
  };
  new HtmlReader({ endTag }, { maxElements: MAX_ELEMENTS }).read(source);
  return end;
}

/** Moves the placeholders in `quoted`, which are in attribute values of the current tag, to `contexts` as soon as the tag is complete. */
function tagListener(
  source: string,
  { contexts, quoted }: { contexts: Map<number, HtmlContext>; quoted: number[] },
  refuse: Refuse,
): HtmlListener {
  return {
    startTag({ name, attributes, at: tagAt }) {
      // Whether it counts depends on the text before it.
      if (name === "frameset") refuse(tagAt, "<frameset> is not allowed");
      for (const at of quoted.splice(0)) {
        const attribute = attributes.find(({ start, end }) => start <= at && at < end);
        if (attribute === undefined) refuse(at, notAllowedIn("a repeated attribute"));
        else
          contexts.set(
            at,
            contextInAttribute(source, { ...attribute, element: name, at }, (why) => refuse(at, why)),
          );
      }
    },
    endTag() {
      for (const at of quoted) refuse(at, notAllowedIn("an end tag"));
    },
    refused: (why, at) => refuse(at, why),
  };
}

/** Attributes whose value is neither text nor a single URL. */
const unsafe = new Set(["style", "srcset", "imagesrcset", "srcdoc"]);

type Attribute = StartTag["attributes"][number] & { element: string; at: number };

function contextInAttribute(
  source: string,
  { element, name, start, end, at }: Attribute,
  refuse: (why: string) => never,
): HtmlContext {
  const isUnsafe = name.startsWith("on") || unsafe.has(name) || (element === "meta" && name === "content");
  if (isUnsafe || animations.has(element)) refuse(notAllowedIn(`the attribute ${name} of <${element}>`));
  if (!addressAttributes.has(name)) return "html";
  // Between the quotes.
  const value = source.slice(start, end).search(/["']/) + start + 1;
  return contextInAddress(source.slice(value, at), source.slice(at, end - 1), refuse);
}

function notAllowedIn(where: string): string {
  return `a placeholder can't stand in ${where}`;
}

function reasonAgainst(before: string): string {
  if (/<\/?$/.test(before)) return "a placeholder can't stand right after < or </; write &lt; for the character";
  if (/&[#a-z0-9]*$/i.test(before)) return "a placeholder can't stand right after &; write &amp; for the character";
  return notAllowedIn("a comment, a tag name or an unquoted attribute");
}

/** The context of a placeholder in a URL, given the text before it and the text from it on. */
function contextInAddress(before: string, from: string, refuse: (why: string) => never): HtmlContext {
  const head = asBrowsersRead(before);
  // Read where it decides only: a tag may have a hundred placeholders before a long text.
  const after = () => asBrowsersRead(from.slice(from.indexOf("}}") + 2).replace(/\{\{.*?\}\}/g, "x"));
  if (/^[^?#]*&/.test(head)) refuse("a placeholder can't follow & in the path of an address; write %26");
  if (head === "" && /^[a-z0-9+.-]*(:|&(?!amp;))/i.test(after()))
    refuse("the scheme of an address can't come from a value");
  if (head === "") return "address";
  if (!hasSafeScheme(head)) refuse("the address before the placeholder is not one of http, https, mailto or tel");
  if (/[?#]/.test(head) || head === "/") return "query";
  if (/^(mailto|tel):/i.test(head)) return "mailbox";
  const [, host] = /^(?:https?:\/*|\/\/+)([^/]*)$/i.exec(head) ?? [];
  if (host === undefined) return "path";
  return /[\p{L}\p{N}]$/u.test(host) && !/^[^/?#]/.test(after()) ? "after host" : "host";
}

/** Browsers drop control characters and spaces around a URL, and read `\\` as `/`. */
function asBrowsersRead(address: string): string {
  return address.replace(/[\p{Cc}\s]/gu, "").replaceAll("\\", "/");
}

const safeSchemes = ["http", "https", "mailto", "tel"];

/** True unless the text has a scheme that links must not use. Browsers ignore spaces and control characters before and in a scheme. */
export function hasSafeScheme(text: string): boolean {
  const [, scheme] = /^([a-z][a-z0-9+.-]*):/i.exec(asBrowsersRead(text)) ?? [];
  return scheme === undefined || safeSchemes.includes(scheme.toLowerCase());
}
