import { plainText } from "../../platform/markdown.ts";
import { type Figures, figuresIn, holdsFigure, isUnitName } from "./figures.ts";
import { type Library, strengthOf } from "./library.ts";
import { isCommon, mattersIn } from "./matching.ts";
import { spansIn } from "./measures.ts";
import { contradicts, pairsUp } from "./pairing.ts";
import { isNegated } from "./phrases.ts";
import type { Section, Unit } from "./sections.ts";
import { type Claim, type ClaimWord, clauseTexts, marksIn, type Witness, witnessOf } from "./witnesses.ts";
import { wordsIn } from "./words.ts";

/** The least share of a claim's words that a unit and its surroundings contain, with a figure and without. */
const MIN_SHARE = { withFigure: 0.52, plain: 0.64 };
/** The weight of a word in another unit of the section. */
const NEIGHBOUR = 0.6;
/** The least strength of a word that a unit contains. */
const PRESENT = 0.5;
/** The weight of a word of price next to an amount. */
const IMPLIED = 0.2;
/** Contact details are checked by themselves, and the name of a unit says nothing. */
const CONTACT = /^(?:mail|phone|link) /;
const NO_CLAIM = /^(?:mail|phone|link|unit) /;
/** A word with a capital after one without. */
const NAME = /(?<=\p{Ll},? )\p{Lu}[\p{L}\p{M}]+/gu;

