// Over 300 lines: one reader of one document, whose methods share what is open: elements, line, list and table.

import { Parser } from "htmlparser2";
import { clip, oneLine, visibleCharacters } from "../../platform/characters.ts";
import { BOLD_LEVEL, headingName, isQuestion, isTitle, Outline } from "../../platform/outline.ts";
import {
  type Block,
  type Cell,
  gridOf,
  type Link,
  labelWithContact,
  MAX_DEPTH,
  MAX_HEADING_LENGTH,
  MAX_LINKS,
  type PlacedLink,
  type PublicText,
} from "./blocks.ts";
import { BLOCKS, type Element, isBold, isNaming, isSeen, levelOf, QUESTION_LEVEL } from "./elements.ts";

/** The parser takes quadratic time for deep nesting; text after so many start tags, or `<`, is ignored. */
const MAX_ELEMENTS = 20_000;
const MAX_MARKS = 60_000;
const MAX_FRAGMENT_LENGTH = 512 * 1024;
const MAX_LABEL_LENGTH = 120;
const MAX_SPAN = 50;
/** Most characters that the spans of a page's tables repeat; beyond, a cell stands once. */
const MAX_REPEATED = 1_000_000;
const TAIL_LENGTH = 4;
const LISTS = names("ul ol dl");
/** Their headings name nothing after them. */
const ASIDES = names("aside form");
const SHIFTED = names("sub sup");
const MENUS = names("nav footer");
/** Blocks that a heading or a term may contain. */
const PHRASES = names("div p");
/** An address or a telephone number: a link that says it is no button. */
const CONTACT = /@|(?:\d[\s()/.-]*){6}/;

/**
 * Reads an HTML fragment as a visitor sees it: no comments, hidden elements, scripts, form controls or characters without
 * a glyph. `base` resolves relative links; without it only absolute ones count. Reading is not sanitising: nothing of
 * this is HTML again.
 */
export function readHtml(html: string, base?: string): PublicText {
  const reader = new HtmlReader(base);
  // In its page, an end tag follows the fragment, and ends what a cut has left unfinished.
  new Parser(reader).end(`${readable(html)}</body>`);
  return reader.result();
}

function readable(html: string): string {
  const fragment = html.slice(0, MAX_FRAGMENT_LENGTH);
  let elements = 0;
  let marks = 0;
  for (const { 0: mark, index } of fragment.matchAll(/<[a-z]?/gi)) {
    if (mark.length > 1) elements++;
    if (++marks > MAX_MARKS || elements > MAX_ELEMENTS) return fragment.slice(0, index);
  }
  return fragment;
}

