import { parseHTML } from "linkedom";
import { clip, oneLine, visibleCharacters } from "../platform/characters.ts";

/** What a reader sees under one heading. */
export interface Section {
  /** Headings above the text from the outermost, joined by ` › `; without the page's first h1, which is its title. */
  heading: string;
  /** One line a block; list items start with `- `, cells of a row are apart by a tab. */
  text: string;
}

/** A link that a reader sees; `href` is an absolute http or https address. */
export interface Link {
  label: string;
  href: string;
}

/** The public text of an HTML fragment. */
export interface VisibleText {
  /** The first h1; empty without one. */
  title: string;
  sections: Section[];
  links: Link[];
}

interface Parent {
  childNodes: Iterable<Node>;
}

/** The parser takes quadratic time for deep nesting: what comes after so many start tags, or `<` at all, is not read. */
const MAXIMUM_ELEMENTS = 20_000;
const MAXIMUM_MARKS = 60_000;
const FRAGMENT_LENGTH = 512 * 1024;
const HEADING_LENGTH = 200;
const LABEL_LENGTH = 120;
const MAXIMUM_LINKS = 500;
/** Questions of a `details` or a `dl` are headings below h6. */
const QUESTION_LEVEL = 7;

const ELEMENT = 1;
const TEXT = 3;
const UNREAD = names(
  "script style template noscript iframe object embed svg math canvas audio video select datalist textarea button label " +
    "head title noembed noframes",
);
const BLOCKS = names(
  "address article aside blockquote caption center details dialog div dl dt dd fieldset figcaption figure footer form " +
    "h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol p pre section summary table tbody tfoot thead tr ul",
);
const UNSEEN =
  /^(?:display:none|visibility:(?:hidden|collapse)|content-visibility:hidden|(?:opacity|font-size):[0.]+[a-z%]*)(?:!important)?$/;

/**
 * Reads an HTML fragment as a visitor sees it: no comments, hidden elements, scripts, form controls or characters without
 * a glyph. `base` resolves relative links; without it only absolute ones count. Reading is not sanitising: nothing of
 * this is HTML again.
 */
export function visibleText(html: string, base?: string): VisibleText {
  const { document } = parseHTML(`<!doctype html><html><body>${readable(html)}</body></html>`);
  const reader = new Reader(base);
  reader.read(document.documentElement as unknown as Parent);
  return reader.result();
}

function readable(html: string): string {
  const fragment = html.slice(0, FRAGMENT_LENGTH);
  let elements = 0;
  let marks = 0;
  for (const { 0: mark, index } of fragment.matchAll(/<[a-z]?/gi)) {
    if (mark.length > 1) elements++;
    if (++marks > MAXIMUM_MARKS || elements > MAXIMUM_ELEMENTS) return fragment.slice(0, index);
  }
  return fragment;
}

/** Walks the tree without recursion, so that no nesting overflows the stack, and collects lines under headings. */
class Reader {
  private readonly base: string | undefined;
  private title = "";
  private readonly sections: Section[] = [];
  private readonly links: Link[] = [];
  private readonly seen = new Set<string>();
  private readonly path: { level: number; name: string; used: boolean }[] = [];
  private lines: string[] = [];
  private line = "";
  private mark = "";
  private label: string | undefined;

  constructor(base?: string) {
    this.base = base;
  }

  read(root: Parent): void {
    const open: { element: Element | undefined; children: Iterator<Node> }[] = [];
    open.push({ element: undefined, children: root.childNodes[Symbol.iterator]() });
    while (open.length > 0) {
      const { element, children } = open.at(-1)!;
      const next = children.next();
      if (next.done) {
        if (element) this.leave(element);
        open.pop();
      } else if (next.value.nodeType === TEXT) this.add(next.value.nodeValue ?? "");
      else if (next.value.nodeType === ELEMENT && isSeen(next.value as Element)) {
        this.enter(next.value as Element);
        open.push({ element: next.value as Element, children: next.value.childNodes[Symbol.iterator]() });
      }
    }
  }

  result(): VisibleText {
    this.leaveHeadings(0);
    return { title: this.title, sections: this.sections, links: this.links };
  }

  private enter(element: Element): void {
    const name = element.localName;
    if (name === "br") this.endLine();
    if (name === "a") this.label = "";
    if (name === "td" || name === "th") this.addTab();
    if (!BLOCKS.has(name) || (name === "dd" && this.line.endsWith("\t"))) return;
    this.endLine();
    if (name === "li") this.mark = "- ";
    if (levelOf(name) > 0) this.endSection();
  }

