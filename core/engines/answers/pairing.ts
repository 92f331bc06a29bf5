import { holdsFigure } from "./figures.ts";
import { strengthOf } from "./library.ts";
import type { Quantity } from "./measures.ts";
import type { Claim, ClaimWord, Clause, Witness } from "./witnesses.ts";

/** The least strength of a word in a row that other rows have too. */
const OTHER = 0.75;

/** True if a witness says its figures of what the claim says them of: in the same row and column or clause, and per the same span of time. */
export function pairsUp(witness: Witness, witnesses: readonly Witness[], claim: Claim): boolean {
  const { label } = witness;
  if (!spansAgree(witness, claim)) return false;
  if (label === undefined) return clausesPairUp(witness, claim);
  const { table } = witness.unit.block;
  const rows = witnesses.filter((other) => other !== witness && other.unit.block.table === table);
  const isElsewhere = (word: ClaimWord) =>
    strengthOf(witness.strengths, word.likeness) < OTHER && rows.some((row) => speaksOf(row.label!, word));
  const isAnother = claim.figures.length > 0 && shareSaid(label, claim) < 1;
  if (isAnother && rows.some((row) => shareSaid(row.label!, claim) === 1)) return false;
  return !claim.words.some(isElsewhere) && columnsPairUp(witness, label, claim);
}

/** True if all clauses, or the cells of the named columns, negate what the claim affirms or the other way round, or if they deny a word of it. */
export function contradicts(witness: Witness, claim: Claim): boolean {
  const isOpposite = (clause: Clause) => (witness.isNegated || clause.isNegated) !== claim.isNegated;
  const isPlain = !claim.isNegated && claim.figures.length === 0;
  if (isPlain && claim.words.some((word) => isOnlyDenied(witness, word))) return true;
  const named = namedCells(witness, claim).map(({ cell }) => cell);
  return (named.length > 0 ? named : witness.clauses).every(isOpposite);
}

/** True for a word that only clauses with a negation contain: "theft" of "it covers damage; it does not cover theft". */
function isOnlyDenied({ clauses }: Witness, word: ClaimWord): boolean {
  const own = clauses.filter((clause) => speaksOf(clause, word));
  return !word.isCommon && own.length > 0 && own.length < clauses.length && own.every(({ isNegated }) => isNegated);
}

/** A price per month isn't one per day, and 35 hours aren't 35 days. */
function spansAgree({ clauses, cells }: Witness, { figures, spans }: Claim): boolean {
  const own = clauses.flatMap((clause) => clause.spans);
  const all = [...own, ...cells.flatMap(({ name }) => name.spans)];
  const has = ({ unit }: Quantity, count?: string) => all.some((span) => span.unit === unit && span.count === count);
  const fits = (span: Quantity) =>
    span.isRate
      ? all.length === 0 || has(span)
      : span.count === undefined || has(span, span.count) || own.every(({ count }) => count !== span.count);
  return figures.length === 0 || spans.every(fits);
}

/** A figure is not said of what the clauses with figures of its kind name: their words weigh no more than those of its own clause. */
function clausesPairUp({ clauses }: Witness, { figures, words }: Claim): boolean {
  const figure = figures.find((one) => one.startsWith("amount ")) ?? figures[0];
  if (figure === undefined || figures.some((other) => numberIn(other) !== numberIn(figure))) return true;
  const own = clauses.filter((clause) => holdsFigure(clause.figures, figure));
  const others = clauses.filter(
    (clause) => !own.includes(clause) && [...clause.figures].some((other) => kindOf(other) === kindOf(figure)),
  );
  const weightOf = (some: readonly Clause[], but: readonly Clause[]) =>
    words
      .filter((word) => some.some((one) => speaksOf(one, word)) && !but.some((one) => speaksOf(one, word)))
      .reduce((sum, { weight }) => sum + weight, 0);
  return own.length === 0 || weightOf(others, own) <= weightOf(own, others);
}

/** No word of the claim is only in columns that it doesn't name, nor a figure, where a named one has another figure of its kind. */
function columnsPairUp(witness: Witness, label: Clause, claim: Claim): boolean {
  const { words, figures } = claim;
  const named = namedCells(witness, claim);
  const known = [label, ...named.flatMap(({ name, cell }) => [name, cell])];
  const isAstray = (isIn: (clause: Clause) => boolean) =>
    named.length > 0 && !known.some(isIn) && witness.cells.some(({ cell }) => isIn(cell));
  const rivals = named.flatMap(({ cell }) => [...cell.figures].filter((figure) => !figures.includes(figure)));
  const hasRival = (figure: string) => rivals.some((other) => kindOf(other) === kindOf(figure));
  return !(
    words.some((word) => isAstray((clause) => speaksOf(clause, word))) ||
    figures.some((figure) => hasRival(figure) && isAstray((clause) => holdsFigure(clause.figures, figure)))
  );
}

/** The cells of a row whose columns a claim names best; none if it names none or all alike. */
function namedCells({ cells }: Witness, claim: Claim): Witness["cells"] {
  const shares = cells.map(({ name }) => shareSaid(name, claim));
  const most = Math.max(0, ...shares);
  const found = cells.filter((_, at) => most > 0 && shares[at] === most);
  return found.length === cells.length ? [] : found;
}

/** The share of a label's terms that a claim says: all of "e-bike" in "the e-bike costs", but not of "cargo e-bike". */
function shareSaid({ strengths }: Clause, { figures, words }: Claim): number {
  // The "e" of "e-bike" is no word of its own.
  const terms = [...strengths.keys()].filter((term) => !/^[a-z]$/.test(term));
  const said = terms.filter(
    (term) => figures.includes(`number ${term}`) || words.some(({ likeness }) => likeness.get(term) === 1),
  );
  return said.length / (terms.length || 1);
}

function speaksOf({ strengths }: Clause, { likeness }: ClaimWord): boolean {
  return strengthOf(strengths, likeness) >= 1;
}

/** `amount GBP` of `amount GBP 9`. */
function kindOf(figure: string): string {
  return figure.slice(0, figure.lastIndexOf(" "));
}

function numberIn(figure: string): string {
  return figure.slice(figure.lastIndexOf(" ") + 1);
}
