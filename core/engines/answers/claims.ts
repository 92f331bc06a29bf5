import { UNSPACED } from "../../platform/characters.ts";
import { lazyByKey } from "../../platform/lazy.ts";
import { plainText } from "../../platform/markdown.ts";
import { withoutDates } from "./dates.ts";
import { bearsOut, type Claim, type ClaimWord, contradicts, figuresAgree } from "./evidence.ts";
import { type Figures, figuresIn, holdsFigure, isUnitName } from "./figures.ts";
import { type Library, strengthOf } from "./library.ts";
import { isAbout, isCommon, mattersIn } from "./matching.ts";
import { spansIn } from "./measures.ts";
import { boundsIn, isNegated, isUniversal, namedWith, statesIn } from "./phrases.ts";
import type { Section, Unit } from "./sections.ts";
import { weekdayWords } from "./weekdays.ts";
import { clauseTexts, hasNoCharge, type Witness, witnessOf } from "./witnesses.ts";
import { termsIn, wordsIn } from "./words.ts";

/** The least share of a claim's words that a unit and its surroundings contain, with a figure and without. */
const MIN_SHARE = { withFigure: 0.45, plain: 0.64 };
/** Most clauses of a part of a sentence: each part costs a search. */
const MAX_PART_CLAUSES = 4;
/** The weight of a word of price next to an amount, and of what is counted in a script without spaces, such as yen or persons. */
const IMPLIED = 0.2;
const COUNTER = new RegExp(`^${UNSPACED.source}$`, "u");
/** The weight of a name that no public text has: no witness can outweigh it. */
const NEW_NAME = 1000;
/** Contact details are checked by themselves, and the name of a unit says nothing. */
const CONTACT = /^(?:mail|phone|link) /;
const NO_CLAIM = /^(?:mail|phone|link|unit|hour) /;
/** Five letters that stand alone in a row: words that nobody can look up. */
const SPELLED =
  /(?<!\p{L})[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}](?:[\s\-._/*·]+[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}]){4,}(?!\p{L})/u;
/** Languages where a capital is no sign of a name. */
const CAPITAL_NOUNS = new Set(["de"]);
/** A word with a capital after one without. */
const NAME = /(?<=\p{Ll},? )\p{Lu}[\p{L}\p{M}]+/gu;

/**
 * Checks a model's sentences against public text: each is read as a claim, and the units of the text are its witnesses. One witness must
 * contain all figures of the sentence, or of each of its clauses, and most of its words, say the figures of the same thing, and not
 * contradict it. Names and contact details must be known.
 */
export class ClaimChecker {
  readonly #library: Library;
  readonly #witnessesOf = lazyByKey((section: Section): Witness[] =>
    this.#library.readingsOf(section).map(({ unit, strengths }) => witnessOf(unit, strengths)),
  );
  readonly #known: Figures;

  /** `known` are public addresses outside the sections: those of pages and links. */
  constructor(library: Library, known: Iterable<string>) {
    this.#library = library;
    this.#known = new Set(known);
  }

  /** The units that support a sentence or heading of a language, none for small talk; undefined if the sections don't support it. */
  check(
    sentence: string,
    { language, isHeading }: { language: string; isHeading: boolean },
    sections: readonly Section[],
  ): Unit[] | undefined {
    const text = withoutLinks(sentence);
    if (SPELLED.test(text)) return undefined;
    const contacts = [...figuresIn(text, language)].filter((figure) => CONTACT.test(figure));
    const claim = this.#claimOf(text, language);
    const isEmpty =
      (claim.words.every(({ isCommon }) => isCommon) && !claim.isFree && !claim.isIncluded) ||
      ((contacts.length > 0 || isHeading) && !this.#isLie(plainText(sentence), language, sections));
    const isSmallTalk = isEmpty && claim.figures.length === 0;
    const reached = this.#reached(contacts, sections);
    const found = isSmallTalk ? [] : this.#supporting(claim, plainText(sentence), sections);
    return found && reached && [...new Set([...reached, ...found].map(({ unit }) => unit))];
  }

  /** The witnesses that contain the contact details that aren't known anyway; undefined if one has no witness. */
  #reached(contacts: readonly string[], sections: readonly Section[]): Witness[] | undefined {
    const open = contacts.filter((figure) => !holdsFigure(this.#known, figure));
    const witnesses = open.length === 0 ? [] : sections.flatMap((section) => this.#witnessesOf(section));
    const found = open.flatMap((figure) => witnesses.find(({ figures }) => holdsFigure(figures, figure)) ?? []);
    return found.length < open.length ? undefined : found;
  }

  /** One witness of a claim, one for each of its facts, or those of one section that say it in parts. */
  #supporting(claim: Claim, text: string, sections: readonly Section[]): Witness[] | undefined {
    const parts = this.#partsOf(clauseTexts(text, claim.language), claim.language);
    const clauses = parts.flatMap((from) => from.slice(-1)).filter(({ figures }) => figures.length > 0);
    const one = this.#supported(claim, sections);
    const isSwapped = one && clauses.some((clause) => !figuresAgree(one, this.#witnessesOf(one.unit.section), clause));
    if (one && !isSwapped) return [one];
    const isInOne = (section: Section) => this.#inParts(parts, [section], isTelling);
    const found = this.#inParts(parts, sections, isFact) ?? firstOf(sections, isInOne);
    // A single amount is of all that the sentence speaks of.
    const isSingle = claim.figures.filter((figure) => figure.startsWith("amount ")).length === 1;
    const isOfAll = (part: Witness) => figuresAgree(part, this.#witnessesOf(part.unit.section), claim);
    return !isSingle || found?.every(isOfAll) ? found : undefined;
  }

  /** The claims of some clauses in a row, by the first of them and the longest first; never that of all clauses. */
  #partsOf(clauses: readonly string[], language: string): Claim[][] {
    return clauses.map((_, from) => {
      const most = Math.min(MAX_PART_CLAUSES, clauses.length - Math.max(1, from));
      const lengths = Array.from({ length: most }, (_, less) => most - less);
      return lengths.map((length) => this.#claimOf(clauses.slice(from, from + length).join(" ; "), language));
    });
  }

  /** A witness for each part of a sentence, if it can be cut into such as have one. */
  #inParts(parts: Claim[][], sections: readonly Section[], isPart: (claim: Claim) => boolean): Witness[] | undefined {
    const found: (Witness[] | undefined)[] = [...parts.map(() => undefined), []];
    for (let from = parts.length - 1; from >= 0; from--)
      found[from] = firstOf(parts[from]!, (part, at) => {
        const rest = found[from + parts[from]!.length - at];
        const witness = rest && isPart(part) ? this.#supported(part, sections) : undefined;
        return witness && [witness, ...rest!];
      });
    return found[0];
  }

  /** True if a clause of a text has a name that no public text has, or says what a witness denies. */
  #isLie(text: string, language: string, sections: readonly Section[]): boolean {
    return clauseTexts(text, language).some((clause) => {
      const claim = this.#claimOf(clause, language);
      const best = this.#best(claim, sections);
      const isNamed = !CAPITAL_NOUNS.has(language) && claim.words.some(({ weight }) => weight === NEW_NAME);
      return isNamed || (best !== undefined && contradicts(best, claim));
    });
  }

  /** The witness that contains all figures and most words of a claim, unless it denies it. */
  #supported(claim: Claim, sections: readonly Section[]): Witness | undefined {
    const best = this.#best(claim, sections);
    return best === undefined || contradicts(best, claim) ? undefined : best;
  }

  #best(claim: Claim, sections: readonly Section[]): Witness | undefined {
    const bar = claim.figures.length > 0 ? MIN_SHARE.withFigure : MIN_SHARE.plain;
    return sections
      .flatMap((section) => sharesOf(claim.words, this.#witnessesOf(section)))
      .filter(({ share }) => share >= bar)
      .sort((one, other) => other.share - one.share)
      .find(({ witness }) => bearsOut(witness, this.#witnessesOf(witness.unit.section), claim))?.witness;
  }

  #claimOf(text: string, language: string): Claim {
    const figures = [...figuresIn(text, language)].filter((figure) => !NO_CLAIM.test(figure));
    const isPriced = figures.some((figure) => figure.startsWith("amount "));
    const negated = clauseTexts(text, language).some((clause) => isNegated(clause, language));
    const includes = !negated && isAbout(["included"], text, language);
    return {
      language,
      words: this.#wordsOf(plainText(text), language, isPriced),
      figures,
      spans: spansIn(text, language),
      days: weekdayWords(text, language),
      bounds: boundsIn(text, language),
      isNegated: negated,
      states: statesIn(text, language),
      isUniversal: isUniversal(text, language),
      isFree: !negated && figures.length === 0 && isAbout(["free"], text, language),
      isIncluded: includes && figures.length === 0,
      isTaxed: !negated && isAbout(["tax"], includes ? text : namedWith(text, language), language),
      hasNoCharge: !isPriced && hasNoCharge(text, language),
    };
  }

  #wordsOf(text: string, language: string, isPriced: boolean): ClaimWord[] {
    const found = new Map<string, ClaimWord>();
    const names = new Set((text.match(NAME) ?? []).map((name) => name.toLowerCase()));
    const measured = new Set(spansIn(text, language).flatMap(({ count, terms }) => (count === undefined ? [] : terms)));
    const undated = new Set(termsIn(withoutDates(text, language), language));
    const words = wordsIn(text, language);
    for (const [at, { written, text: word, terms: forms }] of words.entries()) {
      const [term] = forms;
      if (term === undefined || /^\p{N}|^[a-z]$/u.test(term) || found.has(term) || isUnitName(word)) continue;
      const likeness = this.#library.likenessOf({ forms }, language);
      const isCounter = COUNTER.test(word) && /^\p{N}/u.test(words[at - 1]?.text ?? "");
      const isImplied = isCounter || (isPriced && mattersIn(term).has("price"));
      const isEveryday = isCommon(term, language);
      const weight = this.#library.weightOf({ isCommon: isEveryday }, likeness) * (isImplied ? IMPLIED : 1);
      const isNewName = likeness.size === 0 && names.has(written);
      found.set(term, {
        likeness,
        weight: isNewName ? NEW_NAME : weight,
        isCommon: isEveryday || isImplied,
        isCounted: !undated.has(term) || forms.some((form) => measured.has(form)),
      });
    }
    return [...found.values()];
  }
}

/** The shares of a claim's words that the witnesses of a section contain. */
function sharesOf(words: readonly ClaimWord[], witnesses: readonly Witness[]): { witness: Witness; share: number }[] {
  const total = words.reduce((sum, { weight }) => sum + weight, 0);
  return witnesses.map((witness) => {
    const strength = ({ likeness, isCounted }: ClaimWord) => (isCounted ? 1 : strengthOf(witness.strengths, likeness));
    const said = words.reduce((sum, word) => sum + word.weight * strength(word), 0);
    return { witness, share: total === 0 ? 1 : said / total };
  });
}

/** True for a claim of two telling words, one of which may be a figure. */
function isFact({ words, figures }: Claim): boolean {
  return words.filter(({ isCommon }) => !isCommon).length + Math.min(1, figures.length) > 1;
}

/** True for a claim that says something beside others of its section. */
function isTelling({ words, figures, isNegated }: Claim): boolean {
  return words.length > 1 || figures.length > 0 || isNegated;
}

function withoutLinks(text: string): string {
  return text.replace(
    /\[([^\][]*)\]\(\s*<?(?:(?:mailto|tel):)?([^\s)<>]{0,2000})(?:[\s>][^)]{0,500})?\)/gi,
    "$1 ; $2 ; ",
  );
}

/** The first result for one of some values. */
function firstOf<T, R>(values: readonly T[], resultOf: (value: T, at: number) => R | undefined): R | undefined {
  for (const [at, value] of values.entries()) {
    const result = resultOf(value, at);
    if (result !== undefined) return result;
  }
  return undefined;
}
