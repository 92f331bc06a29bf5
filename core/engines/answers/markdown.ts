import { clip, oneLine } from "../../platform/characters.ts";
import { type Block, columnsFor, gridOf, leadsIn, type Link, type PublicText } from "./blocks.ts";

/** A line of at least this length without a full stop continues on the next line. */
const WRAPPED_LENGTH = 48;
const MAX_HEADING_LENGTH = 200;
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
export function readMarkdown(content: string, headings: readonly string[] = []): PublicText {
  return new MarkdownReader(content.slice(0, MAX_TEXT_LENGTH), headings).read();
}

/** The visible text of a line of Markdown: labels instead of links, no marks of emphasis or code. */
export function plainText(markdown: string): string {
  return oneLine(markdown.replace(/!?\[([^\][]*)\]\([^)]*\)/g, "$1").replace(/\*\*|__|`|(?<!\w)[*_]|[*_](?!\w)/g, ""));
}

class MarkdownReader {
  readonly #content: string;
  readonly #above: readonly string[];
  readonly #blocks: Block[] = [];
  readonly #path: { level: number; name: string }[] = [];
  #section = 0;
  #tables = 0;
  #leadIn = "";
  #open = false;
  #rows: { cells: string[]; text: string; start: number }[] = [];
  #hasHead = false;

  constructor(content: string, above: readonly string[]) {
    this.#content = content;
    this.#above = above;
  }

  read(): PublicText {
    for (let start = 0; start < this.#content.length && this.#blocks.length < MAX_BLOCKS; ) {
      const end = this.#content.indexOf("\n", start);
      const stop = end < 0 ? this.#content.length : end;
      this.#readLine(this.#content.slice(start, stop), start);
      start = stop + 1;
    }
    this.#endTable();
    const links = this.#blocks.flatMap((block) => block.links);
    const seen = new Set<string>();
    return {
      title: "",
      blocks: this.#blocks,
      links: links.filter(({ href, label }) => !seen.has(`${href} ${label}`) && seen.add(`${href} ${label}`)),
    };
  }

  #readLine(line: string, start: number): void {
    const heading = HEADING.exec(line);
    const title = this.#underlined(line);
    if (PIPE.test(line)) this.#addRow(line, start);
    else this.#endTable();
    if (PIPE.test(line)) return;
    const last = this.#blocks.at(-1);
    if (heading) this.#enter(heading[1]!.length, line.slice(heading[0].length));
    else if (title) this.#enter(line.includes("=") ? 1 : 2, title);
    else if (line.trim() === "" || FENCE.test(line) || RULE.test(line)) this.#open = false;
    else if (this.#open && last && continues(last, line)) this.#join(last, start + line.length);
    else this.#add(line, start);
  }

  /** The one-line paragraph that a line of dashes or equals signs below makes a heading. */
  #underlined(line: string): string | undefined {
    const last = this.#blocks.at(-1);
    const isTitle = UNDERLINE.test(line) && this.#open && last?.kind === "text" && !last.text.includes("\n");
    return isTitle ? this.#blocks.pop()?.text : undefined;
  }

  #enter(level: number, name: string): void {
    this.#open = false;
    this.#leadIn = "";
    this.#section++;
    while ((this.#path.at(-1)?.level ?? -1) >= level) this.#path.pop();
    this.#path.push({ level, name: clip(plainText(name.replace(/[ \t]#+[ \t]*$/, "")), MAX_HEADING_LENGTH) });
  }

  #join(last: Block, end: number): void {
    last.text = this.#content.slice(last.start, end).trimEnd();
    last.links = linksOf(last.text);
  }

  #add(line: string, start: number): void {
    const marks = BULLET.exec(line)?.[0] ?? QUOTE.exec(line)?.[0] ?? /^[ \t]*/.exec(line)![0];
    const kind = BULLET.test(line) ? "item" : "text";
    const text = line.slice(marks.length).trimEnd();
    const last = this.#blocks.at(-1);
    if (kind === "text") this.#leadIn = "";
    else if (last?.kind === "text")
      this.#leadIn = last.section === this.#section && leadsIn(last.text) ? last.text : "";
    this.#push({ kind, text, start: start + marks.length, links: linksOf(text) });
    this.#open = true;
  }

  #addRow(line: string, start: number): void {
    this.#open = false;
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
    this.#tables++;
    for (const { cells, text, start } of rows)
      this.#push({
        kind: "row",
        text,
        start,
        cells,
        table: this.#tables,
        ...columnsFor(cells, columns),
        links: linksOf(text),
      });
    this.#rows = [];
    this.#hasHead = false;
  }

  #push(block: Pick<Block, "kind" | "text" | "start" | "links"> & Partial<Block>): void {
    const headings = [...this.#above, ...this.#path.map(({ name }) => name).filter((name) => name !== "")];
    const leadIn = block.kind === "item" ? this.#leadIn : "";
    this.#blocks.push({ headings, section: this.#section, leadIn, buttons: false, ...block });
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
