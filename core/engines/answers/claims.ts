// Over 300 lines: the rules by which evidence supports a sentence; each of them weighs the same words.
import type { Block } from "./blocks.ts";
import { type Figures, figuresIn, holdsFigure, isUnitName } from "./figures.ts";
import { type Library, type Strengths, strengthOf } from "./library.ts";
import { plainText } from "./markdown.ts";
import { isCommon, type Likeness, mattersIn } from "./matching.ts";
import { isNegated, isUniversal, plainWords } from "./phrases.ts";
import type { Section, Unit } from "./sections.ts";
import { termsIn, wordsIn } from "./words.ts";

/** Whether public text supports a sentence, and the units that do. */
export interface Support {
  holds: boolean;
  units: Unit[];
}

/** A unit of public text that may support a claim. */
interface Witness {
  unit: Unit;
  strengths: Strengths;
  figures: Figures;
  clauses: readonly Clause[];
  /** Of a row whose columns have names: its cells after the label. */
  cells: readonly NamedCell[];
  /** Matters of its own text and of its headings. */
  matters: ReadonlySet<string>;
  /** The heading or the lead-in negates it, as "Not included" does. */
  isNegated: boolean;
  /** It speaks of all cases, as "always" does. */
  isUniversal: boolean;
}

interface Clause {
  strengths: Strengths;
  figures: Figures;
  negated: boolean;
}

/** What a sentence or one of its clauses claims. */
interface Claim {
  /** Folded words with one space between them. */
  plain: string;
  words: readonly ClaimWord[];
  figures: readonly string[];
  negated: boolean;
  isUniversal: boolean;
  isFree: boolean;
}

interface ClaimWord {
  likeness: Likeness;
  weight: number;
  /** True for an everyday word, which alone claims nothing. */
  isCommon: boolean;
  /** True for a word such as "costs", which a figure with a currency implies. */
  isPrice: boolean;
}

/** Cells of a row, each with the name of its column. */
interface NamedCell {
  name: string;
  named: Clause;
  cell: Clause;
}

/**
 * `withFigure` and `plain`: the least share of a claim's words that a unit and its surroundings contain. `neighbour`: the weight of
 * other units of the section. `price`: the factor of words of price next to an amount.
 */
const SUPPORT = { withFigure: 0.52, plain: 0.6, neighbour: 0.6, price: 0.2 };
/** Contact details are checked by themselves. */
const CONTACT = /^(?:mail|phone|link) /;
const CLAUSE = /[,;:](?!\d)|[–—](?!\d)|\s(?:and|but|und|aber|sowie|et|mais|y|pero|e|ma|en|maar|mas)\s/u;
/** Matters that say that something costs nothing. */
const FREE = ["free", "included"];
const UNSUPPORTED: Support = { holds: false, units: [] };

/**
 * Checks a model's sentences against public text. One unit must contain all figures of a clause and most of its words, names must be
 * known, and both sides must negate or neither.
 */
export class ClaimChecker {
  readonly #library: Library;
  readonly #witnesses = new Map<Section, Witness[]>();
  readonly #known: Figures;

  /** `known` are public addresses outside the sections: those of pages and links. */
  constructor(library: Library, known: Iterable<string>) {
    this.#library = library;
    this.#known = new Set(known);
  }

