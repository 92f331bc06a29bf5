import { LRUCache } from "lru-cache";
import { detectAll } from "tinyld/light";
import { languages } from "../../schemas/languages.ts";

interface Grammar {
  stem: (word: string) => string;
  stopWords: ReadonlySet<string>;
}

/** Languages with a stemmer, by code (ISO 639-1). */
const grammars: Record<string, Grammar> = {
  en: await grammar("en", import("@orama/stemmers/english"), import("@orama/stopwords/english")),
  de: await grammar("de", import("@orama/stemmers/german"), import("@orama/stopwords/german")),
  fr: await grammar("fr", import("@orama/stemmers/french"), import("@orama/stopwords/french")),
  es: await grammar("es", import("@orama/stemmers/spanish"), import("@orama/stopwords/spanish")),
  it: await grammar("it", import("@orama/stemmers/italian"), import("@orama/stopwords/italian")),
  nl: await grammar("nl", import("@orama/stemmers/dutch"), import("@orama/stopwords/dutch")),
  pt: await grammar("pt", import("@orama/stemmers/portuguese"), import("@orama/stopwords/portuguese")),
  ar: await grammar("ar", import("@orama/stemmers/arabic"), import("@orama/stopwords/arabic")),
  da: await grammar("da", import("@orama/stemmers/danish"), import("@orama/stopwords/danish")),
  el: await grammar("el", import("@orama/stemmers/greek"), import("@orama/stopwords/greek")),
  fi: await grammar("fi", import("@orama/stemmers/finnish"), import("@orama/stopwords/finnish")),
  hu: await grammar("hu", import("@orama/stemmers/hungarian"), import("@orama/stopwords/hungarian")),
  no: await grammar("no", import("@orama/stemmers/norwegian"), import("@orama/stopwords/norwegian")),
  ro: await grammar("ro", import("@orama/stemmers/romanian"), import("@orama/stopwords/romanian")),
  ru: await grammar("ru", import("@orama/stemmers/russian"), import("@orama/stopwords/russian")),
  sv: await grammar("sv", import("@orama/stemmers/swedish"), import("@orama/stopwords/swedish")),
  tr: await grammar("tr", import("@orama/stemmers/turkish"), import("@orama/stopwords/turkish")),
};

const TEXT_READ = 4000;
const WORDS_READ = 400;
/** A letter-based detection below this confidence is a guess, and decides nothing. */
const SURE = 0.3;
/** Fewest stop words for a detection, and the factor by which they must outnumber those of another language. */
const FEW_WORDS = 2;
const CLEAR_LEAD = 1.3;
/** Weight of the letters, in stop words: a share of all words, and at least this many. */
const LETTERS_SHARE = 0.1;
const MIN_LETTERS_WEIGHT = 0.5;
/** Weight of a common word or a typical letter relative to a stop word. */
const HINT = 0.5;
const LATIN = /\p{Script=Latin}/gu;
const OTHER_LETTER = /(?!\p{Script=Latin})[\p{L}\p{M}]/gu;
const stems = new LRUCache<string, string>({ max: 50_000 });

/** The stem of a word (Snowball); the word itself if the language has no stemmer. */
export function stem(word: string, language: string): string {
  const grammar = grammars[language];
  if (grammar === undefined) return word;
  const key = `${language} ${word}`;
  const known = stems.get(key);
  if (known !== undefined) return known;
  const stemmed = grammar.stem(word) || word;
  stems.set(key, stemmed);
  return stemmed;
}

/** Stop words of a language in lower case; empty for an unknown language. */
export function stopWords(language: string): ReadonlySet<string> {
  return grammars[language]?.stopWords ?? NONE;
}

const NONE: ReadonlySet<string> = new Set();

/** Endings of words after or with an apostrophe, such as "'ll" and "n't", in all languages. */
export const clitics: readonly string[] = [
  ...new Set(Object.values(languages).flatMap(({ answers }) => answers.clitics.split(" "))),
].filter((clitic) => clitic !== "");

/** The primary language of a BCP 47 tag: `de` for `de-AT`. Made-up ones are English, since word lists are cached by language. */
export function primaryLanguage(tag: string): string {
  const [code = ""] = tag.toLowerCase().split(/[-_]/);
  return code.length > 1 && names.of(code) !== undefined ? code : "en";
}

const names = new Intl.DisplayNames("en", { type: "language", fallback: "none" });

/**
 * Detects the language of a text (ISO 639-1) by its stop words and letters; `fallback` if neither decides, as for "E-Bike?". Reads the
 * first 4,000 characters.
 */
