import { LRUCache } from "lru-cache";
import { wordsOf } from "../../../schemas/languages.ts";
import { lazy, lazyByKey } from "../../platform/lazy.ts";
import { plainText } from "../../platform/markdown.ts";
import { type Figures, figuresIn, holdsFigure, isUnitName } from "./figures.ts";
import { type Strengths, strengthOf } from "./library.ts";
import { isAbout, type Likeness } from "./matching.ts";
import { isNumbered, isUnit, type Quantity, spansIn } from "./measures.ts";
import { alternatives, boundsIn, isNegated, isUniversal, statesIn } from "./phrases.ts";
import type { Unit } from "./sections.ts";
import { isWeekday, weekdaysIn, type weekdayWords } from "./weekdays.ts";
import { termsIn } from "./words.ts";

/** What a sentence of a model claims, or one of its clauses. */
export interface Claim {
  language: string;
  words: readonly ClaimWord[];
  figures: readonly string[];
  spans: readonly Quantity[];
  /** It says that a figure is the least or the most. */
  bounds: ReturnType<typeof boundsIn>;
  isNegated: boolean;
  /** Its sides of pairs of opposites; a clause that says the other side negates it. */
  states: readonly number[];
  /** The days of the week that it names. */
  days: ReturnType<typeof weekdayWords>;
  /** It holds in all cases, and it costs nothing; the evidence must say so too. */
  isUniversal: boolean;
  isFree: boolean;
  /** It says "free", or "no charge", in which the negation contradicts nothing. */
  hasNoCharge: boolean;
}

/** A word of a claim. */
export interface ClaimWord {
  likeness: Likeness;
  weight: number;
  /** True for an everyday word, which alone claims nothing. */
  isCommon: boolean;
  /** True for the month of a date and the unit of a number, which are compared as figures. */
  isCounted: boolean;
}

/** The smallest part of a text that says something: a clause, or a cell with the names of its row and column. */
interface Atom {
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
  hasNoCharge: boolean;
  /** The text with its headings and the names of its columns. */
  text: string;
  /** The days of the week that the text, its heading, its introduction name, else its columns; read once. */
  days: () => ReadonlySet<number>;
  atoms: readonly Atom[];
}