  /** Checks one sentence of a language against sections. */
  check(sentence: string, language: string, sections: readonly Section[]): Support {
    const text = plainText(sentence);
    const whole = this.#claimOf(withoutLinks(sentence), language);
    const contacts = whole.figures.filter((figure) => CONTACT.test(figure));
    const unknown = contacts.filter((figure) => !holdsFigure(this.#known, figure));
    const witnesses = unknown.length === 0 ? [] : sections.flatMap((section) => this.#witnessesOf(section));
    const reached = unknown.map((figure) => witnesses.find((witness) => holdsFigure(witness.figures, figure)));
    if (reached.includes(undefined)) return UNSUPPORTED;
    const claim = { ...whole, figures: whole.figures.filter((figure) => !CONTACT.test(figure)) };
    const isSmallTalk = contacts.length > 0 || claim.words.every(({ isCommon }) => isCommon);
    if (claim.figures.length === 0 && isSmallTalk) return { holds: true, units: unitsOf(reached) };
    const found = this.#supported(claim, sections) ?? this.#clausesSupported(text, language, sections);
    return found ? { holds: true, units: unitsOf([...reached, ...found]) } : UNSUPPORTED;
  }

  /** Each clause with a figure may have a witness of its own. */
  #clausesSupported(text: string, language: string, sections: readonly Section[]): Witness[] | undefined {
    const clauses = text.split(CLAUSE).map((clause) => this.#claimOf(clause, language));
    const claims = clauses.filter(({ figures }) => figures.length > 0);
    if (claims.length < 2) return undefined;
    const found = claims.map((claim) => this.#supported(claim, sections));
    return found.includes(undefined) ? undefined : found.flatMap((one) => one ?? []);
  }

  /** The witness that contains all figures and most words of a claim. */
  #supported(claim: Claim, sections: readonly Section[]): Witness[] | undefined {
    const bar = claim.figures.length > 0 ? SUPPORT.withFigure : SUPPORT.plain;
    const best = sections
      .flatMap((section) => sharesOf(claim.words, this.#witnessesOf(section)))
      .filter(({ share }) => share >= bar)
      .sort((one, other) => other.share - one.share)
      .find(({ witness }) => bearsOut(witness, this.#witnessesOf(witness.unit.section), claim));
    return best && !contradicts(best.witness, claim) ? [best.witness] : undefined;
  }

  #claimOf(text: string, language: string): Claim {
    const figures = [...figuresIn(text, language)].filter((figure) => !figure.startsWith("unit "));
    const hasPrice = figures.some((figure) => figure.startsWith("amount "));
    const [matters, negated] = [mattersOf(text, language), isNegated(text, language)];
    return {
      plain: plainWords(text),
      words: this.#wordsOf(plainText(text), language).map((word) =>
        hasPrice && word.isPrice ? { ...word, isCommon: true, weight: word.weight * SUPPORT.price } : word,
      ),
      figures,
      negated,
      isUniversal: isUniversal(text, language),
      isFree: !negated && FREE.some((matter) => matters.has(matter)),
    };
  }

  #wordsOf(text: string, language: string): ClaimWord[] {
    const found = new Map<string, ClaimWord>();
    for (const { text: word, terms: forms } of wordsIn(text, language)) {
      const [term] = forms;
      if (term === undefined || /^\p{N}|^[a-z]$/u.test(term) || found.has(term) || isUnitName(word)) continue;
      const likeness = this.#library.likenessOf({ forms }, language);
      const isEveryday = isCommon(term, language);
      const weight = this.#library.weightOf({ isCommon: isEveryday, weight: 1 }, likeness) / this.#library.rarest;
      found.set(term, { likeness, isCommon: isEveryday, isPrice: mattersIn(term).has("price"), weight });
    }
    return [...found.values()];
  }

  #witnessesOf(section: Section): Witness[] {
    const known = this.#witnesses.get(section);
    if (known) return known;
    const found = this.#library.strengthsOf(section).map(({ unit, strengths }) => witnessOf(unit, strengths));
    this.#witnesses.set(section, found);
    return found;
  }
}

function witnessOf(unit: Unit, strengths: Strengths): Witness {
  const { language, source } = unit.section;
  const { headings, leadIn, columns = [], links, kind } = unit.block;
  const addresses = links.map(({ href }) => href.replace(/^(?:mailto|tel):/i, ""));
  const around = [...headings, leadIn, ...columns, source.title, ...addresses].join(" ; ");
  const text = plainText(kind === "row" ? unit.text.replaceAll("\t", " ; ") : unit.text);
  const above = [headings.at(-1) ?? "", leadIn];
  return {
    unit,
    strengths,
    figures: figuresIn(`${text} ; ${around}`, language),
    clauses: text.split(CLAUSE).map((clause) => clauseOf(clause, language)),
    cells: cellsOf(unit.block, language),
    matters: mattersOf([text, ...above].join(" ; "), language),
    isNegated: above.some((line) => !line.endsWith("?") && isNegated(line, language)),
    isUniversal: isUniversal([text, ...above].join(" ; "), language),
  };
}

function clauseOf(text: string, language: string): Clause {
  const strengths = new Map(termsIn(text, language).map((term) => [term, 1]));
  return { strengths, figures: figuresIn(text, language), negated: isNegated(text, language) };
}

function mattersOf(text: string, language: string): Set<string> {
  return new Set(termsIn(text, language).flatMap((term) => [...mattersIn(term)]));
}

/** The shares of a claim's words that the witnesses of a section contain; what else is in the section counts for less. */
function sharesOf(words: readonly ClaimWord[], witnesses: readonly Witness[]): { witness: Witness; share: number }[] {
  const total = words.reduce((sum, { weight }) => sum + weight, 0);
  if (total === 0) return witnesses.map((witness) => ({ witness, share: 1 }));
  const isText = ({ unit }: Witness) => unit.block.kind === "text";
  const held = witnesses.map(({ strengths }) => words.map(({ likeness }) => strengthOf(strengths, likeness)));
  const most = (is: (witness: Witness) => boolean) =>
    words.map((_, word) => held.reduce((best, own, at) => (is(witnesses[at]!) ? Math.max(best, own[word]!) : best), 0));
  // Items and rows say nothing about each other.
  const [near, nearItem] = [most(() => true), most(isText)];
  return witnesses.map((witness, at) => {
    const around = isText(witness) ? near : nearItem;
    const strengths = held[at]!.map((own, word) => Math.max(own, around[word]! * SUPPORT.neighbour));
    return { witness, share: strengths.reduce((sum, one, word) => sum + one * words[word]!.weight, 0) / total };
  });
}

function bearsOut(witness: Witness, witnesses: readonly Witness[], claim: Claim): boolean {
  return (
    claim.figures.every((figure) => holdsFigure(witness.figures, figure)) &&
    (!claim.isUniversal || witness.isUniversal) &&
    (!claim.isFree || FREE.some((matter) => witness.matters.has(matter))) &&
    speaksItself(witness, claim) &&
    pairsUp(witness, witnesses, claim)
  );
}

/** The unit of a figure itself contains one of the claim's telling words, not only its surroundings. */
function speaksItself({ strengths }: Witness, { words, figures }: Claim): boolean {
  const telling = words.filter(({ isCommon }) => !isCommon);
  return (
    figures.length === 0 ||
    telling.length === 0 ||
    telling.some(({ likeness }) => strengthOf(strengths, likeness) > 0.3)
  );
}

/** True if the clauses that share most words with the claim negate it, or affirm what it negates. */
function contradicts(witness: Witness, claim: Claim): boolean {
  const isOpposite = (clause: Clause) => (witness.isNegated || clause.negated) !== claim.negated;
  const cells = namedCells(witness, claim).map(({ cell }) => cell);
  if (cells.length > 0) return cells.every(isOpposite) && claim.figures.length === 0;
  const shares = witness.clauses.map(({ strengths }) =>
    claim.words.reduce((sum, { likeness, weight }) => sum + weight * strengthOf(strengths, likeness), 0),
  );
  const best = Math.max(...shares);
  return witness.clauses.filter((_, at) => shares[at]! >= best * 0.9).every(isOpposite);
}

/** A figure must belong to the words next to it: those of its row and column, or of its clause. */
function pairsUp(witness: Witness, witnesses: readonly Witness[], claim: Claim): boolean {
  const { cells, table } = witness.unit.block;
  if (!cells || table === undefined) return clausesPairUp(witness, claim);
  const rows = witnesses.filter((other) => other !== witness && other.unit.block.table === table);
  const isElsewhere = ({ likeness }: ClaimWord) =>
    strengthOf(witness.strengths, likeness) < 0.5 &&
    rows.some((row) => strengthOf(row.clauses[0]!.strengths, likeness) >= 1);
  return !claim.words.some(isElsewhere) && columnsPairUp(witness, claim);
}

/** A figure is not said of what the clauses with other figures name: their words of the claim weigh no more than its own clause's. */
function clausesPairUp({ clauses }: Witness, { figures, words }: Claim): boolean {
  const [figure, ...more] = figures;
  if (figure === undefined || more.some((other) => other.split(" ").at(-1) !== figure.split(" ").at(-1))) return true;
  const own = clauses.filter((clause) => holdsFigure(clause.figures, figure));
  const others = clauses.filter((clause) => !own.includes(clause) && clause.figures.size > 0);
  const speaks = (list: readonly Clause[], { likeness }: ClaimWord) =>
    list.some(({ strengths }) => strengthOf(strengths, likeness) >= 1);
  const weightOf = (some: readonly Clause[], but: readonly Clause[]) =>
    words.reduce((sum, word) => sum + (speaks(some, word) && !speaks(but, word) ? word.weight : 0), 0);
  return own.length === 0 || weightOf(others, own) <= weightOf(own, others);
}

/** If a claim names some of the columns, its figures and words must not be in the other columns alone. */
function columnsPairUp(witness: Witness, claim: Claim): boolean {
  const named = namedCells(witness, claim);
  if (named.length === 0) return true;
  const own = new Set(named.map(({ name }) => name));
  const others = witness.cells.filter(({ name }) => !own.has(name));
  const strays = (isIn: (clause: Clause) => boolean) =>
    others.some(({ cell }) => isIn(cell)) && !named.some(({ cell }) => isIn(cell));
  const label = clauseOf(witness.unit.block.cells![0]!, witness.unit.section.language);
  const isWordOf = ({ strengths }: Clause, { likeness }: ClaimWord) => strengthOf(strengths, likeness) >= 1;
  return (
    !claim.figures.some(
      (figure) => !holdsFigure(label.figures, figure) && strays((cell) => holdsFigure(cell.figures, figure)),
    ) && !claim.words.some((word) => !isWordOf(label, word) && strays((cell) => isWordOf(cell, word)))
  );
}

/** The cells of a row whose columns a claim names; none if it names none or all. */
function namedCells({ cells }: Witness, { plain, words, figures }: Claim): NamedCell[] {
  const isOwn = (is: (one: NamedCell) => boolean) => (one: NamedCell) =>
    is(one) && cells.some((other) => other.name !== one.name && !is(other));
  const found = cells.filter(
    (one) =>
      isOwn(({ name }) => ` ${plain} `.includes(` ${name} `))(one) ||
      words.some(({ likeness }) => isOwn(({ named }) => strengthOf(named.strengths, likeness) >= 1)(one)) ||
      figures.some(
        (figure) =>
          !cells.some(({ cell }) => holdsFigure(cell.figures, figure)) &&
          isOwn(({ named }) => holdsFigure(named.figures, figure))(one),
      ),
  );
  return found.length === cells.length ? [] : found;
}

/** The cells of a row after its label, if its columns have names. */
function cellsOf({ cells = [], columns }: Block, language: string): NamedCell[] {
  if (!columns) return [];
  return cells.slice(1).map((cell, at) => ({
    name: plainWords(columns[at + 1]!),
    named: clauseOf(columns[at + 1]!, language),
    cell: clauseOf(cell, language),
  }));
}

function withoutLinks(text: string): string {
  return text.replace(/\[([^\][]*)\]\(\s*<?(?:(?:mailto|tel):)?([^\s)<>]*)>?[^)]*\)/gi, "$1 ; $2 ; ");
}

function unitsOf(witnesses: readonly (Witness | undefined)[]): Unit[] {
  return [...new Set(witnesses.flatMap((witness) => (witness ? [witness.unit] : [])))];
}
