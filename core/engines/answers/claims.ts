import { languages, wordsOf } from "../../../schemas/languages.ts";
import { type Figures, figuresIn, holdsFigure, isUnitName } from "./figures.ts";
import { type Library, type Section, strengthOf, type Strengths, type Unit } from "./library.ts";
import { isCommon, type Likeness, mattersIn } from "./matching.ts";
import { plainText } from "./markdown.ts";
import { isSpan } from "./shapes.ts";
import { fold, termsIn, wordsIn } from "./words.ts";

/** What a sentence says, held against public text: the units that it rests on, or undefined where it rests on none. */
export interface Verdict {
  holds: boolean;
  units: Unit[];
}

interface Witness {
  unit: Unit;
  strengths: Strengths;
  figures: Figures;
  /** Its clauses, each with its words, its figures and whether it denies. */
  clauses: readonly Clause[];
  /** The other main clauses of its sentence that deny something. */
  denials: readonly Clause[];
  /** What stands above it denies, as "Not included" does. */
  denied: boolean;
}

interface Clause {
  strengths: Strengths;
  figures: Figures;
  negated: boolean;
}

/** What a sentence or one clause of it claims. */
interface Claim {
  words: readonly ClaimWord[];
  figures: readonly string[];
  /** Small numbers that are written in passing, as in "our three houses": they may stand elsewhere in the section. */
  loose: ReadonlySet<string>;
  negated: boolean;
}

interface ClaimWord {
  likeness: Likeness;
  weight: number;
  /** True for a word of every day, which alone claims nothing. */
  isCommon: boolean;
}

/** Share of a claim's words that one unit and what stands around it must speak of: with a figure, and without. */
export const CLAIM = { withFigure: 0.52, plain: 0.6, neighbour: 0.6, span: 2, missing: 0.85, price: 0.2 };
/** What names a way to reach somebody is verified by itself. */
const REACHING = /^(?:mail|phone|link) /;
const MAIN_CLAUSE = /;|\s[–—]\s/;
const CLAUSE = /[,;:](?!\d)|[–—](?!\d)|\s(?:and|but|und|aber|sowie|et|mais|y|pero|e|ma|en|maar|mas)\s/u;

/**
 * Judges what a model says of public text: each figure must stand with the other figures of its clause in one unit that also
 * speaks of what the sentence speaks of; names must be known; a negation must be there on both sides or on neither.
 */
export class Judge {
  readonly #library: Library;
  readonly #witnesses = new Map<Section, Witness[]>();
  readonly #known: Figures;

  /** `known` holds what is public beside the sections: addresses of pages and links. */
  constructor(library: Library, known: Iterable<string>) {
    this.#library = library;
    this.#known = new Set(known);
  }

