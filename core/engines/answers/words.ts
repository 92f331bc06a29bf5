import { wordsOf } from "../../../schemas/languages.ts";
import { compatible, fold, UNSPACED } from "../../platform/characters.ts";
import { grammarOf, stem, stopWords } from "../../platform/languages.ts";
import { lazy, lazyByKey } from "../../platform/lazy.ts";
import { alternatives } from "./phrases.ts";

/** A word of a text. */
interface Word {
  /** In lower case. */
  written: string;
  /** In lower case without accents. */
  text: string;
  /**
   * Its stem without accents, or the digits of a number that is written out; none for a stop word. A second one if the stemmer needs the
   * accents that people leave out: "habit" and "habitacion" of the Spanish "habitación".
   */
  terms: readonly string[];
}

/** Letters between the words of a compound. */
const LINKS = ["", "s", "n", "en", "es", "er", "e"];
const MIN_PART_LENGTH = 4;
const MAX_NUMBER = 1000;
const MAX_NUMBER_WORDS = 7;
const ONE = new RegExp(`^(?:${alternatives("one", "articles")}) ?`);
const MAX_TERM_LENGTH = 40;

/** By dictionary, and in time that is quadratic in the length. */
const segmenter = lazy(() => new Intl.Segmenter("und", { granularity: "word" }));
const SEGMENTED = /.{1,100}/gsu;
const PARTICLE = /^\p{Script=Hiragana}$/u;
const ENDING = /^\p{Script=Hiragana}{2,3}$/u;

/** "A2", "S7" and the "A7" of "l'A7" are words, whose numbers alone would also be those of "B2" and "row 7". */
const CODE = "\\p{L}{1,2}\\d(?![\\p{L}\\p{N}])";
const TOKEN = new RegExp(
  `(?<![\\p{L}\\p{N}])${CODE}|\\p{N}+(?:[.,:]\\p{N}+)*|[\\p{L}\\p{M}]+(?:['’](?!${CODE})[\\p{L}\\p{M}]+)*|[-‐‑](?=[\\p{L}\\p{N}])`,
  "gu",
);

/**
 * The words of a text in their order: stemmed by the rules of its language, numbers as digits (those that are written out too),
 * parts of a hyphenated word and the word as a whole, scripts without spaces as pairs of the letters of each word. Linear in the length.
 */
export function wordsIn(text: string, language: string): Word[] {
  const stops = foldedStopWords(language);
  const found: Word[] = [];
  let joined = "";
  let hyphen = false;
  for (const token of numbered(lower(text).match(TOKEN) ?? [], language)) {
    if (/^[-‐‑]$/.test(token)) {
      hyphen = joined !== "";
      continue;
    }
    addToken(found, token, language);
    // "est-il" and "day-to-day" are no words of their own.
    const isShort = joined.length + token.length <= MAX_TERM_LENGTH && token.length > 2;
    const glues = hyphen && isShort && ![joined, token].some((part) => stops.has(fold(part)) && part.length > 1);
    if (glues) found.push(wordOf(joined + token, language));
    joined = glues ? joined + token : token;
    hyphen = false;
  }
  return found;
}

/** The terms of a text with repeats, without stop words. */
export function termsIn(text: string, language: string): string[] {
  return wordsIn(text, language).flatMap(({ terms }) => terms);
}

/** Splits a compound into two known words, with a linking sound of up to two letters between them; undefined without such a split. */
export function compoundParts(word: string, isKnown: (part: string) => boolean): [string, string] | undefined {
  if (word.length > MAX_TERM_LENGTH) return undefined;
  for (let at = word.length - MIN_PART_LENGTH; at >= MIN_PART_LENGTH; at--)
    for (const link of LINKS) {
      const [first, second] = [word.slice(0, at - link.length), word.slice(at)];
      const isLinked = first.length >= MIN_PART_LENGTH && word.slice(0, at).endsWith(link);
      if (isLinked && isKnown(first) && isKnown(second)) return [first, second];
    }
  return undefined;
}

function addToken(found: Word[], token: string, language: string): void {
  const stops = foldedStopWords(language);
  const text = fold(token);
  const bare = text.replaceAll("'", "");
  if (/^\p{N}/u.test(token)) found.push({ written: token, text, terms: [plainNumber(token)] });
  else if (UNSPACED.test(token)) addUnspaced(found, token, language);
  else if (stops.has(text) || stops.has(bare)) found.push({ written: token, text: bare, terms: [] });
  else {
    // A single letter before or after an apostrophe is no word.
    const parts = token.split("'").filter((part) => part.length > 1 || part === token);
    const words = parts.map((part) => wordOf(part, language));
    found.push(...words.map((word) => (stops.has(word.text) ? { ...word, terms: [] } : word)));
  }
}

function wordOf(written: string, language: string): Word {
  const text = fold(written);
  const stems = [written, text].map((form) => fold(stem(form.slice(0, MAX_TERM_LENGTH), language)));
  return { written, text, terms: [...new Set(stems)] };
}

