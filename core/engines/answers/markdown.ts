import { oneLine } from "../../platform/characters.ts";
import {
  DELIMITER,
  FOOTNOTE_MARK,
  isRule,
  type MarkdownBlock,
  markdownBlocks,
  marksLength,
  plainText,
  withoutTags,
} from "../../platform/markdown.ts";
import { type Block, columnsFor, gridOf, isLikeRows, MAX_DEPTH, MAX_LINKS, type PlacedLink } from "./blocks.ts";
import { BLOCKS, UNREAD } from "./elements.ts";

const MAX_TEXT_LENGTH = 300_000;
const MAX_BLOCKS = 5000;
/** Columns that an item within another one is further to the right. */
const MIN_INDENT = 2;

/** Its parts are bounded: a text of open links would cost the cube of its length. */
const LINK = /!?\[([^\][]*)\]\(\s*<?((?:https?:|mailto:|tel:)[^\s)<>]{1,2000})(?:[\s>][^)]{0,500})?\)/gi;

/** A link within its page, as in a table of contents. */
const WITHIN = /^\[[^\][]*\]\(#[^()]*\)$/;

const MARKS = new RegExp(FOOTNOTE_MARK, "g");
const NOTE = new RegExp(`^${FOOTNOTE_MARK}:`);
const COMMENT = "<!--(?:(?!<!--)[\\s\\S])*?-->";
/** What no reader sees: elements that only a browser shows, and what a generator of sites replaces, such as `{{< map >}}`. */
const UNSEEN =
  `<(?<unseen>${[...UNREAD].join("|")})(?![\\w-])(?:(?!<\\k<unseen>(?![\\w-]))[\\s\\S])*?</\\k<unseen>>|` +
  "\\{(?:%|\\{[<%])[^{}]{0,500}[%>]\\}\\}?|\\{[:#][^{}\\n]{0,200}\\}";
const TAG = `(?:^[ \\t]+)?</?(?:br|button|${[...BLOCKS].join("|")})(?![\\w-])[^<>]{0,500}>`;
/** The start of a heading up to its words, which a button may hold. */
const HEAD = "[ \\t]{0,40}<h[1-6](?![\\w-])[^<>]{0,500}>\\s{0,200}(?:<button(?![\\w-])[^<>]{0,500}>\\s{0,200})?";
/** A table or a row of HTML, up to the next one at most. */
const [TABLE, TABLE_ROW] = ["table", "tr"].map(
  (name) => `<${name}(?![\\w-])(?:(?!<${name}(?![\\w-]))[\\s\\S])*?</${name}>`,
);
const CODE = "`[^`\\n]*`";
const FENCED = ["`", "~"].map((mark) => `^ {0,3}${mark}{3}[\\s\\S]*?^ {0,3}${mark}{3}`).join("|");
/** A row with a mark at its start, or a table with marks between its cells only. */
const ROWS = `^[ \\t]*\\|.*|^(?=.*\\|).+\\r?\\n${DELIMITER.source}(?:\\r?\\n(?=.*\\|).+)*`;
/** Code, whose markup is text, what is not seen, rows of a table, or the tag of a block. */
const MAY_MARK = new RegExp(
  [FENCED, COMMENT, HEAD, UNSEEN, `(?<table>${TABLE})`, `(?<rows>${ROWS})`, CODE, TAG].join("|"),
  "gim",
);
const MAY_MARK_CELL = new RegExp([CODE, COMMENT, UNSEEN, TAG].join("|"), "gi");
const IN_TABLE = new RegExp(TABLE_ROW!, "gi");

/**
 * Reads a document, plain or Markdown: each block is an exact piece of it. `above` are the headings above the whole text if it is a
 * piece of a document. Linear in the length.
 */
export function readMarkdown(content: string, above: readonly string[] = []): Block[] {
  const found: Block[] = [];
  const visible = withoutMarkup(content.slice(0, MAX_TEXT_LENGTH));
  let indents: number[] = [];
  for (const [at, { headings, section, ...range }] of markdownBlocks(visible).entries()) {
    indents = range.kind === "item" ? indentsOf(visible.slice(range.start, range.end), indents) : [];
    const depth = Math.min(MAX_DEPTH, Math.max(0, indents.length - 1));
    const place = { headings: [...above, ...headings], section, ...(depth > 0 ? { depth } : {}) };
    for (const piece of piecesOf(visible, range)) {
      const said = withoutTags(piece.text);
      const more = { links: linksOf(said), buttons: WITHIN.test(said), ...(piece.cells ? { table: at } : {}) };
      if (said.trim() !== "" && found.length < MAX_BLOCKS) found.push({ ...place, ...piece, ...more });
    }
  }
  return withFootnotes(found);
}

/** The blocks with each footnote at the end of the first section that refers to it. */
function withFootnotes(blocks: readonly Block[]): Block[] {
  const sections = new Map<string, Pick<Block, "headings" | "section">>();
  const marksOf = ({ text }: Block) => text.match(MARKS) ?? [];
  for (const block of blocks.filter((one) => !isFootnote(one)).reverse())
    for (const mark of marksOf(block)) sections.set(mark, { headings: block.headings, section: block.section });
  const placed = blocks.map((block) => (isFootnote(block) ? { ...block, ...sections.get(marksOf(block)[0]!) } : block));
  return placed.sort(
    (one, other) => one.section - other.section || Number(isFootnote(one)) - Number(isFootnote(other)),
  );
}

function isFootnote({ text }: Block): boolean {
  return NOTE.test(text);
}

/** The indentations of an item and of those around it. */
function indentsOf(item: string, before: readonly number[]): number[] {
  const indent = /^[ \t]*/.exec(item)![0].replaceAll("\t", "    ").length;
  return [...before.filter((one) => one + MIN_INDENT <= indent), indent];
}

/**
 * The text without comments and tags of blocks, with spaces instead within a table's row. It keeps its length, so that positions stay, and
 * what stands before and after a comment are two exact pieces.
 */
function withoutMarkup(content: string): string {
  return content.replace(MAY_MARK, (part, ...groups) => {
    const { rows, table } = groups.at(-1) as { rows?: string; table?: string };
    if (table !== undefined) return `\n${withoutCellMarkup(asRows(table)).slice(1, -1)}\n`;
    if (rows !== undefined) return withoutCellMarkup(rows);
    return isMarkup(part) ? asMarkdown(part) : part;
  });
}

function withoutCellMarkup(rows: string): string {
  return rows.replace(MAY_MARK_CELL, (mark) => (isMarkup(mark) ? " ".repeat(mark.length) : mark));
}

function isMarkup(part: string): boolean {
  return /^\s*[<{]/.test(part);
}

/** The end of a line, which an item continues after; spaces for what is not seen; the marks of an item, a heading or its end; else blank lines. */
function asMarkdown(tag: string): string {
  const name = /^\s*<(\/?\w+)/.exec(tag)?.[1]?.toLowerCase() ?? "";
  if (name === "br") return "\n".padEnd(tag.length);
  if (name === "li") return "- ".padStart(tag.length);
  if (tag.startsWith("{") || UNREAD.has(name)) return " ".repeat(tag.length);
  const level = name === "summary" ? 6 : Number(/^h(\d)/.exec(name)?.[1] ?? 0);
  const marks = level > 0 ? `${"#".repeat(Math.min(level, tag.length - 1))} ` : "";
  return (/^\/(?:details|form)$/.test(name) ? "######\n" : marks).padStart(tag.length, "\n");
}

/** A table of HTML as rows of Markdown; a row of headers names the columns. */
function asRows(table: string): string {
  return table.replace(/[\s|]/g, " ").replace(IN_TABLE, (row) => {
    const end = /<th/i.test(row) && !/<td/i.test(row) ? "|\n|-|" : "|    ";
    const cells = row.replace(/<t[dh](?![\w-])[^<>]*>/gi, (cell) => "|".padEnd(cell.length));
    return `\n${cells.slice(1, -end.length)}${end}`.replace(/^\ntr[^<>]*>/i, (start) => "\n".padEnd(start.length));
  });
}

type Piece = Pick<Block, "kind" | "text" | "start" | "cells" | "columns">;

function piecesOf(content: string, { kind, start, end }: Pick<MarkdownBlock, "kind" | "start" | "end">): Piece[] {
  const lines = linesOf(content.slice(start, end), start);
  if (kind === "rule") return [];
  if (kind === "table") return rowsOf(lines);
  if (kind === "code") return lines.slice(1, -1).map((line) => ({ kind: "text", ...line }));
  const from = start + marksLength(content.slice(start, end));
  return [{ kind: kind === "item" ? "item" : "text", text: content.slice(from, end).trimEnd(), start: from }];
}

interface Line {
  text: string;
  start: number;
}

/** The lines of a text without the white space around them. */
function linesOf(text: string, start: number): Line[] {
  const found: Line[] = [];
  for (const { 0: line, index } of text.matchAll(/\S.*/g)) found.push({ text: line.trimEnd(), start: start + index });
  return found;
}

/** The rows of a table; if a rule follows the first one, it names the columns, unless it is a row like the others. */
function rowsOf(lines: readonly Line[]): Piece[] {
  const width = cellsOf(lines[0]?.text ?? "").length;
  const rows = lines.filter(({ text }) => !isRule(text)).map((line) => ({ ...line, cells: cellsOf(line.text, width) }));
  const hasHead = isRule(lines[1]?.text ?? "") && !isAlike(rows) && !isLikeRows(rows.map(({ cells }) => cells));
  const grid = gridOf(
    rows.map(({ cells }, at) => cells.map((text) => ({ text, isHead: hasHead && at === 0, across: 1, down: 1 }))),
  );
  return rows
    .slice(-grid.length)
    .map((row, at) => ({ kind: "row", ...row, ...columnsFor(row.cells, grid[at]?.columns) }));
}

/** True if each cell of the first row is a figure like half of those below it: `| Single | 80 € |`. Markdown has no table without a header. */
function isAlike([head, ...others]: readonly { cells: string[] }[]): boolean {
  const formOf = (cell = "") => cell.replace(/\d+(?:[.,:]\d+)*(?:\s?[-–]\s?\d+(?:[.,:]\d+)*)?/g, "#");
  const isLike = (cell: string, at: number) =>
    2 * others.filter(({ cells }) => formOf(cells[at + 1]) === formOf(cell)).length >= others.length;
  const figures = head?.cells.slice(1) ?? [];
  return figures.length > 0 && figures.every((cell, at) => /\d/.test(cell) && !/^\d+$/.test(cell) && isLike(cell, at));
}

/** The cells of a row, with empty ones up to the width of its table. */
function cellsOf(row: string, width = 0): string[] {
  const cells = row.replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/);
  return [...cells.map(plainText), ...Array<string>(Math.max(0, width - cells.length)).fill("")];
}

function linksOf(text: string): PlacedLink[] {
  const found = [...text.matchAll(LINK)].slice(0, MAX_LINKS);
  return found.map(({ 0: { length }, 1: label = "", 2: href = "", index }) => ({
    label: oneLine(label),
    href,
    end: index + length,
  }));
}
