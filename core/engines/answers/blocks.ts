import { languages } from "../../../schemas/languages.ts";
import { clip } from "../../platform/characters.ts";
import { calendarNames } from "../../platform/formats.ts";
import { lazy } from "../../platform/lazy.ts";
import { isPhrase, plainWords } from "./phrases.ts";

/** A visible link. `href` is an absolute http or https address, or a mail or telephone address. */
export interface Link {
  label: string;
  href: string;
}

/** A link of a block. */
export interface PlacedLink extends Link {
  /** Where it ends in the block's text; a little too late if invisible characters were left out before it. */
  end: number;
}

/** The end of the label of a Markdown link to anything but a web address, or of a link's definition. */
export const OTHER_LINK = /\](?=:|\((?!\s*<?https?:\/\/))/gi;

/** A link's label, and in parentheses the mail address or telephone number behind it, unless the label says it. Text can't be clicked. */
export function labelWithContact({ label, href }: Link): string {
  const [, contact] = /^(?:mailto|tel):([^?]+)/i.exec(href) ?? [];
  return contact === undefined || names(label, contact) ? label : `${label} (${contact})`;
}

/** True for a block with words besides its links. */
export function saysMore({ text, links }: Block): boolean {
  return /\p{L}/u.test(links.reduce((rest, link) => rest.replace(labelWithContact(link), ""), text));
}

function names(label: string, contact: string): boolean {
  const [said, number] = [label, contact].map((text) => text.replace(/\D/g, ""));
  if (label.toLowerCase().includes(contact.toLowerCase())) return true;
  return number!.length > 6 && said!.endsWith(number!.slice(-7));
}

/** A self-contained piece of public text: a paragraph, a list item or a table row. */
export interface Block {
  kind: "text" | "item" | "row";
  /** Headings above it, from the outermost; without a page's first h1, which is its title. */
  headings: readonly string[];
  /** Number of its section within its source; a section is the consecutive blocks under one heading. */
  section: number;
  /** Exact public text; tabs separate the cells of a row. */
  text: string;
  /** Offset in a document; 0 on a page. */
  start: number;
  /** The cells of a row; spans are repeated and empty cells kept. */
  cells?: readonly string[];
  /** Names of the columns, one for each cell; absent if the table has none or the numbers differ. */
  columns?: readonly string[];
  /** Number of its table within its source. */
  table?: number;
  /** Number of its list within its page, the same in a list within it. */
  list?: number;
  /** Of an item: the number of items around it, at most `MAX_DEPTH`. */
  depth?: number;
  /** A text that is the caption of the table after it. */
  isCaption?: boolean;
  /** Its links. A block outside lists that consists of links is a row of buttons. */
  links: readonly PlacedLink[];
  buttons: boolean;
}

/** The public text of a page in reading order. */
export interface PublicText {
  /** The first h1; empty without one. */
  title: string;
  blocks: Block[];
  /** All links, each once. */
  links: Link[];
}

/** A cell of the markup. */
export interface Cell {
  text: string;
  isHead: boolean;
  across: number;
  down: number;
  links?: readonly Link[];
}

/** A row of a table; one cell across the whole table is the title of the rows below it. */
interface Row {
  cells: readonly string[];
  /** Names of the columns, one for each cell; absent if the table has none or the numbers differ. */
  columns?: readonly string[];
  links: readonly Link[];
}

const MOST_COLUMNS = 60;
/** Most links of a page, of a cell, and of another block. */
export const MAX_LINKS = 500;
export const MAX_DEPTH = 3;
/** The longest heading, and the longest name of a column. They are read again with every block below them. */
export const MAX_HEADING_LENGTH = 200;

/** Words for "closed", "without" and "free" in all languages. */
const STATES = Object.values(languages)
  .flatMap(({ answers: { matters, opposites } }) => [matters.free, ...opposites.map(([, no]) => no)])
  .flatMap((list = "") => list.split(" "));

/**
 * A table as a rectangle: spans are repeated, empty cells kept (HTML, "Forming a table"). Leading rows that consist of
 * header cells name the columns, several are joined; those below a title name the columns from there.
 */
export function gridOf(rows: readonly (readonly Cell[])[]): Row[] {
  const filled = filledOf(rows);
  const links = linksOf(rows);
  const isTitle = titlesOf(rows, filled);
  const found: Row[] = [];
  let columns: string[] | undefined;
  let isFirst = true;
  for (let from = 0, to = 0; from < rows.length; from = to + 1) {
    for (to = from; to < rows.length && !isTitle[to]; ) to++;
    const heads =
      headRows(rows.slice(from, to), to === rows.length) ||
      (isFirst ? guessedHeads(rows.slice(from, to), filled.slice(from, to)) : 0);
    if (heads > 0) columns = joinHeads(filled.slice(from, from + heads));
    const body = filled.slice(from + heads, to);
    found.push(
      ...body.map((cells, at) => ({ cells, links: links[from + heads + at]!, ...columnsFor(cells, columns) })),
    );
    isFirst &&= body.every((cells) => cells.length === 1);
    if (to < rows.length) found.push({ cells: [rows[to]![0]!.text], links: links[to]! });
  }
  return found;
}

/** True for each row that is one cell across the whole table. */
function titlesOf(rows: readonly (readonly Cell[])[], filled: readonly string[][]): boolean[] {
  const width = Math.max(0, ...filled.filter((_, at) => rows[at]!.length > 1).map((cells) => cells.length));
  return rows.map(([cell, ...others], at) => {
    const isOnly = cell !== undefined && others.length === 0;
    return isOnly && (cell.across >= width || filled[at]!.length === 1);
  });
}

function filledOf(rows: readonly (readonly Cell[])[]): string[][] {
  const grid: string[][] = rows.map(() => []);
  const taken: boolean[][] = rows.map(() => []);
  for (const [at, row] of rows.entries()) {
    let column = 0;
    for (const cell of row) {
      while (taken[at]![column]) column++;
      for (let down = 0; down < cell.down && at + down < rows.length; down++)
        for (let across = 0; across < cell.across && column + across < MOST_COLUMNS; across++) {
          grid[at + down]![column + across] = cell.text;
          taken[at + down]![column + across] = true;
        }
      column += cell.across;
    }
  }
  return grid.map((row) => Array.from(row, (text) => text ?? ""));
}

/** The links of each row, with those of cells that reach down to it. */
function linksOf(rows: readonly (readonly Cell[])[]): Link[][] {
  const found: Link[][] = rows.map(() => []);
  for (const [at, row] of rows.entries())
    for (const { down, links = [] } of row) for (const one of found.slice(at, at + down)) one.push(...links);
  return found;
}

/** The number of leading rows that are marked as header; 0 if no row is left below them. */
function headRows(rows: readonly (readonly Cell[])[], isEnd: boolean): number {
  const marked = rows.findIndex((row) => row.length === 0 || !row.every(({ isHead, text }) => isHead || text === ""));
  const isMarked = rows[0]?.some(({ isHead, text }) => isHead && text !== "") ?? false;
  if (!isMarked) return 0;
  return marked < 0 && !isEnd ? rows.length : Math.max(0, marked);
}

/** 1 if no cell is marked as header, but for those that name a row below, and a column contains figures below a word. */
function guessedHeads(rows: readonly (readonly Cell[])[], [first = [], ...others]: string[][]): number {
  const isNamed = rows[0]?.[0]?.isHead && first[0] !== "";
  if (isNamed || others.length < 2 || rows.some((row) => row.slice(1).some(({ isHead }) => isHead))) return 0;
  if (isLikeRows([first, ...others])) return 0;
  const figure = (text: string | undefined) => /\d/.test(text ?? "");
  const isHead = first.some(
    (name, column) => name !== "" && !figure(name) && others.every((row) => figure(row[column])),
  );
  return isHead && first.every((name) => !figure(name)) && new Set(first).size === first.length ? 1 : 0;
}

/** True for a first row that names no columns, as it begins with a day like the next one, or says only "closed", "free" or nothing. */
export function isLikeRows([first = [], next = []]: readonly (readonly string[])[]): boolean {
  if (first[0] === "") return false;
  return (
    [first, next].every(([label = ""]) => isOfDay(label)) ||
    first.slice(1).every((cell) => /^[\s\p{Pd}]*$/u.test(cell) || isPhrase(plainWords(cell), STATES))
  );
}

/** True for a label that begins with a day. Short names may be other words: "Sun" in "Sun cream", but not in "Sun" or "Sun to Tue". */
function isOfDay(label: string): boolean {
  const lower = label.toLowerCase();
  const [first = "", ...others] = lower.match(/\p{L}+/gu) ?? [];
  const { long, short } = days();
  const isShort = short.includes(first) && others.every((word) => word.length < 5 || long.includes(word));
  return isShort || long.some((name) => lower.startsWith(name));
}

const days = lazy(() => {
  const names = (style: "long" | "short") =>
    Object.keys(languages).flatMap((code) => calendarNames(code, "weekday", style));
  return { long: names("long"), short: names("short") };
});

function joinHeads(heads: string[][]): string[] {
  const nameOf = (column: number) => [...new Set(heads.map((row) => row[column] ?? ""))].join(" ").trim();
  return heads[0]!.map((_, column) => clip(nameOf(column), MAX_HEADING_LENGTH));
}

/** The names of a row's columns if there are as many as cells. */
export function columnsFor(
  cells: readonly string[],
  columns: readonly string[] | undefined,
): { columns?: readonly string[] } {
  return columns !== undefined && columns.length === cells.length && cells.length > 1 ? { columns } : {};
}
