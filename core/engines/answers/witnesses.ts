import { plainText } from "../../platform/markdown.ts";
import type { Block } from "./blocks.ts";
import { type Figures, figuresIn } from "./figures.ts";
import type { Strengths } from "./library.ts";
import { type Likeness, mattersIn } from "./matching.ts";
import { type Quantity, spansIn } from "./measures.ts";
import { isNegated, isUniversal, plainWords } from "./phrases.ts";
import type { Unit } from "./sections.ts";
import { termsIn } from "./words.ts";

/** A unit of public text that may support a claim. */
export interface Witness {
  unit: Unit;
  strengths: Strengths;
  figures: Figures;
  clauses: readonly Clause[];
  /** The terms of a row's first cell. */
  label: readonly string[];
  /** Of a row whose columns have names: its cells after the label. */
  cells: readonly NamedCell[];
  /** Matters of its own text and of its headings. */
  matters: ReadonlySet<string>;
  /** The heading or the lead-in negates it, as "Not included" does, or it is the "No" to a question. */
  isNegated: boolean;
  /** It speaks of all cases, as "always" does. */
  isUniversal: boolean;
}

/** A part of a witness or a cell of a row. */
export interface Clause {
  strengths: Strengths;
  figures: Figures;
  spans: readonly Quantity[];
  negated: boolean;
}

/** Cells of a row, each with the name of its column, and "day" of "Per day". */
export interface NamedCell {
  name: string;
  rates: readonly Quantity[];
  named: Clause;
  cell: Clause;
}

/** What a sentence or one of its clauses claims. */
export interface Claim {
  /** Folded words with one space between them. */
  plain: string;
  words: readonly ClaimWord[];
  figures: readonly string[];
  spans: readonly Quantity[];
  negated: boolean;
  isUniversal: boolean;
  isFree: boolean;
}

/** A word of a claim. */
export interface ClaimWord {
  likeness: Likeness;
  weight: number;
  /** True for an everyday word, which alone claims nothing. */
  isCommon: boolean;
  /** True for a word such as "costs", which a figure with a currency implies. */
  isPrice: boolean;
  /** True for a word with a capital within a sentence, if no public text has it. */
  isUnknownName: boolean;
}

const CLAUSE = /[,;:](?!\d)|[–—](?!\d)|\s(?:and|but|und|aber|sowie|et|mais|y|pero|e|ma|en|maar|mas|or|oder|ou|o|of)\s/u;

/** Splits a text at its commas and conjunctions. */
export function clauseTexts(text: string): string[] {
  return text.split(CLAUSE);
}

/** Reads a unit of public text. */
export function witnessOf(unit: Unit, strengths: Strengths): Witness {
  const { language, source } = unit.section;
  const { headings, leadIn, columns = [], links, kind } = unit.block;
  const addresses = links.map(({ href }) => href.replace(/^(?:mailto|tel):/i, ""));
  const around = [...headings, leadIn, ...columns, source.title, ...addresses].join(" ; ");
  const text = plainText(kind === "row" ? unit.text.replaceAll("\t", " ; ") : unit.text);
  const above = [headings.at(-1) ?? "", leadIn];
  const isQuestion = (line: string) => line.endsWith("?");
  return {
    unit,
    strengths,
    figures: figuresIn(`${text} ; ${around}`, language),
    clauses: clauseTexts(text).map((clause) => clauseOf(clause, language)),
    // The "e" of "e-bike" is no word of its own.
    label: termsIn(unit.block.cells?.[0] ?? "", language).filter((term) => !/^[a-z]$/.test(term)),
    cells: cellsOf(unit.block, language),
    matters: mattersOf([text, ...above].join(" ; "), language),
    isNegated:
      above.some((line) => !isQuestion(line) && isNegated(line, language)) ||
      (above.some(isQuestion) && isNegated(text.split(" ", 1)[0]!, language)),
    isUniversal: isUniversal([text, ...above].join(" ; "), language),
  };
}

/** Reads a part of a text. */
export function clauseOf(text: string, language: string): Clause {
  const strengths = new Map(termsIn(text, language).map((term) => [term, 1]));
  return {
    strengths,
    figures: figuresIn(text, language),
    spans: spansIn(text, language),
    negated: isNegated(text, language),
  };
}

/** The matters of a text's words. */
export function mattersOf(text: string, language: string): Set<string> {
  return new Set(termsIn(text, language).flatMap((term) => [...mattersIn(term)]));
}

/** The cells of a row after its label, if its columns have names. */
function cellsOf({ cells = [], columns }: Block, language: string): NamedCell[] {
  if (!columns) return [];
  return cells.slice(1).map((cell, at) => ({
    name: plainWords(columns[at + 1]!),
    rates: spansIn(columns[at + 1]!, language).filter(({ count }) => count === undefined),
    named: clauseOf(columns[at + 1]!, language),
    cell: clauseOf(cell, language),
  }));
}
