import { plainText } from "../../platform/markdown.ts";
import { type Figures, figuresIn } from "./figures.ts";
import type { Strengths } from "./library.ts";
import { type Likeness, mattersIn } from "./matching.ts";
import { type Quantity, spansIn } from "./measures.ts";
import { isNegated, isUniversal } from "./phrases.ts";
import type { Unit } from "./sections.ts";
import { termsIn } from "./words.ts";

/** A part of a text: a clause, a cell, or the name of a column. */
export interface Clause {
  strengths: Strengths;
  figures: Figures;
  spans: readonly Quantity[];
  isNegated: boolean;
}

/** A unit of public text that may support a claim. */
export interface Witness {
  unit: Unit;
  strengths: Strengths;
  /** Those of its text, its headings and the names of its columns. */
  figures: Figures;
  clauses: readonly Clause[];
  /** The first cell of a row of a table. */
  label: Clause | undefined;
  /** The other cells of a row whose columns have names, each with its name. */
  cells: readonly { name: Clause; cell: Clause }[];
  marks: ReadonlySet<Mark>;
  /** The heading or the lead-in negates it, as "Not included" does, or it is the "No" to a question. */
  isNegated: boolean;
}

/** What a sentence or one of its clauses claims. */
export interface Claim {
  words: readonly ClaimWord[];
  figures: readonly string[];
  spans: readonly Quantity[];
  marks: ReadonlySet<Mark>;
  isNegated: boolean;
}

/** A word of a claim. */
export interface ClaimWord {
  likeness: Likeness;
  weight: number;
  /** True for an everyday word, which alone claims nothing. */
  isCommon: boolean;
  /** True for a word with a capital within a sentence, if no public text has it. */
  isUnknownName: boolean;
}

/** What the evidence must say too: that something holds in all cases, or costs nothing. */
export type Mark = "universal" | "free";

const FREE = ["free", "included"];
const CLAUSE = /[,;:](?!\d)|[–—](?!\d)|\s(?:and|but|und|aber|sowie|et|mais|y|pero|e|ma|en|maar|mas|or|oder|ou|o|of)\s/u;

/** Splits a text at its commas and conjunctions. */
export function clauseTexts(text: string): string[] {
  return text.split(CLAUSE);
}

/** The marks of a text. */
export function marksIn(text: string, language: string): Set<Mark> {
  const isFree = termsIn(text, language).some((term) => FREE.some((matter) => mattersIn(term).has(matter)));
  return new Set([
    ...(isUniversal(text, language) ? (["universal"] as const) : []),
    ...(isFree ? (["free"] as const) : []),
  ]);
}

/** Reads a unit of public text. */
export function witnessOf(unit: Unit, strengths: Strengths): Witness {
  const { language } = unit.section;
  const { headings, leadIn, columns = [], cells = [], table, links, kind } = unit.block;
  const clause = (part: string) => clauseOf(part, language);
  const addresses = links.map(({ href }) => href.replace(/^(?:mailto|tel):/i, ""));
  const text = plainText(kind === "row" ? unit.text.replaceAll("\t", " ; ") : unit.text);
  const above = [headings.at(-1) ?? "", leadIn];
  return {
    unit,
    strengths,
    figures: figuresIn([text, ...headings, leadIn, ...columns, ...addresses].join(" ; "), language),
    clauses: clauseTexts(text).map(clause),
    label: table === undefined ? undefined : clause(cells[0] ?? ""),
    cells: columns.slice(1).map((name, at) => ({ name: clause(name), cell: clause(cells[at + 1]!) })),
    marks: marksIn([text, ...above].join(" ; "), language),
    isNegated: above.some((line) => isNegated(line.endsWith("?") ? text.split(" ", 1)[0]! : line, language)),
  };
}

function clauseOf(text: string, language: string): Clause {
  return {
    strengths: new Map(termsIn(text, language).map((term) => [term, 1])),
    figures: figuresIn(text, language),
    spans: spansIn(text, language),
    isNegated: isNegated(text, language),
  };
}
