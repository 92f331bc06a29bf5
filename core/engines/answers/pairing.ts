import { holdsFigure } from "./figures.ts";
import { strengthOf } from "./library.ts";
import type { Quantity } from "./measures.ts";
import { type Claim, type ClaimWord, type Clause, clauseOf, type NamedCell, type Witness } from "./witnesses.ts";

/** The least strength of a word in a row that other rows have too. */
const OTHER = 0.75;

/** True if a witness says its figures of what the claim says them of: in the same row and column or clause, and per the same span of time. */
export function pairsUp(witness: Witness, witnesses: readonly Witness[], claim: Claim): boolean {
  const { cells, table } = witness.unit.block;
  if (!spansAgree(witness, claim)) return false;
  if (!cells || table === undefined) return clausesPairUp(witness, claim);
  const rows = witnesses.filter((other) => other !== witness && other.unit.block.table === table);
  const isElsewhere = (word: ClaimWord) =>
    strengthOf(witness.strengths, word.likeness) < OTHER && rows.some((row) => speaksOf(row.clauses[0]!, word));
  if (claim.figures.length > 0 && !isNamed(witness, claim) && rows.some((row) => isNamed(row, claim))) return false;
  return !claim.words.some(isElsewhere) && columnsPairUp(witness, claim);
}

/** True if a claim has every word of a row's label: "e-bike" of "the e-bike costs", but not "cargo e-bike". */
function isNamed({ label }: Witness, { words, figures }: Claim): boolean {
  const isSaid = (term: string) =>
    figures.includes(`number ${term}`) || words.some(({ likeness }) => likeness.get(term) === 1);
  return label.length > 0 && label.every(isSaid);
}

/** True if the clauses that share most words with the claim, or have its figures, negate it, or affirm what it negates. */
export function contradicts(witness: Witness, claim: Claim): boolean {
  const isOpposite = (clause: Clause) => (witness.isNegated || clause.negated) !== claim.negated;
  const isSaidOf = (clause: Clause) => claim.words.some((word) => !word.isCommon && speaksOf(clause, word, 0.8));
  if (claim.negated && witness.clauses.some((clause) => clause.negated && isSaidOf(clause))) return false;
  if (!claim.negated && claim.figures.length === 0 && claim.words.some((word) => isOnlyDenied(witness, word)))
    return true;
  const cells = namedCells(witness, claim).map(({ cell }) => cell);
  if (cells.length > 0) return cells.every(isOpposite) && claim.figures.length === 0;
  const own = witness.clauses.filter(({ figures }) => claim.figures.some((figure) => holdsFigure(figures, figure)));
  const clauses = own.length > 0 ? own : witness.clauses;
  const shares = clauses.map(({ strengths }) =>
    claim.words.reduce((sum, { likeness, weight }) => sum + weight * strengthOf(strengths, likeness), 0),
  );
  const best = Math.max(...shares);
  return clauses.filter((_, at) => shares[at]! >= best * 0.9).every(isOpposite);
}

/** True for a word that only clauses with a negation contain: "theft" of "it covers damage; it does not cover theft". */
function isOnlyDenied({ clauses }: Witness, word: ClaimWord): boolean {
  const own = clauses.filter((clause) => speaksOf(clause, word));
  return !word.isCommon && own.length > 0 && own.length < clauses.length && own.every(({ negated }) => negated);
}

/** A price per month isn't one per day, and 35 hours aren't 35 days. */
function spansAgree({ clauses, cells }: Witness, claim: Claim): boolean {
  const cites = ({ figures }: Clause) => claim.figures.some((figure) => holdsFigure(figures, figure));
  const own = clauses.filter(cites).flatMap(({ spans }) => spans);
  const spans = own.some(({ count }) => count === undefined) ? own : clauses.flatMap((clause) => clause.spans);
  const all = [...spans, ...cells.filter(({ cell }) => cites(cell)).flatMap(({ rates }) => rates)];
  const has = ({ unit }: Quantity, count?: string) => all.some((span) => span.unit === unit && span.count === count);
  const fits = (span: Quantity) =>
    span.isRate
      ? all.length === 0 || has(span)
      : span.count === undefined || has(span, span.count) || spans.every(({ count }) => count !== span.count);
  return claim.figures.length === 0 || claim.spans.every(fits);
}

/** A figure is not said of what the clauses with figures of its kind name: their words weigh no more than those of its own clause. */
function clausesPairUp({ clauses }: Witness, { figures, words }: Claim): boolean {
  const figure = figures.find((one) => one.startsWith("amount ")) ?? figures[0];
  if (figure === undefined || figures.some((other) => numberIn(other) !== numberIn(figure))) return true;
  const own = clauses.filter((clause) => holdsFigure(clause.figures, figure));
  const others = clauses.filter((clause) => !own.includes(clause) && hasKind(clause, figure));
  const weightOf = (some: readonly Clause[], but: readonly Clause[]) =>
    words
      .filter((word) => some.some((one) => speaksOf(one, word)) && !but.some((one) => speaksOf(one, word)))
      .reduce((sum, { weight }) => sum + weight, 0);
  return own.length === 0 || weightOf(others, own) <= weightOf(own, others);
}

/**
 * If a claim names some of the columns, its words must not be in the other columns alone, nor its figures, where a named column has another
 * figure of that kind.
 */
function columnsPairUp(witness: Witness, { figures, words, ...claim }: Claim): boolean {
  const named = namedCells(witness, { figures, words, ...claim });
  const others = witness.cells.filter((cell) => !named.includes(cell));
  const label = clauseOf(witness.unit.block.cells![0]!, witness.unit.section.language);
  const strays = (isIn: (clause: Clause) => boolean) =>
    !isIn(label) &&
    others.some(({ cell }) => isIn(cell)) &&
    !named.some(({ cell, named }) => isIn(cell) || isIn(named));
  const hasRival = (figure: string) => named.some(({ cell }) => hasKind(cell, figure, figures));
  return (
    named.length === 0 ||
    !(
      words.some((word) => strays((clause) => speaksOf(clause, word))) ||
      figures.some((figure) => strays((clause) => holdsFigure(clause.figures, figure)) && hasRival(figure))
    )
  );
}

/** The cells of a row whose columns a claim names best; none if it names none or all alike. */
function namedCells({ cells }: Witness, { plain, words, figures }: Claim): NamedCell[] {
  const isNamed = (term: string) =>
    words.some(({ likeness }) => likeness.get(term) === 1) ||
    (figures.includes(`number ${term}`) && !cells.some(({ cell }) => holdsFigure(cell.figures, `number ${term}`)));
  const shares = cells.map(({ name, named }) => {
    const terms = [...named.strengths.keys()];
    return ` ${plain} `.includes(` ${name} `) ? 1 : terms.filter(isNamed).length / (terms.length || 1);
  });
  const most = Math.max(0, ...shares);
  const found = cells.filter((_, at) => most > 0 && shares[at] === most);
  return found.length === cells.length ? [] : found;
}

function speaksOf({ strengths }: Clause, { likeness }: ClaimWord, least = 1): boolean {
  return strengthOf(strengths, likeness) >= least;
}

/** True if a clause has a figure of the same kind, besides the given ones. */
function hasKind({ figures }: Clause, figure: string, besides: readonly string[] = []): boolean {
  return [...figures].some((other) => kindOf(other) === kindOf(figure) && !besides.includes(other));
}

/** `amount GBP` of `amount GBP 9`. */
function kindOf(figure: string): string {
  return figure.slice(0, figure.lastIndexOf(" "));
}

function numberIn(figure: string): string {
  return figure.slice(figure.lastIndexOf(" ") + 1);
}
