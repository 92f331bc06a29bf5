import { LRUCache } from "lru-cache";
import { wordsOf } from "../../../schemas/languages.ts";
import { lazy, lazyByKey } from "../../platform/lazy.ts";
import { plainText } from "../../platform/markdown.ts";
import { type Figures, figuresIn, isUnitName } from "./figures.ts";
import type { Strengths } from "./library.ts";
import { isAbout } from "./matching.ts";
import { isUnit, type Quantity, spansIn } from "./measures.ts";
import { alternatives, coversAll, isNegated, statesIn } from "./phrases.ts";
import type { Unit } from "./sections.ts";
import { isWeekday, weekdaysIn } from "./weekdays.ts";
import { termsIn } from "./words.ts";

/** The smallest part of a text that says something: a clause, or a cell with the names of its row and column. */
export interface Atom {
  terms: readonly string[];
  /** The terms of the names; none for a clause. */
  row: readonly string[];
  column: readonly string[];
  figures: Figures;
  spans: readonly Quantity[];
  /** True for an empty cell, a dash or a cross, which says nothing; a check mark says yes. */
  isBlank: boolean;
  isNegated: boolean;
  states: readonly number[];
}

/** A unit of public text that may support a claim. */
export interface Witness {
  unit: Unit;
  strengths: Strengths;
  /** Those of its text, its headings and the names of its columns. */
  figures: Figures;
  isUniversal: boolean;
  isFree: boolean;
  /** A line above it says that its prices are without tax. */
  isUntaxed: boolean;
  hasNoCharge: boolean;
  /** The text with its headings and the names of its columns. */
  text: string;
  /** The days of the week that the text, its heading, its introduction name, else its columns; read once. */
  days: () => ReadonlySet<number>;
  atoms: readonly Atom[];
}

const BLANK = /^(?:[\s\p{Pd}x×✕✖✗✘❌❎]*|n\/?a)$/iu;

/** Splits a text at its commas, conjunctions and dots between items. The "no" of "No, dogs are welcome" answers a question and negates nothing. */
export function clauseTexts(text: string, language: string): string[] {
  const [first = "", ...rest] = text.split(clauseEnds(language)).filter((clause) => clause.trim() !== "");
  const isAnswer = rest.length > 0 && /^\s*\p{L}+$/u.test(first) && isNegated(first, language);
  return isAnswer ? rest : [first, ...rest];
}

const clauseEnds = lazyByKey((language) => {
  const conjunctions = wordsOf(language).answers.connectors.filter((phrase) => !phrase.includes(" "));
  // "An hour and a half" is one span.
  const joint = `\\s(?:${conjunctions.join("|")})\\s(?!(?:\\p{L}{1,3}\\s)?(?:${alternatives("halves")})(?!\\p{L}))`;
  // Two figures side by side are of one thing: "at 9am and 2pm on Sundays".
  return new RegExp(`[,;·•](?!\\d)|[–—](?!\\d)|(?<!\\d\\S{0,3})${joint}|${joint}(?![^\\s\\d]?\\d)`, "u");
});

/** True if a text says that something costs nothing. */
export function isFree(text: string, language: string): boolean {
  return isAbout(["free", "included"], text, language);
}

/** True if a text says "free" or "included", or negates a price, as "no charge" and "pay nothing" do. */
export function hasNoCharge(text: string, language: string): boolean {
  return clauseTexts(text, language).some((clause) =>
    isNegated(clause, language)
      ? isAbout(["price", "payment"], clause, language) && !isAbout(["included"], clause, language)
      : isFree(clause, language),
  );
}

/** What a heading, an introduction, or the name of a row or column says. */
interface Line {
  terms: readonly string[];
  spans: readonly Quantity[];
  figures: Figures;
  isNegated: boolean;
  isUniversal: boolean;
  isFree: boolean;
  hasNoCharge: boolean;
}

/** The latest lines: one stands above hundreds of texts, and is longer than most of them. */
const latestLines = new LRUCache<string, Line>({
  max: 500,
  memoMethod: (key) => readLine(key.slice(key.indexOf(" ") + 1), key.slice(0, key.indexOf(" "))),
});

function lineOf(line: string, language: string): Line {
  return latestLines.memo(`${language} ${line}`);
}

function readLine(line: string, language: string): Line {
  return {
    terms: namingTerms(line, language),
    spans: spansIn(line, language),
    figures: figuresIn(line, language),
    isNegated: isNegated(line, language),
    isUniversal: coversAll(line, language),
    isFree: isFree(line, language),
    hasNoCharge: hasNoCharge(line, language),
  };
}

