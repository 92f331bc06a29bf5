import { addressAttributes, animations, type HtmlListener, HtmlReader, type StartTag } from "../platform/html.ts";

/**
 * The context of a placeholder in HTML: `text`, an `attribute`, a whole `address`, or a part of one: its `host`, right `after host`, its
 * `path` or `query`, or the `mailbox` or number of a mailto or tel address.
 */
export type HtmlContext = "text" | "attribute" | "address" | "host" | "after host" | "path" | "query" | "mailbox";

/** Most elements of a body: its text part is derived on the event loop. */
const maxElements = 10_000;

/** Rejects a template with a reason and the offset of the fault. It throws. */
type Refuse = (at: number, why: string) => never;

/**
 * The context of each placeholder, by its start offset, in a body that is parsed as browsers do. Rejects a placeholder whose value could
 * become markup, run as a script, or change the target of a link; a body that ends inside a construct; and nesting over 100.
 */
export function htmlPlaces(
  source: string,
  found: readonly { start: number }[],
  refuse: Refuse,
): Map<number, HtmlContext> {
  const finder = new PlaceFinder(source, refuse);
  const reader = new HtmlReader(finder, { maxElements });
  let done = 0;
  for (const { start } of found) {
    reader.read(source.slice(done, start));
    done = start;
    finder.enter(start, reader);
  }
  reader.read(source.slice(done));
  reader.finish();
  return finder.places;
}

/** Where a last line of an HTML body belongs: before `</body>`, else at the end. */
export function lastLineAt(source: string): number {
  let end = source.length;
  const endTag = (name: string, at: number): void => {
    if (name === "body") end = at;
  };
  const reader = new HtmlReader({ endTag }, { maxElements });
  reader.read(source);
  return end;
}

class PlaceFinder implements HtmlListener {
  readonly places = new Map<number, HtmlContext>();
  readonly #source: string;
  readonly #refuse: Refuse;
  /** Start offsets of placeholders in the attribute values of the current tag. */
  #quoted: number[] = [];

  constructor(source: string, refuse: Refuse) {
    this.#source = source;
    this.#refuse = refuse;
  }

  /** Records the context of the placeholder at the reader's position. */
  enter(at: number, reader: HtmlReader): void {
    if (reader.place === "text") this.places.set(at, "text");
    else if (reader.place === "quoted value") this.#quoted.push(at);
    else
      this.#refuse(
        at,
        reader.place === "raw text" ? notAllowedIn(`<${reader.openElement}>`) : reasonAgainst(this.#source, at),
      );
  }

  startTag({ name, attributes, at: tagAt }: StartTag): void {
    // Whether it counts depends on the text before it.
    if (name === "frameset") this.#refuse(tagAt, "<frameset> is not allowed");
    for (const at of this.#quoted) {
      const attribute = attributes.find(({ start, end }) => start <= at && at < end);
      if (attribute === undefined) this.#refuse(at, notAllowedIn("a repeated attribute"));
      else this.places.set(at, this.#placeInAttribute(name, attribute, at));
    }
    this.#quoted = [];
  }

  endTag(): void {
    for (const at of this.#quoted) this.#refuse(at, notAllowedIn("an end tag"));
  }

  refused(why: string, at: number): void {
    this.#refuse(at, why);
  }

  #placeInAttribute(element: string, { name, start, end }: StartTag["attributes"][number], at: number): HtmlContext {
    const isUnsafe = name.startsWith("on") || unsafe.has(name) || (element === "meta" && name === "content");
    if (isUnsafe || animations.has(element)) this.#refuse(at, notAllowedIn(`the attribute ${name} of <${element}>`));
    if (!addressAttributes.has(name)) return "attribute";
    // Between the quotes.
    const value = this.#source.slice(start, end).search(/["']/) + start + 1;
    const place = placeInAddress(this.#source.slice(value, at), this.#source.slice(at, end - 1));
    return isPlace(place) ? place : this.#refuse(at, place);
  }
}

/** Attributes whose value is neither text nor a single URL. */
const unsafe = new Set(["style", "srcset", "imagesrcset", "srcdoc"]);

function notAllowedIn(where: string): string {
  return `a placeholder can't stand in ${where}`;
}

function reasonAgainst(source: string, at: number): string {
  const before = source.slice(Math.max(at - 40, 0), at);
  if (/<\/?$/.test(before)) return "a placeholder can't stand right after < or </; write &lt; for the character";
  if (/&[#a-z0-9]*$/i.test(before)) return "a placeholder can't stand right after &; write &amp; for the character";
  return notAllowedIn("a comment, a tag name or an unquoted attribute");
}

const addressPlaces = ["address", "host", "after host", "path", "query", "mailbox"] as const;

function isPlace(place: string): place is (typeof addressPlaces)[number] {
  return (addressPlaces as readonly string[]).includes(place);
}

/** The context of a placeholder in a URL, given the text before and after it, or the reason to reject it. */
function placeInAddress(before: string, from: string): string {
  const head = asBrowsersRead(before);
  const after = asBrowsersRead(from.slice(from.indexOf("}}") + 2).replace(/\{\{.*?\}\}/g, "x"));
  if (/^[^?#]*&/.test(head)) return "a placeholder can't follow & in the path of an address; write %26";
  if (head === "")
    return /^[a-z0-9+.-]*(:|&(?!amp;))/i.test(after) ? "the scheme of an address can't come from a value" : "address";
  if (!hasSafeScheme(head)) return "the address before the placeholder is not one of http, https, mailto or tel";
  if (/[?#]/.test(head) || head === "/") return "query";
  if (/^(mailto|tel):/i.test(head)) return "mailbox";
  const [, host] = /^(?:https?:\/*|\/\/+)([^/]*)$/i.exec(head) ?? [];
  if (host === undefined) return "path";
  return /[\p{L}\p{N}]$/u.test(host) && !/^[^/?#]/.test(after) ? "after host" : "host";
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
