import { stemmer as arabic } from "@orama/stemmers/arabic";
import { stemmer as danish } from "@orama/stemmers/danish";
import { stemmer as dutch } from "@orama/stemmers/dutch";
import { stemmer as english } from "@orama/stemmers/english";
import { stemmer as finnish } from "@orama/stemmers/finnish";
import { stemmer as french } from "@orama/stemmers/french";
import { stemmer as german } from "@orama/stemmers/german";
import { stemmer as greek } from "@orama/stemmers/greek";
import { stemmer as hungarian } from "@orama/stemmers/hungarian";
import { stemmer as italian } from "@orama/stemmers/italian";
import { stemmer as norwegian } from "@orama/stemmers/norwegian";
import { stemmer as portuguese } from "@orama/stemmers/portuguese";
import { stemmer as romanian } from "@orama/stemmers/romanian";
import { stemmer as russian } from "@orama/stemmers/russian";
import { stemmer as spanish } from "@orama/stemmers/spanish";
import { stemmer as swedish } from "@orama/stemmers/swedish";
import { stemmer as turkish } from "@orama/stemmers/turkish";
import { stopwords as arabicStopWords } from "@orama/stopwords/arabic";
import { stopwords as danishStopWords } from "@orama/stopwords/danish";
import { stopwords as dutchStopWords } from "@orama/stopwords/dutch";
import { stopwords as englishStopWords } from "@orama/stopwords/english";
import { stopwords as finnishStopWords } from "@orama/stopwords/finnish";
import { stopwords as frenchStopWords } from "@orama/stopwords/french";
import { stopwords as germanStopWords } from "@orama/stopwords/german";
import { stopwords as greekStopWords } from "@orama/stopwords/greek";
import { stopwords as hungarianStopWords } from "@orama/stopwords/hungarian";
import { stopwords as italianStopWords } from "@orama/stopwords/italian";
import { stopwords as norwegianStopWords } from "@orama/stopwords/norwegian";
import { stopwords as portugueseStopWords } from "@orama/stopwords/portuguese";
import { stopwords as romanianStopWords } from "@orama/stopwords/romanian";
import { stopwords as russianStopWords } from "@orama/stopwords/russian";
import { stopwords as spanishStopWords } from "@orama/stopwords/spanish";
import { stopwords as swedishStopWords } from "@orama/stopwords/swedish";
import { stopwords as turkishStopWords } from "@orama/stopwords/turkish";
import { LRUCache } from "lru-cache";
import { toCardinal as germanNumber } from "n2words/de-DE";
import { toCardinal as englishNumber } from "n2words/en-GB";
import { toCardinal as spanishNumber } from "n2words/es-ES";
import { toCardinal as frenchNumber } from "n2words/fr-FR";
import { toCardinal as italianNumber } from "n2words/it-IT";
import { toCardinal as dutchNumber } from "n2words/nl-NL";
import { toCardinal as portugueseNumber } from "n2words/pt-PT";
import { toCardinal as swedishNumber } from "n2words/sv-SE";
import { detectAll, supportedLanguages, toISO2 } from "tinyld/light";
import { languages } from "../../schemas/languages.ts";
import { firstCharacters } from "./characters.ts";

interface Grammar {
  stem: (word: string) => string;
  stopWords: ReadonlySet<string>;
  /** Writes a number out. */
  numeral?: (value: number) => string;
  /** True if compounds are one word, so that a word may stand inside another. */
  isCompounding?: boolean;
  /** True if nouns are written like names. */
  hasCapitalNouns?: boolean;
}

/** Languages with a stemmer, by code (ISO 639-1), and those that only have a file. */
const grammars: Record<string, Grammar> = {
  en: grammar("en", [english, englishStopWords], { numeral: englishNumber }),
  de: grammar("de", [german, germanStopWords], { numeral: germanNumber, isCompounding: true, hasCapitalNouns: true }),
  fr: grammar("fr", [french, frenchStopWords], { numeral: frenchNumber }),
  es: grammar("es", [spanish, spanishStopWords], { numeral: spanishNumber }),
  it: grammar("it", [italian, italianStopWords], { numeral: italianNumber }),
  nl: grammar("nl", [dutch, dutchStopWords], { numeral: dutchNumber, isCompounding: true }),
  pt: grammar("pt", [portuguese, portugueseStopWords], { numeral: portugueseNumber }),
  ar: grammar("ar", [arabic, arabicStopWords]),
  da: grammar("da", [danish, danishStopWords], { isCompounding: true }),
  el: grammar("el", [greek, greekStopWords]),
  fi: grammar("fi", [finnish, finnishStopWords], { isCompounding: true }),
  hu: grammar("hu", [hungarian, hungarianStopWords], { isCompounding: true }),
  no: grammar("no", [norwegian, norwegianStopWords], { isCompounding: true }),
  ro: grammar("ro", [romanian, romanianStopWords]),
  ru: grammar("ru", [russian, russianStopWords]),
  sv: grammar("sv", [swedish, swedishStopWords], { numeral: swedishNumber, isCompounding: true }),
  tr: grammar("tr", [turkish, turkishStopWords]),
};
for (const language of Object.keys(languages)) grammars[language] ??= grammar(language, [root, []]);