const BLANK = /^(?:[\s\p{Pd}x×✕✖✗✘❌❎]*|n\/?a)$/iu;
/** A range or a sign: "8–13", "14+". */
const BOUND_SIGN = /\d\s?[-–+]|[<>≤≥]/u;
/** The weight of a name of a row or column that the claim says in whole. */
const WHOLE = 0.5;

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
    isUniversal: isUniversal(line, language),
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
  const figures = [...whole, ...linesOf([...headings, ...columns])].flatMap((line) => [...line.figures]);
  // "Not included" negates what it introduces, and "No" answers the question of a heading.
  const isDenied = above.some((line) =>
    line.endsWith("?") ? isNegated(text.split(" ", 1)[0]!, language) : lineOf(line, language).isNegated,
  );
  return {
    unit,
    strengths,
    text: [text, ...headings, ...above, ...columns].join(" ; "),
    days: lazy(() => daysOf([[text, ...above].join(" ; "), columns.join(" ; ")], language)),
    figures: new Set([...figures, ...figuresIn(addresses.join(" ; "), language)]),
    isUniversal: whole.some((line) => line.isUniversal),
    isFree: whole.some((line) => line.isFree),
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
function namesIn(terms: readonly string[] = []): string[] {
  return terms.filter((term) => !/^\p{N}/u.test(term));
}

/** True if a witness says all of a claim, and its figures of the same things. `all` are the witnesses of its section. */
export function bearsOut(witness: Witness, all: readonly Witness[], claim: Claim): boolean {
  return (
    claim.figures.every((figure) => holdsFigure(witness.figures, figure) || isEqualSpan(witness, claim, figure)) &&
    (witness.isUniversal || !claim.isUniversal) &&
    (witness.isFree || !claim.isFree) &&
    spansAgree(witness, claim) &&
    daysAgree(witness, all, claim) &&
    boundsAgree(witness, claim) &&
    figuresAgree(witness, all, claim)
  );
}

/** True for the number of a span of time that a witness says in another unit. */
function isEqualSpan({ atoms }: Witness, { spans }: Claim, figure: string): boolean {
  const said = atoms.flatMap((atom) => atom.spans).filter(isNumbered);
  return spans.some(({ number, size }) => figure === `number ${number}` && said.some((span) => span.size === size));
}

/**
 * A price per month isn't one per day, 35 hours aren't 35 days, and half an hour isn't any other span. In a row, the cells of the figures
 * say their spans.
 */
function spansAgree({ atoms, strengths }: Witness, { figures, spans, words }: Claim): boolean {
  const isOwn = (atom: Atom) => atom.row.length === 0 || figures.some((figure) => holdsFigure(atom.figures, figure));
  const all = atoms.filter(isOwn).flatMap((atom) => atom.spans);
  // "Weeks: 10" says its unit elsewhere, "under 6" none.
  const isUnitSaid = words.some(({ isCounted, likeness }) => isCounted && strengthOf(strengths, likeness) > 0);
  const isSaidApart = ({ unit, number }: Quantity) =>
    all.every((span) => span.number !== number) && (unit === "year" || isUnitSaid);
  const fits = (span: Quantity) =>
    all.some(({ size }) => size === span.size) ||
    (span.count === undefined ? all.length === 0 : span.number !== undefined && isSaidApart(span));
  const isTimed = figures.some((figure) => figure.startsWith("time "));
  const isChecked = ({ unit, count, number }: Quantity) =>
    figures.length > 0 ? !(isTimed && unit === "hour") : count !== undefined && number === undefined;
  return spans.filter(isChecked).every(fits);
}

/** What a text says of some days, it says of no others. Without a figure, each day may have a row of its own. */
function daysAgree(witness: Witness, all: readonly Witness[], { days, figures }: Claim): boolean {
  if (days.length === 0 || witness.atoms.some(({ isNegated }) => isNegated)) return true;
  const saying = figures.length > 0 && witness.days().size > 0 ? [witness] : all;
  if (saying.every((one) => one.days().size === 0)) return true;
  return days.every((word) => saying.some((one) => word.some((day) => one.days().has(day))));
}

/** A price isn't "at least" that price; "14 days or more" is a bound too, and "4 to 8" or "14 days before" one of both kinds. */
function boundsAgree({ text, unit }: Witness, { bounds, figures }: Claim): boolean {
  if (figures.length === 0 || bounds.length === 0 || BOUND_SIGN.test(text)) return true;
  const said = boundsIn(text, unit.section.language);
  const isRaised = (kind: (typeof bounds)[number]) => kind === "atLeast" || kind === "more";
  if (bounds.every(isRaised) && said.length > 0 && said.every((kind) => kind === "atMost")) return false;
  const isSaid = (bound: "atLeast" | "atMost", near: "more" | "less") =>
    !bounds.includes(bound) || said.some((kind) => kind === bound || kind === near || kind === "both");
  return isSaid("atLeast", "more") && isSaid("atMost", "less");
}

/** No figure is said of what another clause or cell of its kind speaks of more than its own. Amounts say most. */
export function figuresAgree(witness: Witness, all: readonly Witness[], claim: Claim): boolean {
  const { table } = witness.unit.block;
  const rows = all.filter(({ unit }) => table !== undefined && unit.block.table === table);
  const amounts = claim.figures.filter((figure) => figure.startsWith("amount "));
  const claimed = amounts.length > 0 ? amounts : claim.figures;
  const others = [witness, ...rows]
    .flatMap(({ atoms }) => atoms)
    .filter(({ figures }) => !claimed.some((figure) => holdsFigure(figures, figure)));
  return claimed.every((figure) => {
    const most = (atoms: readonly Atom[]) => Math.max(0, ...atoms.map((atom) => closeness(atom, claim, figure)));
    const own = witness.atoms.filter(({ figures }) => holdsFigure(figures, figure));
    const isRival = (atom: Atom) =>
      isBlankBeside(atom, own, claim) || [...atom.figures].some((other) => kindOf(other) === kindOf(figure));
    const rivals = others.filter(isRival);
    if (own.length === 0) return true;
    if (rivals.some((rival) => isWhole(rival, own, claim))) return false;
    return own.some((atom) => isWhole(atom, rivals, claim)) || most(own) >= most(rivals);
  });
}

/** True for a blank cell in the row or column of another one, if the claim says its other name. */
function isBlankBeside(atom: Atom, own: readonly Atom[], claim: Claim): boolean {
  const isSame = (one: readonly string[], other: readonly string[]) => one.join(" ") === other.join(" ");
  const isBeside = ({ row, column }: Atom) =>
    (isSame(row, atom.row) && isNamed(atom.column, claim)) || (isSame(column, atom.column) && isNamed(atom.row, claim));
  return atom.isBlank && own.some(isBeside);
}

/** True if a claim says a word or number of a name, or one like it. */
function isNamed(name: readonly string[], claim: Claim): boolean {
  return (
    claim.words.some(({ likeness }) => nearest(name, likeness) > 0) || name.some((term) => saysNumber(claim, term))
  );
}

/** True if a claim says all words of a clause, one of which other clauses lack: "fabric" of "zips ten years, fabric five". */
function isWhole({ terms, row }: Atom, others: readonly Atom[], { words }: Claim): boolean {
  const written = namesIn(terms);
  const said = words.filter(({ likeness }) => nearest(written, likeness) > 0);
  const isSaid = (term: string) => said.some(({ likeness }) => likeness.get(term) === 1);
  const isOwn = ({ likeness }: ClaimWord) => others.every((other) => nearest(other.terms, likeness) === 0);
  return row.length === 0 && written.every(isSaid) && said.some(isOwn);
}

/** How much a claim speaks of a clause, apart from a figure, or of the names of a cell: by words, numbers, and names in whole. */
function closeness({ terms, row, column }: Atom, claim: Claim, figure: string): number {
  const names = [...row, ...column];
  const about = names.length > 0 ? names : terms.filter((term) => figure !== `number ${term}`);
  const said = claim.words.reduce((sum, { likeness, weight }) => sum + weight * nearest(about, likeness), 0);
  const numbers = about.filter((term) => saysNumber(claim, term)).length;
  return said + numbers + WHOLE * [row, column].filter((name) => shareSaid(name, claim) === 1).length;
}

/** The share of a name's terms that a claim says: all of "e-bike" in "the e-bike costs", but not of "cargo e-bike". */
function shareSaid(name: readonly string[], claim: Claim): number {
  const isSaid = (term: string) =>
    saysNumber(claim, term) || claim.words.some(({ likeness }) => likeness.get(term) === 1);
  return name.filter(isSaid).length / (name.length || 1);
}

/** True if a claim says a number, and not as an amount: "£4" speaks of no child of 4. */
function saysNumber({ figures }: Claim, term: string): boolean {
  return (
    figures.includes(`number ${term}`) && !figures.some((one) => one.startsWith("amount ") && one.endsWith(` ${term}`))
  );
}

/** True if the cells of the named columns, or all clauses, negate what the claim affirms or the other way round, or if they deny a word of it. */
export function contradicts(witness: Witness, claim: Claim): boolean {
  if (claim.hasNoCharge && witness.hasNoCharge) return false;
  // "Open until 5 pm" is "closes at 5 pm".
  const isHour = ({ figures }: Atom) => claim.figures.length > 0 && [...figures].some((one) => one.startsWith("time "));
  const isOpposite = (atom: Atom) => atom.states.some((state) => claim.states.includes(-state)) && !isHour(atom);
  const atoms = witness.atoms.map((atom) => (isOpposite(atom) ? { ...atom, isNegated: !atom.isNegated } : atom));
  const shares = atoms.map(({ column }) => shareSaid(column, claim));
  const named = atoms.filter((_, at) => shares[at] === Math.max(...shares));
  const isPlain = !claim.isNegated && claim.figures.length === 0;
  if (isPlain && claim.words.some((word) => isOnlyDenied(atoms, word))) return true;
  return named.every(({ isNegated }) => isNegated !== claim.isNegated);
}

/** True for a word that only clauses with a negation contain: "theft" of "it covers damage; it does not cover theft". */
function isOnlyDenied(atoms: readonly Atom[], { likeness, isCommon }: ClaimWord): boolean {
  const own = atoms.filter(({ terms }) => nearest(terms, likeness) >= 1);
  return !isCommon && own.length > 0 && own.length < atoms.length && own.every(({ isNegated }) => isNegated);
}

/** The greatest likeness of some terms to a word. */
function nearest(terms: readonly string[], likeness: Likeness): number {
  return Math.max(0, ...terms.map((term) => likeness.get(term) ?? 0));
}

/** `amount GBP` of `amount GBP 9`. */
function kindOf(figure: string): string {
  return figure.slice(0, figure.lastIndexOf(" "));
}
