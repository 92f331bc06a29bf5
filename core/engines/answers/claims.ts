import { plainText } from "../../platform/markdown.ts";
import { type Figures, figuresIn, holdsFigure, isUnitName } from "./figures.ts";
import { type Library, strengthOf } from "./library.ts";
import { isCommon, mattersIn } from "./matching.ts";
import { spansIn } from "./measures.ts";
import { contradicts, pairsUp } from "./pairing.ts";
import { isNegated, isUniversal, plainWords } from "./phrases.ts";
import type { Section, Unit } from "./sections.ts";
import { type Claim, type ClaimWord, clauseTexts, mattersOf, type Witness, witnessOf } from "./witnesses.ts";
import { wordsIn } from "./words.ts";

/** Whether public text supports a sentence, and the units that do. */
export interface Support {
  holds: boolean;
  units: Unit[];
}

/**
 * `withFigure` and `plain`: the least share of a claim's words that a unit and its surroundings contain. `neighbour`: the weight of
 * other units of the section. `price`: the factor of words of price next to an amount.
 */
const SUPPORT = { withFigure: 0.52, plain: 0.64, neighbour: 0.6, price: 0.2 };
/** Contact details are checked by themselves. */
const CONTACT = /^(?:mail|phone|link) /;
/** A word with a capital after one without. */
const NAME = /(?<=\p{Ll},? )\p{Lu}[\p{L}\p{M}]+/gu;
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
    const clauses = clauseTexts(text).map((clause) => this.#claimOf(clause, language));
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
    const isBorneOut = best && !contradicts(best.witness, claim) && !this.#isDenied(best.witness, claim);
    return isBorneOut ? [best.witness] : undefined;
  }

  /** Another unit of the section has a word of the claim that the witness lacks, and says the opposite. */
  #isDenied({ unit, strengths }: Witness, claim: Claim): boolean {
    const isMissing = ({ isCommon, likeness }: ClaimWord) => !isCommon && strengthOf(strengths, likeness) < 0.5;
    const missing = claim.words.filter(isMissing);
    const denies = (other: Witness) =>
      missing.some(({ likeness }) => other.clauses.some((clause) => strengthOf(clause.strengths, likeness) >= 1)) &&
      contradicts(other, claim);
    return this.#witnessesOf(unit.section).some((other) => other.unit !== unit && denies(other));
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
      spans: spansIn(text, language),
      negated,
      isUniversal: isUniversal(text, language),
      isFree: !negated && figures.length === 0 && FREE.some((matter) => matters.has(matter)),
    };
  }

  #wordsOf(text: string, language: string): ClaimWord[] {
    const found = new Map<string, ClaimWord>();
    const names = new Set((text.match(NAME) ?? []).map((name) => name.toLowerCase()));
    for (const { written, text: word, terms: forms } of wordsIn(text, language)) {
      const [term] = forms;
      if (term === undefined || /^\p{N}|^[a-z]$/u.test(term) || found.has(term) || isUnitName(word)) continue;
      const likeness = this.#library.likenessOf({ forms }, language);
      const isEveryday = isCommon(term, language);
      const weight = this.#library.weightOf({ isCommon: isEveryday }, likeness) / this.#library.rarest;
      found.set(term, {
        ...{ likeness, weight },
        isCommon: isEveryday,
        isPrice: mattersIn(term).has("price"),
        isUnknownName: likeness.size === 0 && names.has(written),
      });
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
    !claim.words.some(({ isUnknownName }) => isUnknownName) &&
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

function withoutLinks(text: string): string {
  return text.replace(/\[([^\][]*)\]\(\s*<?(?:(?:mailto|tel):)?([^\s)<>]*)>?[^)]*\)/gi, "$1 ; $2 ; ");
}

function unitsOf(witnesses: readonly (Witness | undefined)[]): Unit[] {
  return [...new Set(witnesses.flatMap((witness) => (witness ? [witness.unit] : [])))];
}