export function languageOf(text: string, fallback = "en"): string {
  const sample = inMainScript(text.slice(0, TEXT_READ).normalize("NFC"));
  const lower = sample.toLowerCase();
  const scores = smallWordScores(lower);
  const detected = detectAll(sample).filter(({ accuracy }) => accuracy >= SURE);
  if (scores.size === 0) return detected[0]?.lang ?? fallback;
  // Letters say nothing about words that both languages have: "no", "ok", "hotel".
  if (scores.get(fallback) === Math.max(...scores.values())) return fallback;
  const weight = Math.max(MIN_LETTERS_WEIGHT, LETTERS_SHARE * wordsRead(lower).length);
  for (const { lang, accuracy } of detected) scores.set(lang, (scores.get(lang) ?? 0) + accuracy * weight);
  const best = Math.max(...scores.values());
  if (scores.get(fallback) === best) return fallback;
  return [...scores].find(([, score]) => score === best)![0];
}

/** The text without letters outside its main script, such as brand names in Japanese. */
function inMainScript(text: string): string {
  const latin = text.match(LATIN)?.length ?? 0;
  const other = text.match(OTHER_LETTER)?.length ?? 0;
  return text.replace(other > latin ? LATIN : OTHER_LETTER, " ");
}

/**
 * Detects the language of a text (ISO 639-1) by its stop words alone; undefined if there are few different ones, as in a title. Reads the
 * first 4,000 characters, and is a hundred times as fast as `languageOf`.
 */
export function writtenLanguage(text: string): string | undefined {
  const lower = text.slice(0, TEXT_READ).normalize("NFC").toLowerCase();
  const each = [...new Set(lower.match(/[\p{L}\p{M}]+/gu))].join(" ");
  const [best, second] = [...smallWordScores(each)].sort(([, one], [, other]) => other - one);
  if (best === undefined || best[1] < FEW_WORDS) return undefined;
  return best[1] > (second?.[1] ?? 0) * CLEAR_LEAD ? best[0] : undefined;
}

/** A stop word scores one; a common word or a typical letter scores a half, shared by the languages that have it. */
function smallWordScores(lower: string): Map<string, number> {
  const scores = new Map<string, number>();
  const add = (known: readonly string[], weight: number) => {
    for (const language of known) scores.set(language, (scores.get(language) ?? 0) + weight / known.length);
  };
  for (const word of wordsRead(lower)) {
    if (word.length > 1) add(languagesOf.get(word) ?? [], 1);
    add(mattersOf.get(word) ?? [], HINT);
  }
  for (const letter of new Set(lower)) add(lettersOf.get(letter) ?? [], HINT);
  return scores;
}

function wordsRead(lower: string): string[] {
  return (lower.match(/[\p{L}\p{M}]+/gu) ?? []).slice(0, WORDS_READ);
}

async function grammar(
  language: string,
  stemming: Promise<{ stemmer: Grammar["stem"] }>,
  stopping: Promise<{ stopwords: string[] }>,
): Promise<Grammar> {
  const [{ stemmer: stem }, { stopwords }] = await Promise.all([stemming, stopping]);
  const fillers = languages[language]?.answers.fillers.split(" ") ?? [];
  return { stem, stopWords: new Set([...stopwords, ...fillers]) };
}

/** The word as it is, and without accents, as people type in haste. */
function spellings(word: string): string[] {
  return [word, word.normalize("NFD").replace(/\p{M}/gu, "")].filter((spelling) => spelling !== "");
}

function isOneWord(phrase: string): boolean {
  return /^[\p{L}\p{M}]+$/u.test(phrase);
}

/** The languages that contain each word. */
function owners(lists: [language: string, words: Iterable<string>][]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [language, words] of lists)
    for (const word of new Set([...words].flatMap(spellings))) found.set(word, [...(found.get(word) ?? []), language]);
  return found;
}

const languagesOf = owners(Object.entries(grammars).map(([language, { stopWords }]) => [language, stopWords]));
const files = Object.entries(languages).map(([language, { answers }]) => ({ language, ...answers }));
/** Words of what people ask for: of prices, hours and the like, and wishes in one word, such as "demo". */
const wordsOfWishes = files.map(({ language, matters, lead }): [string, string[]] => [
  language,
  [...Object.values(matters).join(" ").split(" "), ...Object.values(lead).flat().filter(isOneWord)],
]);
const mattersOf = owners(wordsOfWishes);
const lettersOf = new Map(
  files.flatMap(({ language, letters }) => [...letters].map((letter) => [letter, [language]] as const)),
);
