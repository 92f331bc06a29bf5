import { oneLine } from "../../platform/characters.ts";
import { isRule, type MarkdownBlock, markdownBlocks, marksLength, plainText } from "../../platform/markdown.ts";
import { type Block, columnsFor, gridOf, isLikeRows, type Link } from "./blocks.ts";

const MAX_TEXT_LENGTH = 300_000;
const MAX_BLOCKS = 5000;

/** Its parts are bounded: a text of open links would cost the cube of its length. */
const LINK = /!?\[([^\][]*)\]\(\s*<?((?:https?:|mailto:|tel:)[^\s)<>]{1,2000})(?:[\s>][^)]{0,500})?\)/gi;

const COMMENT = /<!--(?:(?!<!--)[\s\S])*?-->/g;
/** A comment, a row of a table, or code, whose comments are text. */
const MAY_COMMENT = new RegExp(["^`{3}[\\s\\S]*?^`{3}", "`[^`\\n]*`", "^\\|.*", COMMENT.source].join("|"), "gm");

/**
 * Reads a document, plain or Markdown: each block is an exact piece of it. `above` are the headings above the whole text if it is a
 * piece of a document. Linear in the length.
 */
export function readMarkdown(content: string, above: readonly string[] = []): Block[] {
  const found: Block[] = [];
  const visible = withoutComments(content.slice(0, MAX_TEXT_LENGTH));
  for (const [at, { headings, section, ...range }] of markdownBlocks(visible).entries()) {
    const place = { headings: [...above, ...headings], section, buttons: false };
    for (const piece of piecesOf(visible, range))
      if (piece.text !== "" && found.length < MAX_BLOCKS)
        found.push({ ...place, ...piece, links: linksOf(piece.text), ...(piece.cells ? { table: at } : {}) });
  }
  return found;
}

/**
 * The text with blank lines in place of comments, and spaces within a table's row. It keeps its length, so that positions stay, and what
 * stands before and after a comment are two exact pieces.
 */
function withoutComments(content: string): string {
  return content.replace(MAY_COMMENT, (part) => {
    if (part.startsWith("<!--")) return "\n".repeat(part.length);
    return part.startsWith("|") ? part.replace(COMMENT, (comment) => " ".repeat(comment.length)) : part;
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
  const rows = lines.filter(({ text }) => !isRule(text)).map((line) => ({ ...line, cells: cellsOf(line.text) }));
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

function cellsOf(row: string): string[] {
  const cells = row.slice(1, -1).split(/(?<!\\)\|/);
  return cells.map(plainText);
}

function linksOf(text: string): Link[] {
  return [...text.matchAll(LINK)].map(([, label = "", href = ""]) => ({ label: oneLine(label), href }));
}