  /** Judges one sentence of a language against the sections that it names, or that were given. */
  judge(sentence: string, language: string, sections: readonly Section[]): Verdict {
    const text = plainText(sentence);
    if (this.#hasUnknownName(text, language)) return FAILS;
    const witnesses = sections.flatMap((section) => this.#witnessesOf(section));
    const claim = this.#claimOf(withoutLinks(sentence), language);
    const reaching = claim.figures.filter((figure) => REACHING.test(figure));
    const open = reaching.filter((figure) => !holdsFigure(this.#known, figure));
    const reached = open.map((figure) => witnesses.find((witness) => holdsFigure(witness.figures, figure)));
    if (reached.includes(undefined)) return FAILS;
    const counted = { ...claim, figures: claim.figures.filter((figure) => !REACHING.test(figure)) };
    const says = counted.words.some(({ isCommon }) => !isCommon);
    const isReached = counted.figures.length === 0 && (reaching.length > 0 || !says);
    if (isReached) return { holds: true, units: unitsOf(reached) };
    const found = this.#borneOut(counted, witnesses) ?? this.#clauses(text, language, witnesses);
    return found ? { holds: true, units: unitsOf([...reached, ...found]) } : FAILS;
  }

  /** Each clause with a figure may have a witness of its own. */
  #clauses(text: string, language: string, witnesses: readonly Witness[]): Witness[] | undefined {
    const clauses = text.split(CLAUSE).map((clause) => this.#claimOf(clause, language));
    const claims = clauses.filter(({ figures }) => figures.length > 0);
    if (claims.length < 2) return undefined;
    const found = claims.map((claim) => this.#borneOut(claim, witnesses));
    return found.includes(undefined) ? undefined : found.flatMap((one) => one ?? []);
  }

  /** The witness that holds all figures and speaks most of what is claimed, where that is enough. */
  #borneOut(claim: Claim, witnesses: readonly Witness[]): Witness[] | undefined {
    const [exact, loose] = [claim.figures.filter((figure) => !claim.loose.has(figure)), [...claim.loose]];
    const bar = claim.figures.length > 0 ? CLAIM.withFigure : CLAIM.plain;
    const scored = witnesses
      .map((witness, at) => ({ witness, ...shareOf(claim.words, witnesses, at) }))
      .filter(({ share, missing }) => share >= bar && missing <= CLAIM.missing)
      .sort((one, other) => other.share - one.share);
    const holds = ({ witness }: { witness: Witness }) =>
      exact.every((figure) => holdsFigure(witness.figures, figure)) &&
      loose.every((figure) => holdsFigure(witness.figures, figure) || inSection(witnesses, witness, figure)) &&
      speaksItself(witness, claim) &&
      pairsUp(witness, witnesses, claim);
    const best = scored.find(holds);
    if (!best) return undefined;
    return contradicts(best.witness, claim) ? undefined : [best.witness];
  }

  #claimOf(text: string, language: string): Claim {
    const figures = [...figuresIn(text, language)].filter((figure) => !figure.startsWith("unit "));
    const words = this.#wordsOf(
      plainText(text),
      language,
      figures.some((figure) => figure.startsWith("amount ")),
    );
    return { words, figures, loose: looseIn(text, language), negated: isNegated(text, language) };
  }

  #wordsOf(text: string, language: string, hasAmount: boolean): ClaimWord[] {
    const found = new Map<string, ClaimWord>();
    for (const { text: word, term } of wordsIn(text, language)) {
      if (term === "" || /^\p{N}|^[a-z]$/u.test(term) || found.has(term) || isUnitName(word)) continue;
      const others = Object.keys(languages).flatMap((code) => wordsIn(word, code).map((other) => other.term));
      const forms = [...new Set([term, ...others])].filter((form) => form !== "");
      const likeness = this.#library.likenessOf({ forms }, language);
      const weight = this.#library.weightOf({ text: word, forms, weight: isSpan(word) ? CLAIM.span : 1 }, likeness);
      const near = likeness.size === 0 ? 1 : Math.max(...likeness.values());
      // A figure with a unit says by itself that something costs so much.
      const isPrice = hasAmount && forms.some((form) => mattersIn(form).has("price"));
      found.set(term, {
        likeness,
        isCommon: forms.some(isCommon),
        weight: (weight / this.#library.rarest) * near * (isPrice ? CLAIM.price : 1),
      });
    }
    return [...found.values()];
  }

  #witnessesOf(section: Section): Witness[] {
    const known = this.#witnesses.get(section);
    if (known) return known;
    const read = this.#library.strengthsOf(section).flatMap(({ unit, strengths }) => witnessesOf(unit, strengths));
    this.#witnesses.set(section, read);
    return read;
  }

  /** A capitalised word inside the sentence that no public text holds; German capitalises every noun. */
  #hasUnknownName(text: string, language: string): boolean {
    if (language === "de") return false;
    const names = [...text.matchAll(/(?<=[\p{Ll}\p{N},;]\s)\p{Lu}[\p{L}]{2,}/gu)];
    return names
      .filter(([name]) => !isUnitName(fold(name)))
      .some(([name]) =>
        wordsIn(name, language).every(
          ({ term }) =>
            term !== "" && !isCommon(term) && this.#library.likenessOf({ forms: [term] }, language).size === 0,
        ),
      );
  }
}