const TEXT_READ = 4000;
const WORDS_READ = 400;
/** A letter-based detection below this confidence is a guess, and decides nothing; above the second one it decides alone. */
const SURE = 0.3;
const CERTAIN = 0.7;
/** A smaller share of small words is chance, unless the letters are certain: "je" is Czech and French. */
const MIN_SHARE = 0.12;
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
/** Languages that are detected by letters; those of another one, such as Czech, look like one of them. */
const lettered: ReadonlySet<string> = new Set(supportedLanguages.map(toISO2));
const stems = new LRUCache<string, string>({ max: 50_000 });

/** The stem of a word (Snowball); its first letters if the language has no stemmer, such as "koszt" for "kosztuje" and "kosztują". */
export function stem(word: string, language: string): string {
  const key = `${language} ${word}`;
  const known = stems.get(key);
  if (known !== undefined) return known;
  const stemmed = (grammars[language]?.stem ?? root)(word) || word;
  stems.set(key, stemmed);
  return stemmed;
}

/** The first letters of a word: nearly as good as a stemmer (Can et al., Information Retrieval on Turkish Texts, 2008). */
function root(word: string): string {
  return firstCharacters(word, 5);
}

/** Stop words of a language in lower case; empty for an unknown language. */
export function stopWords(language: string): ReadonlySet<string> {
  return grammarOf(language).stopWords ?? NONE;
}

const NONE: ReadonlySet<string> = new Set();

/** The grammar of a language; empty for an unknown one. */
export function grammarOf(language: string): Partial<Grammar> {
  return grammars[language] ?? {};
}

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
  const words = wordsRead(lower);
  const guessed = lettered.has(fallback) ? detectAll(sample) : [];
  const detected = guessed.filter(({ accuracy }) => accuracy >= SURE);
  const certain = detected.find(({ accuracy }) => accuracy >= CERTAIN)?.lang;
  const scores = withoutChance(smallWordScores(lower), { words, fallback, certain });
  if (scores.size === 0) return certain ?? fallback;
  // Only languages with a file have hints, so one word says nothing against another language.
  const isHint = words.length === 1 && Math.max(...scores.values()) <= HINT;
  if (isHint && !languages[fallback]) return fallback;
  // Words that both languages have say little, as most words of Danish are Norwegian too, and their letters nothing: "no", "ok", "hotel".
  if ((scores.get(fallback) ?? 0) * CLEAR_LEAD >= Math.max(...scores.values())) return fallback;
  const weight = Math.max(MIN_LETTERS_WEIGHT, LETTERS_SHARE * words.length);
  for (const { lang, accuracy } of detected) scores.set(lang, (scores.get(lang) ?? 0) + accuracy * weight);
  const best = Math.max(...scores.values());
  if (scores.get(fallback) === best) return fallback;
  return [...scores].find(([, score]) => score === best)![0];
}

/** The scores without languages of which a text has a few small words by chance. `certain` is the language of its letters. */
function withoutChance(
  scores: Map<string, number>,
  { words, fallback, certain }: { words: readonly string[]; fallback: string; certain: string | undefined },
): Map<string, number> {
  // A word more says nothing for a language without a file against one with a file: the Italian "prima" is Romanian too. Nor does one word
  // against a language without small words: the Polish "ile" is Turkish too.
  const least = languages[fallback] ? (scores.get(fallback) ?? 0) + 1 : grammars[fallback] ? 0 : 1;
  for (const [code, score] of scores) {
    const isTold = code === fallback || (score >= 1 && (certain === undefined || !lettered.has(code)));
    const isDoubtful = code !== certain && isChance(words, code, isTold ? 1 : 2);
    if ((!languages[code] && score <= least) || isDoubtful) scores.delete(code);
  }
  return scores;
}

/** True if few words of a text are stop words of a language, or less than `least` also common words: "je" is Czech and French. */
function isChance(words: readonly string[], language: string, least: number): boolean {
  const ownIn = (owned: ReadonlyMap<string, string[]>) =>
    words.filter((word) => word.length > 1 && owned.get(word)?.includes(language)).length;
  const small = ownIn(languagesOf);
  // Two words can't tell.
  return words.length > 2 && (small < MIN_SHARE * words.length || small + ownIn(mattersOf) < least);
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

function grammar(
  language: string,
  [stem, list]: [stem: Grammar["stem"], stopWords: string[]],
  more: Partial<Grammar> = {},
): Grammar {
  const fillers = languages[language]?.answers.fillers.split(" ") ?? [];
  return { stem, stopWords: new Set([...list, ...fillers]), ...more };
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
