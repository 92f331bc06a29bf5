import { holdsFigure } from "./figures.ts";
import { strengthOf } from "./library.ts";
import type { Likeness } from "./matching.ts";
import { isNumbered, type Quantity } from "./measures.ts";
import { type Bound, boundsIn, namedWith } from "./phrases.ts";
import type { weekdayWords } from "./weekdays.ts";
import { type Atom, clauseTexts, namesIn, type Witness } from "./witnesses.ts";
import { termsIn } from "./words.ts";

/** What a sentence of a model claims, or one of its clauses. */
export interface Claim {
  language: string;
  words: readonly ClaimWord[];
  figures: readonly string[];
  spans: readonly Quantity[];
  /** It says that a figure is the least or the most. */
  bounds: readonly Bound[];
  isNegated: boolean;
  /** Its sides of pairs of opposites; a clause that says the other side negates it. */
  states: readonly number[];
  /** The days of the week that it names. */
  days: ReturnType<typeof weekdayWords>;
  /** It holds in all cases, costs nothing, or is included; the evidence must say so too. */
  isUniversal: boolean;
  isFree: boolean;
  isIncluded: boolean;
  /** It says that a tax is included. */
  isTaxed: boolean;
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

/** A range or a sign: "8–13", "14+". */
const BOUND_SIGN = /\d\s?[-–+]|[<>≤≥]/u;
/** The weight of a name of a row or column that the claim says in whole. */
const WHOLE = 0.5;

/** True if a witness says all of a claim, and its figures of the same things. `all` are the witnesses of its section. */
export function bearsOut(witness: Witness, all: readonly Witness[], claim: Claim): boolean {
  return (
    claim.figures.every((figure) => holdsFigure(witness.figures, figure) || isEqualSpan(witness, claim, figure)) &&
    (witness.isUniversal || !claim.isUniversal) &&
    (witness.isFree || !claim.isFree) &&
    (witness.isFree || !claim.isIncluded || isNamedWith(witness, claim)) &&
    spansAgree(witness, claim) &&
    daysAgree(witness, all, claim) &&
    boundsAgree(witness, claim) &&
    figuresAgree(witness, all, claim)
  );
}

/** True if a witness names something of a claim after "with": "prices with VAT", but not "breakfast with eggs", include what is named. */
function isNamedWith({ text, unit }: Witness, { words }: Claim): boolean {
  const { language } = unit.section;
  const named = clauseTexts(text, language).flatMap((clause) => termsIn(namedWith(clause, language), language));
  return words.some(({ likeness, isCommon }) => !isCommon && nearest(named, likeness) > 0);
}

/** True for the number of a span that a witness says in another unit of time, or as a range around it. */
function isEqualSpan({ atoms }: Witness, claim: Claim, figure: string): boolean {
  const said = atoms.flatMap((atom) => atom.spans).filter(isNumbered);
  return claim.spans.some(
    (span) => figure === `number ${span.number}` && said.some((other) => isSaid(span, other, claim)),
  );
}

/** True for a span that another one equals, or contains: of "7 to 14 days", 10 are no bound, nor is "8 to 9" the range. */
function isSaid(span: Quantity, other: Quantity, { bounds }: Claim): boolean {
  const isBound = span.ends[0] < span.ends[1] || bounds.some((kind) => kind !== "both");
  const [least, most] = isBound ? [other.size, other.size] : other.ends;
  return span.base === other.base && least <= span.size && span.size <= most;
}

/**
 * A price per month isn't one per day, 35 hours aren't 35 days, and half an hour isn't any other span. In a row, the cells of the figures
 * say their spans.
 */
function spansAgree({ atoms, strengths }: Witness, claim: Claim): boolean {
  const { figures, spans, words } = claim;
  const isOwn = (atom: Atom) => atom.row.length === 0 || figures.some((figure) => holdsFigure(atom.figures, figure));
  const all = atoms.filter(isOwn).flatMap((atom) => atom.spans);
  // "Weeks: 10" says its unit elsewhere, "under 6" none.
  const isUnitSaid = words.some(({ isCounted, likeness }) => isCounted && strengthOf(strengths, likeness) > 0);
  const isSaidApart = ({ unit, number }: Quantity) =>
    all.every((span) => span.number !== number) && (unit === "year" || isUnitSaid);
  const fits = (span: Quantity) =>
    all.some((other) => isSaid(span, other, claim)) ||
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
function boundsAgree(witness: Witness, claim: Claim): boolean {
  const { text, unit } = witness;
  const { bounds, figures } = claim;
  if (figures.length === 0 || bounds.length === 0 || BOUND_SIGN.test(text)) return true;
  if (bounds.every((kind) => isEnd(kind, witness, claim))) return true;
  const said = boundsIn(text, unit.section.language);
  if (bounds.every(isRaised) && said.length > 0 && said.every((kind) => kind === "atMost")) return false;
  const isSaid = (bound: "atLeast" | "atMost", near: "more" | "less") =>
    !bounds.includes(bound) || said.some((kind) => kind === bound || kind === near || kind === "both");
  return isSaid("atLeast", "more") && isSaid("atMost", "less");
}

/** True for a bound that is an end of a range: "up to three months" of "one to three months". That of an amount is of no span. */
function isEnd(kind: Bound, { atoms }: Witness, { spans, figures }: Claim): boolean {
  if (figures.some((figure) => figure.startsWith("amount "))) return false;
  const said = atoms.flatMap((atom) => atom.spans).filter(({ ends: [least, most] }) => least < most);
  const isOf = ({ base, ends }: Quantity, span: Quantity) =>
    base === span.base && ends[isRaised(kind) ? 0 : 1] === span.size;
  return said.some((range) => spans.some((span) => isOf(range, span)));
}

function isRaised(kind: Bound): boolean {
  return kind === "atLeast" || kind === "more";
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
  if (claim.hasNoCharge && witness.hasNoCharge && !claim.isIncluded) return false;
  if (claim.isTaxed && witness.isUntaxed) return true;
  // "Open until 5 pm" is "closes at 5 pm".
  const isHour = ({ figures }: Atom) => claim.figures.length > 0 && [...figures].some((one) => one.startsWith("time "));
  const isOpposite = (atom: Atom) => atom.states.some((state) => claim.states.includes(-state)) && !isHour(atom);
  const atoms = witness.atoms.map((atom) => (isOpposite(atom) ? { ...atom, isNegated: !atom.isNegated } : atom));
  const shares = atoms.map(({ column }) => shareSaid(column, claim));
  const named = atoms.filter((_, at) => shares[at] === Math.max(...shares));
  const isPlain = !claim.isNegated && claim.figures.length === 0;
  const isTelling = ({ isCommon }: ClaimWord) => !isCommon || claim.isIncluded;
  if (isPlain && claim.words.some((word) => isTelling(word) && isOnlyDenied(atoms, word))) return true;
  return named.every(({ isNegated }) => isNegated !== claim.isNegated);
}

/** True for a word that only clauses with a negation contain: "theft" of "it covers damage; it does not cover theft". */
function isOnlyDenied(atoms: readonly Atom[], { likeness }: ClaimWord): boolean {
  const own = atoms.filter(({ terms }) => nearest(terms, likeness) >= 1);
  return own.length > 0 && own.length < atoms.length && own.every(({ isNegated }) => isNegated);
}

/** The greatest likeness of some terms to a word. */
function nearest(terms: readonly string[], likeness: Likeness): number {
  return Math.max(0, ...terms.map((term) => likeness.get(term) ?? 0));
}

/** `amount GBP` of `amount GBP 9`. */
function kindOf(figure: string): string {
  return figure.slice(0, figure.lastIndexOf(" "));
}