/** A unit as its main clauses, each of which may bear a claim out by itself. */
function witnessesOf(unit: Unit, strengths: Strengths): Witness[] {
  const { language, source } = unit.section;
  const { headings, leadIn, columns = [], links } = unit.block;
  const addresses = links.map(({ href }) => href.replace(/^(?:mailto|tel):/i, ""));
  const around = [...headings, leadIn, ...columns, source.title, ...addresses].join(" ; ");
  const denied = [headings.at(-1) ?? "", leadIn].some((line) => !line.endsWith("?") && isNegated(line, language));
  const mains =
    unit.block.kind === "row"
      ? [plainText(unit.text.replaceAll("\t", " ; "))]
      : plainText(unit.text).split(MAIN_CLAUSE);
  return mains.map((main) => {
    const own = new Set(termsIn(main, language));
    const others = mains.filter((other) => other !== main).map((other) => clauseOf(other, language));
    const clauses = main.split(CLAUSE).map((clause) => clauseOf(clause, language));
    const lessened =
      mains.length === 1
        ? strengths
        : new Map(
            [...strengths].map(([term, strength]) => [
              term,
              own.has(term) ? strength : Math.min(strength, CLAIM.neighbour),
            ]),
          );
    return {
      unit,
      strengths: lessened,
      figures: figuresIn(`${main} ; ${around}`, language),
      clauses,
      denied,
      denials: others.filter((clause) => clause.negated),
    };
  });
}

function clauseOf(text: string, language: string): Clause {
  const strengths = new Map(termsIn(text, language).map((term) => [term, 1]));
  return { strengths, figures: figuresIn(text, language), negated: isNegated(text, language) };
}

const FAILS: Verdict = { holds: false, units: [] };

/** How much of a claim's words a witness speaks of, and the weightiest that it lacks; what else stands in its section counts for less. */
function shareOf(
  words: readonly ClaimWord[],
  witnesses: readonly Witness[],
  at: number,
): { share: number; missing: number } {
  const total = words.reduce((sum, { weight }) => sum + weight, 0);
  if (total === 0) return { share: 1, missing: 0 };
  const own = witnesses[at]!;
  const { section, block } = own.unit;
  const isSibling = (other: Unit) => other.block.kind !== "text" && block.kind !== "text";
  const others = witnesses.filter((other) => other !== own && other.unit.section === section && !isSibling(other.unit));
  const held = words.map(({ likeness }) => {
    const near = others.reduce((best, other) => Math.max(best, strengthOf(other.strengths, likeness)), 0);
    return Math.max(strengthOf(own.strengths, likeness), near * CLAIM.neighbour);
  });
  const share = held.reduce((sum, strength, word) => sum + strength * words[word]!.weight, 0) / total;
  return { share, missing: Math.max(...held.map((strength, word) => (1 - strength) * words[word]!.weight)) };
}

/** A figure is said of something that its own unit speaks of, not only what stands beside it. */
function speaksItself({ strengths }: Witness, { words, figures }: Claim): boolean {
  const telling = words.filter(({ isCommon }) => !isCommon);
  return (
    figures.length === 0 ||
    telling.length === 0 ||
    telling.some(({ likeness }) => strengthOf(strengths, likeness) > 0.3)
  );
}

/** Whether the clauses that speak most of the claim deny it, or affirm what it denies. */
function contradicts({ clauses, denied, denials }: Witness, { words, negated }: Claim): boolean {
  const shares = clauses.map(({ strengths }) =>
    words.reduce((sum, { likeness, weight }) => sum + weight * strengthOf(strengths, likeness), 0),
  );
  const best = Math.max(...shares);
  const isDenied = denials.some(
    (clause) =>
      clause.negated !== negated &&
      words.some(
        ({ likeness }) =>
          strengthOf(clause.strengths, likeness) >= 1 &&
          !clauses.some((own) => strengthOf(own.strengths, likeness) >= 1),
      ),
  );
  const speaking = clauses.filter((_, at) => shares[at]! >= best * 0.9);
  return isDenied || speaking.every((clause) => (denied || clause.negated) !== negated);
}

/** A figure must go with the words beside it: those of its row and column, or of its clause where another is built like it. */
function pairsUp(witness: Witness, witnesses: readonly Witness[], claim: Claim): boolean {
  const { cells, columns, table } = witness.unit.block;
  if (!cells || table === undefined) return clausesPairUp(witness, claim);
  const rows = witnesses.filter(
    (other) => other !== witness && other.unit.block.table === table && other.unit.section === witness.unit.section,
  );
  const isElsewhere = ({ likeness }: ClaimWord) =>
    strengthOf(witness.strengths, likeness) < 0.5 &&
    rows.some((row) => strengthOf(row.clauses[0]!.strengths, likeness) >= 1);
  if (claim.words.some(isElsewhere)) return false;
  return !columns || columnsPairUp({ cells, columns, language: witness.unit.section.language }, claim);
}