/** The words of a text without spaces, and their letters in pairs, since a dictionary cuts compounds in more than one way. */
function addUnspaced(found: Word[], token: string, language: string): void {
  for (const run of token.match(SEGMENTED) ?? []) {
    const segments = Array.from(segmenter().segment(run), ({ segment }) => segment);
    for (const [at, segment] of segments.entries())
      if (!UNSPACED.test(segment)) found.push(wordOf(segment, language));
      else if (isEnding(segments, at)) found.push({ written: segment, text: fold(segment), terms: [] });
      else addPairs(found, fold(segment));
  }
}

/** True for a particle or an ending of Japanese, unlike a noun in Hiragana, which begins a text or stands between particles. */
function isEnding(segments: readonly string[], at: number): boolean {
  const [before, segment = "", after = "", next] = [segments[at - 1], ...segments.slice(at, at + 3)];
  const isBetween = before !== undefined && next !== undefined && PARTICLE.test(before) && PARTICLE.test(after);
  return PARTICLE.test(segment) || (ENDING.test(segment) && before !== undefined && !isBetween);
}

function addPairs(found: Word[], token: string): void {
  const letters = [...token];
  for (const [at, letter] of letters.entries()) {
    const pair = letter + (letters[at + 1] ?? "");
    if (letters.length === 1 || pair.length > letter.length) found.push({ written: pair, text: pair, terms: [pair] });
  }
}

/** Lower case with one kind of apostrophe. */
function lower(text: string): string {
  return compatible(text).toLowerCase().replace(/[’‘]/g, "'");
}

/**
 * A number without thousands separators, zeros before it and decimals that are all zeros, with a full stop as the decimal mark: `1,120` is
 * `1120`, `1.120,50` is `1120.50`. Other zeros remain, since `10.1` and `10.10` may be days or versions; so do times and dates.
 */
export function plainNumber(digits: string): string {
  const ascii = digits.normalize("NFKC").replace(/^0+(?=\d)/, "");
  const thousands = /^\d{1,3}([.,])\d{3}(?:\1\d{3})*(?:(?!\1)[.,]\d+)?$/.exec(ascii)?.[1];
  const plain = (thousands ? ascii.replaceAll(thousands, "") : ascii).replaceAll(",", ".");
  return plain.replace(/^(\d+)\.0+$/, "$1");
}

/** Replaces numbers that are written out by digits, the longest first: `five hundred and twenty` is 520. */
function numbered(tokens: readonly string[], language: string): string[] {
  const written = numberWords(language);
  const found: string[] = [];
  for (let at = 0; at < tokens.length; ) {
    const length = numberLength(tokens, at, written);
    if (length === 0) found.push(tokens[at++]!);
    else {
      found.push(String(written.values.get(keyOf(tokens, at, length))));
      at += length;
    }
  }
  return found;
}

function numberLength(tokens: readonly string[], at: number, { values, firsts }: NumberWords): number {
  if (!firsts.has(fold(tokens[at]!))) return 0;
  for (let length = Math.min(MAX_NUMBER_WORDS, tokens.length - at); length > 0; length--)
    if (values.has(keyOf(tokens, at, length))) return length;
  return 0;
}

function keyOf(tokens: readonly string[], at: number, length: number): string {
  return fold(tokens.slice(at, at + length).join(" "));
}

interface NumberWords {
  values: ReadonlyMap<string, number>;
  /** The first words of the keys. */
  firsts: ReadonlySet<string>;
}

/** Numbers from two to a thousand, and whole thousands, as a language writes them; without one, which is an article in most. */
const numberWords = lazyByKey((language: string): NumberWords => {
  const { numeral: write } = grammarOf(language);
  const { connectors } = wordsOf(language).answers;
  const values = new Map<string, number>();
  const add = (value: number) => {
    const tokens = fold(write!(value)).match(TOKEN) ?? [];
    values.set(tokens.join(" "), value);
    // Swedish "tjugofem" has no hyphen.
    values.set(tokens.filter((token) => token !== "-").join(""), value);
    values.set(tokens.filter((token) => !connectors.includes(token)).join(" "), value);
    // "A thousand" is one thousand.
    if (value === 100 || value === MAX_NUMBER) values.set(tokens.join(" ").replace(ONE, ""), value);
  };
  for (let value = 2; write && value <= MAX_NUMBER; value++) add(value);
  for (let thousands = 2; write && thousands <= 100; thousands++) add(thousands * MAX_NUMBER);
  return { values, firsts: new Set([...values.keys()].map((words) => words.split(" ")[0]!)) };
});

/** Stop words without accents, with and without apostrophes, as people write them. */
const foldedStopWords = lazyByKey(
  (language: string) => new Set([...stopWords(language)].map(fold).flatMap((word) => [word, word.replaceAll("'", "")])),
);
