import { oneLine } from "../../platform/characters.ts";
import { type Block, columnsFor, gridOf, type Link, Outline } from "./blocks.ts";

/** A line of at least this length without a full stop continues on the next line. */
const WRAPPED_LENGTH = 48;
const MAX_TEXT_LENGTH = 300_000;
const MAX_BLOCKS = 5000;

const FENCE = /^ {0,3}(?:`{3}|~{3})/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+/;
const UNDERLINE = /^ {0,3}(={3,}|-{3,})\s*$/;
const BULLET = /^[ \t]*(?:[-*+•–‣▪◦·][ \t]+|\d{1,3}[.)][ \t]+(?=\D))/;
const QUOTE = /^ {0,3}>[ \t]?/;
const PIPE = /^[ \t]*\|.*\|[ \t]*$/;
const RULE = /^[\s|:=_*+-]+$/;
const LINK = /!?\[([^\][]*)\]\(\s*<?((?:https?:|mailto:|tel:)[^\s)<>]+)>?[^)]*\)/gi;

/**
 * Reads a document, plain or Markdown: headings, paragraphs (wrapped lines are joined), items and tables, each an exact
 * piece of it. `headings` are those above the whole text if it is a piece of a document. Linear in the length.
 */
export function readMarkdown(content: string, headings: readonly string[] = []): Block[] {
  return new MarkdownReader(content.slice(0, MAX_TEXT_LENGTH), headings).read();
}

/** The visible text of a line of Markdown: labels instead of links, no marks of emphasis or code. */
export function plainText(markdown: string): string {
  return oneLine(markdown.replace(/!?\[([^\][]*)\]\([^)]*\)/g, "$1").replace(/\*\*|__|`|(?<!\w)[*_]|[*_](?!\w)/g, ""));
}

class MarkdownReader {
  readonly #content: string;
  readonly #outline: Outline;
  /** The last block continues on the next line. */
  #isOpen = false;
  #rows: { cells: string[]; text: string; start: number }[] = [];
  #hasHead = false;

  constructor(content: string, above: readonly string[]) {
    this.#content = content;
    this.#outline = new Outline(above);
  }

  read(): Block[] {
    for (let start = 0; start < this.#content.length && this.#outline.blocks.length < MAX_BLOCKS; ) {
      const end = this.#content.indexOf("\n", start);
      const stop = end < 0 ? this.#content.length : end;
      this.#readLine(this.#content.slice(start, stop), start);
      start = stop + 1;
    }
    this.#endTable();
    this.#outline.leave(0);
    return this.#outline.blocks;
  }

  #readLine(line: string, start: number): void {
    const heading = HEADING.exec(line)?.[0];
    const title = this.#underlined(line);
    const last = this.#outline.blocks.at(-1);
    const isRow = PIPE.test(line);
    if (!isRow) this.#endTable();
    if (isRow) this.#addRow(line, start);
    else if (heading) this.#enter(heading.trim().length, line.slice(heading.length), start + heading.length);
    else if (title) this.#enter(line.includes("=") ? 1 : 2, title.text, title.start);
    else if (line.trim() === "" || FENCE.test(line) || RULE.test(line)) this.#isOpen = false;
    else if (this.#isOpen && last && continues(last, line)) this.#join(last, start + line.length);
    else this.#add(line, start);
  }

  /** The one-line paragraph that a line of dashes or equals signs below makes a heading. */
  #underlined(line: string): Block | undefined {
    const last = this.#outline.blocks.at(-1);
    const isTitle = UNDERLINE.test(line) && this.#isOpen && last?.kind === "text" && !last.text.includes("\n");
    return isTitle ? this.#outline.blocks.pop() : undefined;
  }

  #enter(level: number, line: string, start: number): void {
    this.#isOpen = false;
    const text = line.replace(/[ \t]#+[ \t]*$/, "").trim();
    this.#outline.enter(level, plainText(text), { text, start });
  }

  #join(last: Block, end: number): void {
    last.text = this.#content.slice(last.start, end).trimEnd();
    last.links = linksOf(last.text);
  }

  #add(line: string, start: number): void {
    const marks = BULLET.exec(line)?.[0] ?? QUOTE.exec(line)?.[0] ?? /^[ \t]*/.exec(line)![0];
    const kind = BULLET.test(line) ? "item" : "text";
    const text = line.slice(marks.length).trimEnd();
    const isFirst = this.#outline.blocks.at(-1)?.kind === "text";
    if (kind === "item" && isFirst) this.#outline.leadIn = this.#outline.leadingLine();
    this.#outline.push({ kind, text, start: start + marks.length, links: linksOf(text) });
    this.#isOpen = true;
  }

  #addRow(line: string, start: number): void {
    this.#isOpen = false;
    if (RULE.test(line)) this.#hasHead ||= this.#rows.length === 1;
    else {
      const cells = line
        .trim()
        .slice(1, -1)
        .split(/(?<!\\)\|/);
      this.#rows.push({
        cells: cells.map((cell) => plainText(cell)),
        text: line.trim(),
        start: start + line.search(/\S/),
      });
    }
  }

  #endTable(): void {
    if (this.#rows.length === 0) return;
    const cellsOf = (row: string[], at: number) =>
      row.map((text) => ({ text, isHead: this.#hasHead && at === 0, across: 1, down: 1 }));
    const { columns } = gridOf(this.#rows.map(({ cells }, at) => cellsOf(cells, at)));
    const rows = columns ? this.#rows.slice(1) : this.#rows;
    const table = ++this.#outline.tables;
    this.#outline.leadIn = "";
    for (const { cells, text, start } of rows)
      this.#outline.push({
        kind: "row",
        text,
        start,
        cells,
        table,
        ...columnsFor(cells, columns),
        links: linksOf(text),
      });
    this.#rows = [];
    this.#hasHead = false;
  }
}

function continues(last: Block, line: string): boolean {
  if (last.kind === "row" || BULLET.test(line)) return false;
  if (last.kind === "item") return /^(?: {2}|\t)/.test(line);
  const before = last.text.slice(last.text.lastIndexOf("\n") + 1).trimEnd();
  return before.length >= WRAPPED_LENGTH && !/[.!?:;…。！？]["'”’»)\]]*$/.test(before);
}

function linksOf(text: string): Link[] {
  return [...text.matchAll(LINK)].map(([, label = "", href = ""]) => ({ label: oneLine(label), href }));
}
