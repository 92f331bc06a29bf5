import { clip, oneLine } from "./characters.ts";
import { BOLD_LEVEL, headingName, isCapitalTitle, isQuestion, isTitle, Outline } from "./outline.ts";
import type { Range } from "./sentences.ts";

/** A part of a document with its marks; a rule is a line without words, a card a part that the caller names. */
export interface MarkdownBlock extends Range {
  kind: "text" | "item" | "table" | "code" | "rule" | "card";
  /** Headings above it, from the outermost. */
  headings: readonly string[];
  /** Number of its section: the consecutive blocks under one heading. */
  section: number;
}

interface Options {
  /** False for plain text, which has no headings. */
  hasHeadings?: boolean;
  /** Ranges that are blocks of their own, in order. */
  cards?: readonly Range[];
}

interface Heading extends Range {
  name: string;
}

/** A line of at least this length without a full stop continues on the next line. */
const WRAPPED_LENGTH = 48;
const MAX_HEADING_LENGTH = 200;

const BOLD = /^ {0,3}(?:(\*\*|__)[^*_]+\1|<(b|strong)>[^<>]+<\/\2>)$/i;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const UNDERLINE = /^ {0,3}(={3,}|-{3,})\s*$/;
const ITEM = /^[ \t]*(?:[-*+•–‣▪◦·][ \t]+|\d{1,3}[.)][ \t]+(?!\d{1,2}\.(?:[ \t]|\d{4})))/;
const MARKS = new RegExp(`${ITEM.source}|^ {0,3}>[ \\t]?|^[ \\t]*`);
const ROW = /^[ \t]*\|.*\|[ \t]*$/;
/** The line below the header of a table, which needs no marks at its ends. */
export const DELIMITER = /^[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+$/;
const RULE = /^[\s|:=_*+-]+$/;
/** The mark of a footnote, as a pattern. */
export const FOOTNOTE_MARK = "\\[\\^[^\\]\\s]{1,40}\\]";
/** Code, which stays, a link to a page or an address, another tag within a line, the mark of a footnote, or a space that breaks no line. */
const INLINE = new RegExp(
  "(?<code>`[^`\\n]*`)|<a\\s[^<>]{0,500}?href=([\"'])(?<href>(?:https?:|mailto:|tel:)[^\"'<>\\s]{1,2000})\\2[^<>]{0,500}>(?<label>[^<>]*)</a>|" +
    "</?(?:a|abbr|b|big|cite|code|em|font|i|img|input|ins|kbd|mark|small|span|strong|su[bp]|time|u)(?![\\w-])[^<>]{0,500}>|" +
    `${FOOTNOTE_MARK}:?|&nbsp;`,
  "gi",
);
const STOP = /[.!?:;…。！？]["'”’»)\]]*$/;
/** Settings before the text, as generators of sites read them (YAML, TOML): a name comes first, no list. */
const FRONT_MATTER =
  /^\ufeff?(---|\+{3})[ \t]*\r?\n(?=(?:(?:#.*)?\r?\n)*(?:[\w[]|\1))(?:(?:\w[\w-]*[ \t]*[:=]|[ \t#[\]{}-]).*\r?\n|\r?\n)*?\1[ \t]*(?:\r?\n|$)/;

/**
 * The blocks of a document in order, plain text or Markdown. They leave out headings and white space only. Wrapped lines are one
 * block, other lines a block each. Linear in the length.
 */
export function markdownBlocks(content: string, options: Options = {}): MarkdownBlock[] {
  return new Reader(content, options).read();
}

/** The visible text of a line of Markdown: labels instead of links, no tags, no marks of emphasis, code or footnotes. Linear in its length. */
export function plainText(markdown: string): string {
  return oneLine(
    withoutTags(markdown)
      .replace(/!?\[([^\][]*)\]\([^)]{0,2000}\)/g, "$1")
      .replace(/\*\*|__|`|(?<!\w)[*_]|[*_](?!\w)/g, ""),
  );
}

/** Markdown without tags within a line, such as `<kbd>`, but for links, and without the marks of footnotes. */
export function withoutTags(markdown: string): string {
  return markdown.replace(INLINE, (part, ...groups) => {
    const { code = "", href, label } = groups.at(-1) as { code?: string; href?: string; label?: string };
    return href ? `[${label}](${href})` : part === "&nbsp;" ? " " : code;
  });
}

/** The length of the marks of an item, a quotation or an indentation. */
export function marksLength(line: string): number {
  return MARKS.exec(line)![0].length;
}

function frontMatterLength(content: string): number {
  return FRONT_MATTER.exec(content)?.[0].length ?? 0;
}

/** True for a line without words, such as the one between the header of a table and its rows. */
export function isRule(line: string): boolean {
  return RULE.test(line);
}

class Reader {
  readonly #content: string;
  readonly #hasHeadings: boolean;
  readonly #cards: readonly Range[];
  /** The next of the cards. */
  #nextCard = 0;
  readonly #blocks: MarkdownBlock[] = [];
  readonly #outline = new Outline<Heading>((heading) => this.#add("text", heading));
  /** The block that the next line may continue, and the line before. */
  #open: MarkdownBlock | undefined;
  #before = "";

  constructor(content: string, { hasHeadings = true, cards = [] }: Options) {
    this.#content = content;
    this.#hasHeadings = hasHeadings;
    this.#cards = cards;
  }

  read(): MarkdownBlock[] {
    const start = this.#hasHeadings ? frontMatterLength(this.#content) : 0;
    for (let at = start; at < this.#content.length; ) at = this.#readAt(at);
    this.#outline.leave(0);
    return this.#blocks;
  }

  /** Reads the construct at `start` and returns the start of the next one. */
  #readAt(start: number): number {
    const end = lineEnd(this.#content, start);
    const line = this.#content.slice(start, end).trimEnd();
    while ((this.#cards[this.#nextCard]?.start ?? start) < start) this.#nextCard++;
    const card = this.#cards[this.#nextCard];
    const fence = FENCE.exec(line)?.[1];
    if (fence) return this.#readFence({ start, end }, fence);
    if (card && card.start < end) return this.#readCard(start, card);
    if (line === "") this.#open = undefined;
    else if (!this.#hasHeadings || !this.#readHeading({ start, end }, line)) this.#readLine({ start, end }, line);
    this.#before = line;
    return end;
  }

  #readFence(opening: Range, marks: string): number {
    let end = opening.end;
    for (let isOpen = true; isOpen && end < this.#content.length; ) {
      const next = lineEnd(this.#content, end);
      isOpen = !isFenceEnd(this.#content.slice(end, next).trim(), marks);
      end = next;
    }
    this.#add("code", { start: opening.start, end });
    return end;
  }

  #readCard(start: number, card: Range): number {
    if (card.start > start) this.#add("text", { start, end: card.start });
    this.#add("card", card);
    return card.end;
  }

  #readHeading({ start, end }: Range, line: string): boolean {
    const [marks = "", hashes = ""] = HEADING.exec(line) ?? [];
    const isUnderlined = UNDERLINE.test(line) && this.#open?.kind === "text" && this.#isOneLine(this.#open);
    const isName = isQuestion(line) || (BOLD.test(line) && isTitle(plainText(line)));
    const isNamed = isName && !(this.#open && this.#continues(this.#open, line, "text"));
    if (marks) this.#enter(hashes.length, { start: start + marks.length, end });
    else if (isUnderlined) this.#enter(line.includes("=") ? 1 : 2, this.#blocks.pop()!);
    else if (isNamed) this.#enter(BOLD_LEVEL, { start: start + marksLength(line), end });
    else if (this.#isCapital(line, end)) this.#enter(BOLD_LEVEL, { start, end });
    else return false;
    return true;
  }

  /** In capitals, after a blank line, and not underlined. */
  #isCapital(line: string, end: number): boolean {
    const next = this.#content.slice(end, lineEnd(this.#content, end)).trimEnd();
    return this.#before === "" && !UNDERLINE.test(next) && isCapitalTitle(line);
  }

  #isOneLine({ start, end }: Range): boolean {
    return !this.#content.slice(start, end).trim().includes("\n");
  }

  #enter(level: number, { start, end }: Range): void {
    this.#open = undefined;
    const text = this.#content.slice(start, end).replace(/(?:^|[ \t])#+\s*$/, "");
    const name = clip(headingName(plainText(text.slice(0, 10 * MAX_HEADING_LENGTH))), MAX_HEADING_LENGTH);
    this.#outline.enter(level, { name, start, end: start + text.length });
  }

  #readLine(range: Range, line: string): void {
    if (this.#open && DELIMITER.test(line) && this.#isHeader(this.#open)) this.#open.kind = "table";
    const kind = this.#isRow(line) ? "table" : isRule(line) ? "rule" : ITEM.test(line) ? "item" : "text";
    if (this.#open && this.#continues(this.#open, line, kind)) this.#open.end = range.end;
    else this.#open = this.#add(kind, range);
  }

  /** Within a table, each line with a mark between cells is a row. */
  #isRow(line: string): boolean {
    return ROW.test(line) || (this.#open?.kind === "table" && line.includes("|"));
  }

  #isHeader(block: MarkdownBlock): boolean {
    return block.kind === "text" && this.#isOneLine(block) && this.#before.includes("|");
  }

  #continues({ kind: open }: MarkdownBlock, line: string, kind: MarkdownBlock["kind"]): boolean {
    if (kind === "table" && open === "table") return true;
    if (kind !== "text" || open === "table" || open === "rule") return false;
    if (open === "item") return /^(?: {2}|\t)/.test(line);
    return this.#before.length >= WRAPPED_LENGTH && !STOP.test(this.#before);
  }

  #add(kind: MarkdownBlock["kind"], { start, end }: Range): MarkdownBlock {
    this.#open = undefined;
    const block = { kind, start, end, headings: this.#outline.use(), section: this.#outline.section };
    this.#blocks.push(block);
    return block;
  }
}

function lineEnd(content: string, start: number): number {
  const end = content.indexOf("\n", start);
  return end < 0 ? content.length : end + 1;
}

function isFenceEnd(line: string, marks: string): boolean {
  return line.startsWith(marks) && line === line[0]!.repeat(line.length);
}
