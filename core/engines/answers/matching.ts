import { languages, wordsOf } from "../../../schemas/languages.ts";
import { calendarNames } from "../../platform/formats.ts";
import { grammarOf } from "../../platform/languages.ts";
import { lazyByKey } from "../../platform/lazy.ts";
import { withoutIdioms } from "./phrases.ts";
import { isWithin } from "./ranges.ts";
import { termsIn } from "./words.ts";

/** The likeness of terms of a text to a word of a question, 0 to 1. */
export type Likeness = ReadonlyMap<string, number>;

/** Another word for the same matter in any language ("fee" for "cost"), another ending, a part of a compound, or a typing error. */
const ALIKE = 0.77;
const MIN_FORM_LENGTH = 4;
const MIN_SLIP_LENGTH = 5;
const MIN_LONG_LENGTH = 8;

const ALL_LANGUAGES = "";

/** Matters by term and terms by matter, in one language or in all. Built by the first question, since stemming all takes 0.3 s. */
const matterTable = lazyByKey((scope) => {
  const mattersOf = new Map<string, Set<string>>();
  const termsOf = new Map<string, Set<string>>();
  for (const language of scope === ALL_LANGUAGES ? Object.keys(languages) : [scope])
    for (const [matter, terms] of [...namedMatters(language), ...calendarMatters(language)])
      for (const term of terms) {
        mattersOf.set(term, (mattersOf.get(term) ?? new Set()).add(matter));
        termsOf.set(matter, (termsOf.get(matter) ?? new Set()).add(term));
      }
  return { mattersOf, termsOf };
});

/** The lists of a language file. */
function namedMatters(language: string): [matter: string, terms: string[]][] {
  const lists = Object.entries(languages[language]?.answers.matters ?? {});
  return lists.map(([matter, words]) => [matter, termsIn(words, language)]);
}

/**
 * The days of the week and the months of each language: "Sonntag" for "Sundays". The language files add short names that aren't words. A
 * number is none of them, nor is what several share, as "Tháng" in Vietnamese.
 */
function calendarMatters(language: string): [matter: string, terms: string[]][] {
  const namesIn = (code: string) => [...calendarNames(code, "weekday"), ...calendarNames(code, "month")];
  const names = namesIn(language).map((name) => termsIn(name, language));
  const isOwn = (term: string) => !/^\p{N}/u.test(term) && names.filter((name) => name.includes(term)).length === 1;
  return namesIn("en").map((matter, at) => [matter, names[at]!.filter(isOwn)]);
}

/** The matters of a term, as the language files name them. */
export function mattersIn(term: string): ReadonlySet<string> {
  return matterTable(ALL_LANGUAGES).mattersOf.get(term) ?? NONE;
}

const NONE: ReadonlySet<string> = new Set();

/** True if a text of a language speaks of one of some matters. */
export function isAbout(matters: readonly string[], text: string, language: string): boolean {
  return termsIn(withoutIdioms(text, language), language).some((term) =>
    matters.some((matter) => mattersIn(term).has(matter)),
  );
}

const commonTerms = lazyByKey((language) => new Set(termsIn(wordsOf(language).answers.common, language)));

/** True for an everyday word of a language, which names no subject. */
export function isCommon(term: string, language: string): boolean {
  return commonTerms(language).has(term);
}

/**
 * The terms of a vocabulary that match a word of a question in any of its forms. What a word means in another language than that of the
 * question, the first of `spoken`, or of the text counts only if nothing else matches: "cameras" are no Italian rooms. An everyday
 * word is no typing error.
 */
export function likenessOf(
  forms: readonly string[],
  vocabulary: ReadonlyMap<string, unknown>,
  spoken: readonly string[],
): Likeness {
  const [language = ""] = spoken;
  const inCompounds = grammarOf(language).isCompounding === true;
  const [own, foreign] = [spoken, [ALL_LANGUAGES]].map((scopes) => termsAlike(forms, scopes));
  const isEveryday = isCommon(forms[0]!, language);
  const number = forms.find((form) => /^\d+$/.test(form));
  const isSame = (term: string) => forms.includes(term) || (number !== undefined && isWithin(number, term));
  const passes = [
    (term: string) => own!.has(term) || forms.some((form) => isRelated(form, term, inCompounds)),
    (term: string) => foreign!.has(term),
    (term: string) => !isEveryday && forms.some((form) => isSlip(form, term)),
  ];
  const found = new Map<string, number>();
  for (const isAlike of passes) {
    if (found.size > 0) break;
    for (const term of vocabulary.keys())
      if (isSame(term)) found.set(term, 1);
      else if (isAlike(term)) found.set(term, ALIKE);
  }
  return found;
}

/** The terms of the matters that some forms of a word have in some languages. */
function termsAlike(forms: readonly string[], scopes: readonly string[]): ReadonlySet<string> {
  const tables = scopes.map(matterTable);
  const matters = tables.flatMap(({ mattersOf }) => forms.flatMap((form) => [...(mattersOf.get(form) ?? NONE)]));
  return new Set(tables.flatMap(({ termsOf }) => matters.flatMap((matter) => [...(termsOf.get(matter) ?? NONE)])));
}

/** True for one of some words with letters left out or swapped. Another or one more letter mostly makes another word: "booth", "both". */
export function isSlipOf(word: string, known: Iterable<string>): boolean {
  const sorted = (letters: string) => [...letters].sort().join("");
  for (const one of known)
    if (isSlip(word, one) && (one.length > word.length || sorted(one) === sorted(word))) return true;
  return false;
}

/** True for words that share their beginning, or one of which is a part of the other. */
function isRelated(form: string, term: string, inCompounds: boolean): boolean {
  const [short, long] = form.length <= term.length ? [form, term] : [term, form];
  if (short.length < MIN_FORM_LENGTH || /\p{N}/u.test(long)) return false;
  const more = long.length - short.length;
  if (long.startsWith(short)) return inCompounds || more <= Math.min(3, short.length / 2);
  return inCompounds && more >= 3 && long.endsWith(short);
}

/** One typing error in a short word, two in a long one; the first letter is hardly ever wrong. */
function isSlip(form: string, term: string): boolean {
  if (form.length < MIN_SLIP_LENGTH || form[0] !== term[0] || /\p{N}/u.test(form + term)) return false;
  const slips = form.length < MIN_LONG_LENGTH ? 1 : 2;
  return Math.abs(form.length - term.length) <= slips && isNear(slips, form, term);
}

/** True if at most `slips` letters are left out, added, replaced or swapped with the next one. */
function isNear(slips: number, one: string, other: string): boolean {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  if (slips === 0 || one === other) return one === other;
  const [left, right] = [one.slice(at), other.slice(at)];
  const after = (first: number, second: number) => isNear(slips - 1, left.slice(first), right.slice(second));
  const isSwapped = left[0] === right[1] && left[1] === right[0];
  return after(1, 0) || after(0, 1) || after(1, 1) || (isSwapped && after(2, 2));
}