  private leave(element: Element): void {
    const name = element.localName;
    if (name === "a") this.addLink(element);
    if (levelOf(name) > 0) this.addHeading(levelOf(name));
    else if (name === "dt") this.leaveTerm();
    else if (BLOCKS.has(name)) this.endLine();
    if (name === "details" || name === "dl") this.leaveHeadings(QUESTION_LEVEL);
  }

  private add(text: string): void {
    const spaced = text.replace(/\s+/g, " ");
    this.line += this.line === "" || /\s$/.test(this.line) ? spaced.trimStart() : spaced;
    if (this.label !== undefined) this.label += spaced;
  }

  private addTab(): void {
    if (this.line.trim() !== "") this.line = `${this.line.trimEnd()}\t`;
  }

  private endLine(): void {
    const line = visibleCharacters(this.line).trim();
    if (line !== "") {
      this.lines.push(this.mark + line);
      this.mark = "";
    }
    this.line = "";
  }

  /** A term of a list of definitions: a question heads its answer, anything else shares a line with it. */
  private leaveTerm(): void {
    if (!this.line.trim().endsWith("?")) {
      this.addTab();
      return;
    }
    const question = this.line;
    this.line = "";
    this.endSection();
    this.line = question;
    this.addHeading(QUESTION_LEVEL);
  }

  /** What was read since the section began is all in one line, since `enter` ended the one before. */
  private addHeading(level: number): void {
    this.endLine();
    const name = clip(this.lines.join(" "), HEADING_LENGTH);
    this.lines = [];
    this.mark = "";
    if (level === 1 && this.title === "") this.title = name;
    else if (name !== "") {
      this.leaveHeadings(level);
      this.path.push({ level, name, used: false });
    }
  }

  /** Leaves the sections from `level` inwards. A heading with nothing below it is itself the text of its section. */
  private leaveHeadings(level: number): void {
    this.endLine();
    this.endSection();
    while ((this.path.at(-1)?.level ?? -1) >= level) {
      const { name, used } = this.path.pop()!;
      if (used) continue;
      this.lines.push(name);
      this.endSection();
    }
  }

  private endSection(): void {
    if (this.lines.length === 0) return;
    for (const above of this.path) above.used = true;
    const heading = this.path.map(({ name }) => name).join(" › ");
    this.sections.push({ heading, text: this.lines.join("\n") });
    this.lines = [];
  }

  private addLink(element: Element): void {
    const label = clip(oneLine(this.label || element.getAttribute("aria-label") || ""), LABEL_LENGTH);
    const href = publicAddress(element.getAttribute("href"), this.base);
    this.label = undefined;
    if (label === "" || href === undefined || this.seen.has(`${href} ${label}`)) return;
    if (this.links.length < MAXIMUM_LINKS) this.links.push({ label, href });
    this.seen.add(`${href} ${label}`);
  }
}

/** The absolute http(s) address of a link without credentials in it; undefined for any other. */
export function publicAddress(href: string | null, base?: string): string | undefined {
  if (!href || !URL.canParse(href, base)) return undefined;
  const { protocol, username, password, href: absolute } = new URL(href, base);
  return /^https?:$/.test(protocol) && username === "" && password === "" ? absolute : undefined;
}

function isSeen(element: Element): boolean {
  const name = element.localName;
  if (UNREAD.has(name) || element.hasAttribute("hidden") || (name === "dialog" && !element.hasAttribute("open")))
    return false;
  if (element.getAttribute("aria-hidden") === "true") return false;
  const style = element.getAttribute("style");
  return style === null || !isUnseen(style);
}

function isUnseen(style: string): boolean {
  const declarations = withoutComments(style).toLowerCase().replace(/\s+/g, "").split(";");
  return declarations.some((declaration) => UNSEEN.test(declaration));
}

function withoutComments(style: string): string {
  const [first = "", ...others] = style.split("/*");
  return first + others.map((part) => (part.includes("*/") ? part.slice(part.indexOf("*/") + 2) : "")).join("");
}

function levelOf(name: string): number {
  if (name === "summary") return QUESTION_LEVEL;
  return /^h[1-6]$/.test(name) ? Number(name[1]) : 0;
}

function names(list: string): ReadonlySet<string> {
  return new Set(list.split(" "));
}