/** Reads a unit of public text. */
export function witnessOf(unit: Unit, strengths: Strengths): Witness {
  const { language } = unit.section;
  const { headings, columns = [], links, kind } = unit.block;
  const addresses = links.map(({ href }) => href.replace(/^(?:mailto|tel):/i, ""));
  const text = plainText(kind === "row" ? unit.text.replaceAll("\t", " ; ") : unit.text);
  const above = [headings.at(-1) ?? "", ...unit.introductions.map((one) => one.text)];
  const linesOf = (texts: readonly string[]) => texts.map((line) => lineOf(line, language));
  const whole = [readLine(text, language), ...linesOf(above)];
  const all = [...whole, ...linesOf([...headings, ...columns])];
  const figures = all.flatMap((line) => [...line.figures]);
  // "Not included" negates what it introduces: as a heading its items, but no row and no sentence; "excluding VAT" above rows negates the
  // tax. "No" answers the question of a heading.
  const isOwn = kind === "row" || (kind === "text" && /[.!?]$/.test(text));
  const isUntaxed = linesOf(above).map((line, at) => isOwn && line.isNegated && isAbout(["tax"], above[at]!, language));
  const isDenied = above.some((line, at) =>
    line.endsWith("?")
      ? isNegated(text.split(" ", 1)[0]!, language)
      : lineOf(line, language).isNegated && !(isOwn && at === 0) && !isUntaxed[at],
  );
  return {
    unit,
    strengths,
    text: [text, ...headings, ...above, ...columns].join(" ; "),
    days: lazy(() => daysOf([[text, ...above].join(" ; "), columns.join(" ; ")], language)),
    figures: new Set([...figures, ...figuresIn(addresses.join(" ; "), language)]),
    isUniversal: all.some((line) => line.isUniversal),
    isFree: whole.some((line, at) => line.isFree && !isUntaxed[at - 1]),
    isUntaxed: isUntaxed.includes(true),
    hasNoCharge: whole.some((line) => line.hasNoCharge),
    atoms: atomsOf(unit, text).map((atom) => (isDenied ? { ...atom, isNegated: true } : atom)),
  };
}

/** The days of the first text that names some. */
function daysOf(texts: readonly string[], language: string): ReadonlySet<number> {
  const [days = new Set<number>()] = texts.map((text) => weekdaysIn(text, language)).filter(({ size }) => size > 0);
  return days;
}

function atomsOf({ block, section: { language } }: Unit, text: string): Atom[] {
  const { cells = [], columns = [], table } = block;
  const names = (row: string, column: string) => [row, column].map((name) => lineOf(name, language));
  const atomOf = (part: string, row = "", column = ""): Atom => ({
    terms: namingTerms(part, language),
    row: lineOf(row, language).terms,
    column: lineOf(column, language).terms,
    figures: figuresIn(part, language),
    spans: [...spansIn(part, language), ...names(row, column).flatMap(({ spans }) => spans)],
    isBlank: column !== "" && BLANK.test(part),
    isNegated: isNegated(part, language),
    states: statesIn(part, language),
  });
  if (table === undefined)
    return withSubjects(
      clauseTexts(text, language).map((clause) => atomOf(clause)),
      language,
    );
  return cells.slice(1).map((cell, at) => atomOf(cell, cells[0], columns[at + 1]));
}

/** The "e" of "e-bike" is no word of its own. */
function namingTerms(text: string, language: string): string[] {
  return termsIn(text, language).filter((term) => !/^[a-z]$/.test(term));
}

/** A clause without a subject of its own speaks of the one before, and denies what that denies: "a board is €15 for two hours and €25 for a day". */
function withSubjects(clauses: readonly Atom[], language: string): Atom[] {
  const found: Atom[] = [];
  for (const clause of clauses) {
    const before = found.at(-1);
    const subject = namesIn(before?.terms).filter((term) => !isCounted(term, language));
    found.push(before && isBare(clause, subject, language) ? continued(before, clause, subject) : clause);
  }
  return found;
}

function continued(before: Atom, clause: Atom, subject: readonly string[]): Atom {
  const states = clause.states.length > 0 ? clause.states : before.states;
  const isNegated = before.isNegated || clause.isNegated;
  return { ...clause, terms: [...subject, ...clause.terms], isNegated, states };
}

/** A number that counts nothing is a subject: "under 8s" in "adults £12, under 8s £6". */
function isBare(clause: Atom, subject: readonly string[], language: string): boolean {
  const words = namesIn(clause.terms);
  const figuresOf = (kind: string) => [...clause.figures].filter((figure) => figure.startsWith(kind));
  const counting = words.length + figuresOf("amount ").length;
  const isOwnless = words.every((term) => isCounted(term, language) || subject.includes(term));
  return isOwnless && counting > 0 && figuresOf("number ").length <= counting;
}

/** True for what a figure is of: a unit, a currency or a day. */
function isCounted(term: string, language: string): boolean {
  return isUnit(term, language) || isUnitName(term) || isWeekday(term, language);
}

/** The terms that are no numbers. */
export function namesIn(terms: readonly string[] = []): string[] {
  return terms.filter((term) => !/^\p{N}/u.test(term));
}