/**
 * Checks a model's sentences against public text: each is read as a claim, and the units of the text are its witnesses. One witness must
 * contain all figures of the sentence, or of each of its clauses, and most of its words, say the figures of the same thing, and not
 * contradict it. Names and contact details must be known.
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

  /** The units that support a sentence of a language, none for small talk; undefined if the sections don't support it. */
  check(sentence: string, language: string, sections: readonly Section[]): Unit[] | undefined {
    const text = withoutLinks(sentence);
    const contacts = [...figuresIn(text, language)].filter((figure) => CONTACT.test(figure));
    const claim = this.#claimOf(text, language);
    const isSmallTalk = contacts.length > 0 || claim.words.every(({ isCommon }) => isCommon);
    const found =
      claim.figures.length === 0 && isSmallTalk
        ? []
        : (this.#supported(claim, sections) ?? this.#clausesSupported(plainText(sentence), language, sections));
    const reached = this.#reached(contacts, sections);
    return found && reached && [...new Set([...reached, ...found].map(({ unit }) => unit))];
  }

  /** The witnesses that contain the contact details that aren't known anyway; undefined if one has no witness. */
  #reached(contacts: readonly string[], sections: readonly Section[]): Witness[] | undefined {
    const open = contacts.filter((figure) => !holdsFigure(this.#known, figure));
    const witnesses = open.length === 0 ? [] : sections.flatMap((section) => this.#witnessesOf(section));
    return allOf(open.map((figure) => witnesses.find(({ figures }) => holdsFigure(figures, figure))));
  }

  /** Each clause with a figure may have a witness of its own. */
  #clausesSupported(text: string, language: string, sections: readonly Section[]): Witness[] | undefined {
    const clauses = clauseTexts(text).map((clause) => this.#claimOf(clause, language));
    const claims = clauses.filter(({ figures }) => figures.length > 0);
    if (claims.length < 2) return undefined;
    return allOf(claims.map((claim) => this.#supported(claim, sections)?.[0]));
  }

  /** The witness that contains all figures and most words of a claim. */
  #supported(claim: Claim, sections: readonly Section[]): Witness[] | undefined {
    if (claim.words.some(({ isUnknownName }) => isUnknownName)) return undefined;
    const bar = claim.figures.length > 0 ? MIN_SHARE.withFigure : MIN_SHARE.plain;
    const best = sections
      .flatMap((section) => sharesOf(claim.words, this.#witnessesOf(section)))
      .filter(({ share }) => share >= bar)
      .sort((one, other) => other.share - one.share)
      .find(({ witness }) => bearsOut(witness, this.#witnessesOf(witness.unit.section), claim))?.witness;
    return best && !contradicts(best, claim) && !this.#isDenied(best, claim) ? [best] : undefined;
  }

  /** Another unit of the section has a word of the claim that the witness lacks, and says the opposite. */
  #isDenied({ unit, strengths }: Witness, claim: Claim): boolean {
    const missing = claim.words.filter(
      ({ isCommon, likeness }) => !isCommon && strengthOf(strengths, likeness) < PRESENT,
    );
    const speaks = ({ clauses }: Witness) =>
      missing.some(({ likeness }) => clauses.some((clause) => strengthOf(clause.strengths, likeness) >= 1));
    return this.#witnessesOf(unit.section).some(
      (other) => other.unit !== unit && speaks(other) && contradicts(other, claim),
    );
  }

  #claimOf(text: string, language: string): Claim {
    const figures = [...figuresIn(text, language)].filter((figure) => !NO_CLAIM.test(figure));
    const negated = isNegated(text, language);
    const marks = marksIn(text, language);
    if (negated || figures.length > 0) marks.delete("free");
    const isPriced = figures.some((figure) => figure.startsWith("amount "));
    const words = this.#wordsOf(plainText(text), language, isPriced);
    return { words, figures, spans: spansIn(text, language), marks, isNegated: negated };
  }

  #wordsOf(text: string, language: string, isPriced: boolean): ClaimWord[] {
    const found = new Map<string, ClaimWord>();
    const names = new Set((text.match(NAME) ?? []).map((name) => name.toLowerCase()));
    for (const { written, text: word, terms: forms } of wordsIn(text, language)) {
      const [term] = forms;
      if (term === undefined || /^\p{N}|^[a-z]$/u.test(term) || found.has(term) || isUnitName(word)) continue;
      const likeness = this.#library.likenessOf({ forms }, language);
      const isImplied = isPriced && mattersIn(term).has("price");
      const isEveryday = isCommon(term, language);
      const weight = this.#library.weightOf({ isCommon: isEveryday }, likeness) * (isImplied ? IMPLIED : 1);
      const isUnknownName = likeness.size === 0 && names.has(written);
      found.set(term, { likeness, weight, isCommon: isEveryday || isImplied, isUnknownName });
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

/** The shares of a claim's words that the witnesses of a section contain; what else is in the section counts for less. */
function sharesOf(words: readonly ClaimWord[], witnesses: readonly Witness[]): { witness: Witness; share: number }[] {
  const total = words.reduce((sum, { weight }) => sum + weight, 0);
  // Items and rows say nothing about each other.
  const isText = ({ unit }: Witness) => unit.block.kind === "text";
  const sums = witnesses.map(() => 0);
  for (const { likeness, weight } of words) {
    const own = witnesses.map(({ strengths }) => strengthOf(strengths, likeness));
    const near = { text: Math.max(...own), item: Math.max(0, ...own.filter((_, at) => isText(witnesses[at]!))) };
    for (const [at, witness] of witnesses.entries())
      sums[at]! += weight * Math.max(own[at]!, NEIGHBOUR * near[isText(witness) ? "text" : "item"]);
  }
  return witnesses.map((witness, at) => ({ witness, share: total === 0 ? 1 : sums[at]! / total }));
}

function bearsOut(witness: Witness, witnesses: readonly Witness[], claim: Claim): boolean {
  return (
    claim.figures.every((figure) => holdsFigure(witness.figures, figure)) &&
    [...claim.marks].every((mark) => witness.marks.has(mark)) &&
    speaksItself(witness, claim) &&
    pairsUp(witness, witnesses, claim)
  );
}

/** The unit of a figure itself contains one of the claim's telling words, not only its surroundings. */
function speaksItself({ strengths }: Witness, { words, figures }: Claim): boolean {
  const telling = words.filter(({ isCommon }) => !isCommon);
  const isSaid = telling.some(({ likeness }) => strengthOf(strengths, likeness) >= PRESENT);
  return figures.length === 0 || telling.length === 0 || isSaid;
}

function withoutLinks(text: string): string {
  return text.replace(
    /\[([^\][]*)\]\(\s*<?(?:(?:mailto|tel):)?([^\s)<>]{0,2000})(?:[\s>][^)]{0,500})?\)/gi,
    "$1 ; $2 ; ",
  );
}

function allOf<T>(found: readonly (T | undefined)[]): T[] | undefined {
  const all = found.filter((one) => one !== undefined);
  return all.length < found.length ? undefined : all;
}