/** Collects blocks under headings as the parser names tags and texts. */
class HtmlReader {
  readonly #base: string | undefined;
  /** What the addresses of its own parts begin with. */
  readonly #own: string | undefined;
  /** The open elements, and how many of them are hidden or in a hidden one. */
  readonly #open: Element[] = [];
  #unseen = 0;
  /** The last part of the page was an element. */
  #isAfterElement = false;
  readonly #outline = new Outline<{ name: string; text: string }>(({ text }) =>
    this.#push({ kind: "text", text, links: [] }),
  );
  readonly #blocks: Block[] = [];
  #tables = 0;
  /** Lists outside others, the open lists, and their open items. */
  #lists = 0;
  #openLists = 0;
  #openItems = 0;
  #title = "";
  readonly #links: Link[] = [];
  readonly #seen = new Set<string>();
  #line = "";
  /** Its last characters. */
  #tail = "";
  /** The next text begins an element right after another. */
  #isBeside = false;
  #lineLinks: PlacedLink[] = [];
  #linked = 0;
  /** The line without the addresses and numbers behind its links, and how many those are. */
  #shown = "";
  #contacts = 0;
  /** Open elements of bold text, and its length in the line. */
  #bold = 0;
  #bolded = 0;
  /** Open elements of raised text, and of navigation. */
  #raised = 0;
  #menus = 0;
  /** Open elements that contain the title too: any other has a footer of its own. */
  #outer = 0;
  /** What ends each open aside. */
  readonly #asides: (() => void)[] = [];
  #isItem = false;
  /** A heading or a term is open. */
  #isNaming = false;
  #label: string | undefined;
  /** The term of the next line, and of each definition until the next term. */
  #term = "";
  #defined = "";
  /** Rows of the open table; a table in a cell is text of that cell. */
  #rows: Cell[][] | undefined;
  #depth = 0;
  /** Characters that spans repeat. */
  #repeated = 0;

  constructor(base?: string) {
    this.#base = base;
    this.#own = absoluteAddress("#", base);
  }

  onopentag(name: string, attributes: Element["attributes"]): void {
    const element = { name, attributes, parent: this.#open.at(-1)?.name };
    this.#open.push(element);
    if (this.#unseen > 0 || !isSeen(element)) this.#unseen++;
    else this.#enter(element);
    this.#isAfterElement = false;
  }

  ontext(text: string): void {
    if (this.#unseen === 0) this.#add(text);
    this.#isAfterElement = false;
  }

  oncomment(): void {
    this.#isAfterElement = false;
  }

  onclosetag(): void {
    const element = this.#open.pop();
    // The end of the text closes an unfinished tag too, which has opened nothing.
    if (element === undefined) return;
    this.#outer = Math.min(this.#outer, this.#open.length);
    if (this.#unseen > 0) this.#unseen--;
    else this.#leave(element);
    this.#isAfterElement = true;
  }

  result(): PublicText {
    this.#leaveHeadings(0);
    return { title: this.#title, blocks: this.#blocks, links: this.#links };
  }

  #enter(element: Element): void {
    const { name } = element;
    if (this.#isAfterElement && !SHIFTED.has(name)) this.#isBeside = true;
    if (name === "a") this.#label = "";
    if (isBold(element)) this.#bold++;
    if (name === "sup") this.#raised++;
    if (MENUS.has(name)) this.#menus++;
    if (BLOCKS.has(name) && !PHRASES.has(name)) this.#isNaming = false;
    if (name === "br" || BLOCKS.has(name)) this.#endLine();
    if (isNaming(element)) this.#isNaming = true;
    if (name === "table" && this.#depth++ === 0) this.#rows = [];
    if (this.#rows) {
      if (name === "tr" && this.#depth === 1) this.#rows.push([]);
      return;
    }
    if (name === "li") {
      this.#isItem = true;
      this.#openItems++;
    }
    if (name === "dd") this.#term = this.#defined;
    if (ASIDES.has(name)) this.#asides.push(this.#outline.aside());
    // The footer of a page is below its title alone.
    if (name === "footer" && this.#open.length - 1 <= this.#outer) this.#outline.enter(2, { name: "", text: "" });
    if (LISTS.has(name) && this.#openLists++ === 0) this.#lists++;
  }

  #leave(element: Element): void {
    const { name } = element;
    if (name === "a") this.#addLink(element);
    if (isBold(element)) this.#bold--;
    if (name === "sup") this.#raised--;
    if (isNaming(element)) this.#isNaming = false;
    if (this.#rows) this.#leaveInTable(element);
    else if (levelOf(element) > 0) this.#addHeading(levelOf(element));
    else if (name === "dt") this.#leaveTerm();
    else if (BLOCKS.has(name)) this.#endLine();
    if (name === "dd") this.#term = "";
    if (name === "dl") this.#defined = "";
    if (MENUS.has(name)) this.#menus--;
    if (!this.#rows && LISTS.has(name)) this.#openLists--;
    // An item without a text makes none of what follows its list.
    if (!this.#rows && name === "li" && --this.#openItems === 0) this.#isItem = false;
    if (!this.#rows && ASIDES.has(name)) this.#asides.pop()?.();
    if (!this.#rows && (name === "details" || name === "dl")) this.#leaveHeadings(QUESTION_LEVEL);
  }

  #leaveInTable({ name, attributes }: Element): void {
    if (name === "table" && --this.#depth === 0) this.#endTable();
    if (this.#depth !== 1) return;
    if (name === "caption") this.#addCaption(this.#takeLine());
    if (name !== "td" && name !== "th") return;
    const isHead = name === "th" || this.#open.at(-2)?.name === "thead" || this.#isBold;
    const text = this.#takeLine();
    const links = this.#lineLinks.splice(0);
    this.#rows!.at(-1)?.push({ text, isHead, links, ...this.#spansOf(attributes, text) });
  }

  #spansOf(attributes: Element["attributes"], text: string): Pick<Cell, "across" | "down"> {
    const [across = 1, down = 1] = ["colspan", "rowspan"].map((span) =>
      Math.min(MAX_SPAN, Math.max(1, Number.parseInt(attributes[span] ?? "1", 10) || 1)),
    );
    this.#repeated += (across * down - 1) * text.length;
    return this.#repeated > MAX_REPEATED ? { across: 1, down: 1 } : { across, down };
  }

  #addCaption(text: string): void {
    if (text !== "") this.#push({ kind: "text", text, links: [], isCaption: true });
  }

  #endTable(): void {
    const rows = gridOf(this.#rows!);
    this.#rows = undefined;
    this.#lineLinks = [];
    const table = ++this.#tables;
    for (const { cells, columns, links } of rows) {
      const text = cells.filter((cell) => cell !== "").join("\t");
      const ofTable = cells.length > 1 ? { cells, table, ...(columns ? { columns } : {}) } : {};
      if (text !== "")
        this.#push({ kind: cells.length > 1 ? "row" : "text", text, links: linksIn(text, links), ...ofTable });
    }
  }

  #add(text: string): void {
    if (this.#isBeside && isApart(`${this.#tail}\n${text.slice(0, 3)}`)) this.#append(" ");
    this.#isBeside = false;
    const spaced = (this.#raised > 0 ? raised(text, /\d$/.test(this.#tail)) : text).replace(/\s+/g, " ");
    this.#append(/^$| $/.test(this.#tail) ? spaced.trimStart() : spaced);
    this.#shown += spaced;
    if (this.#label !== undefined) this.#label += spaced;
    if (this.#bold > 0) this.#bolded += lengthOf(spaced);
  }

  /** Each entity of a text comes by itself: to look at the whole line each time would take quadratic time. */
  #append(text: string): void {
    this.#line += text;
    this.#tail = (this.#tail + text.slice(-TAIL_LENGTH)).slice(-TAIL_LENGTH);
  }

  /** Ends a line; within a cell, a heading or a term, a block only separates words. */
  #endLine(): void {
    if (this.#rows || this.#isNaming) {
      if (/[^ ]$/.test(this.#tail)) this.#append(" ");
      return;
    }
    const [isItem, term, links, linked] = [this.#isItem, this.#term, this.#lineLinks, this.#linked];
    const [shown, contacts] = [visibleCharacters(this.#shown), this.#contacts];
    const named = oneLine(this.#line);
    const isName = isQuestion(named) || (this.#isBold && isTitle(named));
    if (isName && !isItem && term === "" && links.length === 0) {
      this.#addHeading(BOLD_LEVEL);
      return;
    }
    const text = this.#takeLine();
    if (text === "") return;
    this.#isItem = false;
    this.#lineLinks = [];
    this.#term = "";
    const isContact = CONTACT.test(shown) || links.length === contacts;
    const isLinked = links.length > 0 && linked >= lengthOf(shown) && !isContact;
    const isOwn = links.every(({ href }) => this.#own !== undefined && href.startsWith(this.#own));
    const buttons = isLinked && (!isItem || this.#menus > 0 || isOwn);
    if (term !== "") this.#push({ kind: "row", text: `${term}\t${text}`, cells: [term, text], links });
    else if (isItem)
      this.#push({ kind: "item", text, links, buttons, depth: Math.min(MAX_DEPTH, this.#openItems - 1) });
    else this.#push({ kind: "text", text, links, buttons });
  }

  get #isBold(): boolean {
    return this.#bolded > 0 && this.#bolded >= lengthOf(this.#line);
  }

  #takeLine(): string {
    const text = visibleCharacters(this.#line).trim();
    this.#line = "";
    this.#tail = "";
    this.#linked = 0;
    this.#shown = "";
    this.#contacts = 0;
    this.#bolded = 0;
    return text;
  }

  /** Ends the term of a definition: a question becomes a heading, any other term, or several, the first cell of a row. */
  #leaveTerm(): void {
    const term = this.#takeLine();
    if (!term.endsWith("?")) {
      this.#term = [this.#term, term].filter((one) => one !== "").join(", ");
      this.#defined = this.#term;
      return;
    }
    this.#defined = "";
    this.#append(term);
    this.#addHeading(QUESTION_LEVEL);
  }

  #addHeading(level: number): void {
    const name = headingName(this.#takeLine());
    if (name === "" && level === QUESTION_LEVEL) return;
    this.#isItem = false;
    this.#lineLinks = [];
    const isTitle = level === 1 && this.#title === "";
    if (isTitle) {
      this.#title = name;
      this.#outer = this.#open.length;
    }
    this.#outline.enter(level, { name: isTitle ? "" : clip(name, MAX_HEADING_LENGTH), text: name });
  }

  #leaveHeadings(level: number): void {
    this.#endLine();
    this.#outline.leave(level);
  }

  #push(block: Pick<Block, "kind" | "text" | "links"> & Partial<Block>): void {
    const place = { headings: this.#outline.use(), section: this.#outline.section, list: this.#lists, start: 0 };
    this.#blocks.push({ ...place, buttons: false, ...block });
  }

  #addLink({ attributes }: Element): void {
    const shown = this.#label ?? "";
    const label = clip(oneLine(shown || attributes["aria-label"] || ""), MAX_LABEL_LENGTH);
    this.#linked += lengthOf(shown);
    this.#label = undefined;
    const href = address(attributes.href, this.#base);
    if (label === "" || href === undefined) return;
    this.#addContact({ label, href }, shown);
    if (this.#lineLinks.length < MAX_LINKS) this.#lineLinks.push({ label, href, end: this.#line.length });
    if (this.#seen.has(`${href} ${label}`) || this.#links.length >= MAX_LINKS) return;
    this.#seen.add(`${href} ${label}`);
    this.#links.push({ label, href });
  }

  /** The mail address or telephone number behind a link stands after what is shown of it, or after its name, if that is a picture. */
  #addContact(link: Link, shown: string): void {
    const told = labelWithContact(link);
    if (told === link.label) return;
    const added = (shown.trim() === "" ? told : told.slice(link.label.length)).trim();
    this.#append(/^$| $/.test(this.#tail) ? added : ` ${added}`);
    this.#contacts++;
  }
}

/** The links of a row whose labels are in its text, in the order of the text. */
function linksIn(text: string, links: readonly Link[]): PlacedLink[] {
  const found = links.flatMap((link) => {
    const told = labelWithContact(link);
    const at = text.indexOf(told);
    return at < 0 ? [] : [{ ...link, end: at + told.length }];
  });
  return found.sort((one, other) => one.end - other.end);
}

function address(href: string | undefined, base?: string): string | undefined {
  return /^(?:mailto|tel):[^\s<>()]+$/i.test(href?.trim() ?? "") ? href!.trim() : absoluteAddress(href, base);
}

/** The absolute http(s) address of a link; undefined for other schemes and for credentials in the address. */
export function absoluteAddress(href: string | undefined, base?: string): string | undefined {
  if (!href || !URL.canParse(href, base)) return undefined;
  const { protocol, username, password, href: absolute } = new URL(href, base);
  return /^https?:$/.test(protocol) && username === "" && password === "" ? absolute : undefined;
}

/** Style sets elements apart, as "Haircut" and "£25"; a letter, a sign or lower case on both sides may be one word with what it touches. */
function isApart(pair: string): boolean {
  return /[\p{L}\p{N}]{2}\n[\p{L}\p{N}\p{Sc}]./u.test(pair) && !/\p{Ll}\n\p{Ll}/u.test(pair);
}

/** Raised digits are no part of the figure before them: "48 €¹" has a footnote, "9.30" its minutes or pence. The "th" of "15th" is. */
function raised(text: string, isAfterDigit: boolean): string {
  if (!/\d/.test(text)) return text;
  if (isAfterDigit && /^\s*\d\d\s*$/.test(text)) return `.${text.trim()}`;
  return (isAfterDigit ? " " : "") + text.replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)]!);
}

/** Without white space. */
function lengthOf(text: string): number {
  return text.replace(/\s/g, "").length;
}

function names(list: string): ReadonlySet<string> {
  return new Set(list.split(" "));
}
