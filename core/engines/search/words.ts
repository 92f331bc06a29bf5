import { fold as foldWord, UNSPACED } from "../../platform/characters.ts";
import { clitics, stem, stopWords } from "../../platform/languages.ts";
import { lazyByKey } from "../../platform/lazy.ts";
import type { FoundPassage } from "../../platform/runtime.ts";

/**
 * Increment it with each change of what `passageTerms` returns: the search module stores terms, and those of different versions don't
 * match.
 */
export const termsVersion = "6";

const ASCII = /^[a-z0-9]*$/;
const TOKEN = /[\p{L}\p{N}\p{M}]+(?:['’][\p{L}\p{M}]+)*(?:[-‐‑](?=[\p{L}\p{N}]))?/gu;
const HYPHEN = /[-‐‑]$/;
const CONTRACTION = new RegExp(`(?:${clitics.filter((clitic) => clitic.startsWith("'")).join("|")})$`);
const RUN = new RegExp(`(?:${UNSPACED.source}[\\p{M}ー]*)+|(?:(?!${UNSPACED.source})[\\p{L}\\p{N}\\p{M}])+`, "gu");
const LETTER = /\P{M}\p{M}*/gu;
const HAN = /\p{Script=Han}/u;
const FOLDED = /^[\p{Script=Latin}\p{Script=Greek}\p{N}\p{M}']+$/u;

/** Longest word, in UTF-16 units; longer ones are cut, so that no input makes a huge dictionary entry. */
const MAX_WORD_LENGTH = 40;

/**
 * The terms of a text in order, with repeats: lower case, without stop words of its language, stemmed, accents folded (Latin, Greek). A
 * hyphenated word counts in parts and as a whole, and a word with accents also without them. Scripts without spaces become pairs of letters
 * (Han also single ones). Linear in the length of the text.
 */
export function terms(text: string, language = "en"): string[] {
  const found: string[] = [];
  for (const word of words(text)) {
    const own = termsOf(word, language);
    found.push(...own);
    if (!ASCII.test(word)) found.push(...termsOf(fold(word), language).filter((term) => !own.includes(term)));
  }
  return found;
}

/**
 * The words of a question in order, each with its terms in texts of the languages. Stop words of the question's probable language are
 * omitted: in texts of another language they would be rare words.
 */
export function queryTerms(text: string, languages: readonly string[]): string[][] {
  const all = words(text);
  const spoken = languagesOf(all, languages).map(foldedStopWords);
  const contentWords = all.filter((word) => !spoken.some((stops) => stops.has(word)));
  const found = contentWords.map((word) => [...new Set(languages.flatMap((language) => termsOf(word, language)))]);
  return found.filter((own) => own.length > 0);
}

/** The languages whose stop words the question has most of. */
function languagesOf(question: readonly string[], languages: readonly string[]): string[] {
  const counts = languages.map((language) => question.filter((word) => foldedStopWords(language).has(word)).length);
  return languages.filter((_, at) => counts[at] === Math.max(...counts));
}

/** The terms of a passage for both indexes; those of title and heading twice, which doubles their weight. */
export function passageTerms(passage: Pick<FoundPassage, "title" | "heading" | "text" | "language">): string[] {
  const { title, heading, text, language } = passage;
  const above = [...terms(title, language), ...terms(heading, language)];
  return [...above, ...above, ...terms(text, language)];
}

/** A word without accents, if its script can do without them. */
function fold(word: string): string {
  return FOLDED.test(word) ? foldWord(word) : word;
}

function words(text: string): string[] {
  const found: string[] = [];
  let joined = "";
  for (const token of text.normalize("NFKC").toLowerCase().match(TOKEN) ?? []) {
    const word = cut(token.replace(HYPHEN, ""));
    addWord(found, word);
    joined += word;
    if (HYPHEN.test(token)) continue;
    if (joined.length > word.length && joined.length <= MAX_WORD_LENGTH) addWord(found, joined);
    joined = "";
  }
  return found;
}

function addWord(found: string[], word: string): void {
  if (ASCII.test(word)) found.push(word);
  else if (!UNSPACED.test(word)) found.push(word.replaceAll("’", "'"));
  else
    for (const run of word.match(RUN) ?? []) {
      if (UNSPACED.test(run)) addPairs(found, run.match(LETTER) ?? []);
      else found.push(run);
    }
}

function addPairs(found: string[], letters: string[]): void {
  letters.forEach((letter, at) => {
    const next = letters[at + 1];
    if (letters.length === 1 || HAN.test(letter)) found.push(letter);
    if (next !== undefined) found.push(letter + next);
  });
}

/** A contraction is several words: `l'hôtel`, `visitor's`. */
function termsOf(word: string, language: string): string[] {
  const stops = foldedStopWords(language);
  if (stops.has(word)) return [];
  const parts = word.includes("'") ? word.replace(CONTRACTION, "").split("'") : [word];
  return parts.flatMap((part) => (part === "" || stops.has(part) ? [] : [fold(stem(part, language))]));
}

/** Stop words with and without accents, as people write them. */
const foldedStopWords = lazyByKey(
  (language: string) => new Set([...stopWords(language)].flatMap((word) => [word, fold(word)])),
);

function cut(word: string): string {
  return word.length <= MAX_WORD_LENGTH ? word : word.slice(0, MAX_WORD_LENGTH).replace(/[\ud800-\udbff]$/, "");
}