function clausesPairUp({ clauses }: Witness, { figures, words }: Claim): boolean {
  const [figure, ...more] = figures;
  if (figure === undefined || more.some((other) => other.split(" ").at(-1) !== figure.split(" ").at(-1))) return true;
  const own = clauses.filter((clause) => holdsFigure(clause.figures, figure));
  const others = clauses.filter(
    (clause) => !own.includes(clause) && clause.figures.size > 0 && own.some((one) => isParallel(one, clause)),
  );
  const speaks = (list: readonly Clause[], { likeness }: ClaimWord) =>
    list.some(({ strengths }) => strengthOf(strengths, likeness) >= 1);
  return own.length === 0 || !words.some((word) => speaks(others, word) && !speaks(own, word));
}

function isParallel(one: Clause, other: Clause): boolean {
  return [...one.strengths.keys()].filter((term) => other.strengths.has(term) && !/^\p{N}/u.test(term)).length >= 2;
}

/** Where a claim names some of the columns, its figures and words must stand in them and not in the others alone. */
function columnsPairUp(
  { cells, columns, language }: { cells: readonly string[]; columns: readonly string[]; language: string },
  { figures, words }: Claim,
): boolean {
  const read = cells
    .map((cell, at) => ({ cell: clauseOf(cell, language), name: clauseOf(columns[at] ?? "", language), at }))
    .slice(1);
  const isIn = (clause: Clause, figure: string) => holdsFigure(clause.figures, figure);
  const isNamed = ({ name }: (typeof read)[number]) =>
    words.some(
      ({ likeness }) =>
        strengthOf(name.strengths, likeness) >= 1 &&
        read.some((other) => strengthOf(other.name.strengths, likeness) < 1),
    ) ||
    figures.some(
      (figure) =>
        isIn(name, figure) &&
        !read.some(({ cell }) => isIn(cell, figure)) &&
        read.some((other) => !isIn(other.name, figure)),
    );
  const named = read.filter(isNamed);
  if (named.length === 0 || named.length === read.length) return true;
  const others = read.filter((one) => !named.includes(one));
  const strays = (held: (clause: Clause) => boolean) =>
    others.some(({ cell }) => held(cell)) && !named.some(({ cell }) => held(cell));
  const label = clauseOf(cells[0] ?? "", language);
  return (
    !figures.some((figure) => !isIn(label, figure) && strays((cell) => isIn(cell, figure))) &&
    !words.some(
      ({ likeness }) =>
        strengthOf(label.strengths, likeness) < 1 && strays((cell) => strengthOf(cell.strengths, likeness) >= 1),
    )
  );
}

/** Numbers of one digit that count no span of time. */
function looseIn(text: string, language: string): Set<string> {
  const words = wordsIn(text, language);
  const small = words.flatMap(({ text: word, term }, at) =>
    /^\d$/.test(term) && word.length >= 1 ? [{ term, next: words[at + 1]?.text ?? "" }] : [],
  );
  return new Set(small.filter(({ next }) => !isSpan(next)).map(({ term }) => `number ${term}`));
}

function inSection(witnesses: readonly Witness[], { unit }: Witness, figure: string): boolean {
  return witnesses.some((other) => other.unit.section === unit.section && holdsFigure(other.figures, figure));
}

function withoutLinks(text: string): string {
  return text.replace(/\[([^\][]*)\]\(\s*<?(?:(?:mailto|tel):)?([^\s)<>]*)>?[^)]*\)/gi, "$1 ; $2 ; ");
}

function isNegated(text: string, language: string): boolean {
  const negations = fold(wordsOf(language).answers.negations).split(" ");
  return (fold(text).match(/[\p{L}']+/gu) ?? []).some((word) => negations.includes(word) || /n't$/.test(word));
}

function unitsOf(witnesses: readonly (Witness | undefined)[]): Unit[] {
  return [...new Set(witnesses.flatMap((witness) => (witness ? [witness.unit] : [])))];
}
