import { stemmer } from "stemmer";
import { eng } from "stopword";

/** What the library's short English list lacks and questions are full of. */
const QUESTION_WORDS =
  "above again against below cannot does doing done down during else ever few further goes going gets getting " +
  "hers herself himself its itself just let lets mine myself neither no none nor not off often once ours " +
  "ourselves own perhaps please quite rather really shall she so tell theirs themselves this until upon us via " +
  "went were when whenever where whether whom whose why will within without would yes yet yours yourself yourselves";
const STOP_WORDS = new Set([...eng, ...QUESTION_WORDS.split(" ")]);

const ASCII = /^[a-z0-9]*$/;
const TOKEN = /[\p{L}\p{N}\p{M}]+(?:['’][\p{L}\p{M}]+)*/gu;
const NEGATION = /n['’]t$/;
const CONTRACTION = /['’](?:s|d|m|re|ve|ll)$/;
/** Scripts written without spaces, or with words glued together: words are not seen, pairs of letters are. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const RUN = new RegExp(`(?:${UNSPACED.source}[\\p{M}ー]*)+|(?:(?!${UNSPACED.source})[\\p{L}\\p{N}\\p{M}])+`, "gu");
const LETTER = /\P{M}\p{M}*/gu;
const HAN = /\p{Script=Han}/u;
const FOLDED = /^[\p{Script=Latin}\p{Script=Greek}\p{N}\p{M}]+$/u;

/** Longest term kept, in UTF-16 units; what is longer is cut, so that no input makes a huge dictionary entry. */
const TERM_LENGTH = 40;
const STEMS_KEPT = 20_000;
const stems = new Map<string, string>();

/**
 * The terms of a text in their order, with repeats: lower case, without stop words, stemmed (English), accents folded
 * (Latin, Greek); letters of every script are kept, and scripts without spaces become pairs of letters (Han also single
 * ones). The same function serves indexing and querying. Linear in the length of the text.
 */
export function terms(text: string): string[] {
  const found: string[] = [];
  for (const token of text.normalize("NFKC").toLowerCase().match(TOKEN) ?? []) {
    if (ASCII.test(token)) addWord(found, token);
    else addParts(found, token);
  }
  return found;
}

/** The terms of a passage as both indexes hold them: those of the title twice, which doubles their weight. */
export function passageTerms({ title, heading, text }: { title: string; heading: string; text: string }): string[] {
  const titleTerms = terms(title);
  return [...titleTerms, ...titleTerms, ...terms(heading), ...terms(text)];
}

function addParts(found: string[], token: string): void {
  if (NEGATION.test(token)) return;
  for (const part of token.replace(CONTRACTION, "").split(/['’]/)) {
    if (UNSPACED.test(part)) addRuns(found, part);
    else addWord(found, fold(part));
  }
}

function addWord(found: string[], word: string): void {
  if (word === "" || STOP_WORDS.has(word)) return;
  found.push(stem(word.length > TERM_LENGTH ? cut(word) : word));
}

function addRuns(found: string[], part: string): void {
  for (const run of part.match(RUN) ?? []) {
    if (UNSPACED.test(run)) addPairs(found, run.match(LETTER) ?? []);
    else addWord(found, fold(run));
  }
}

function addPairs(found: string[], letters: string[]): void {
  letters.forEach((letter, at) => {
    const next = letters[at + 1];
    if (letters.length === 1 || HAN.test(letter)) found.push(cut(letter));
    if (next !== undefined) found.push(cut(letter + next));
  });
}

function fold(word: string): string {
  if (ASCII.test(word) || !FOLDED.test(word)) return word;
  return word.replaceAll("ß", "ss").replaceAll("ς", "σ").normalize("NFD").replace(/\p{M}/gu, "");
}

function cut(word: string): string {
  return word.slice(0, TERM_LENGTH).replace(/[\ud800-\udbff]$/, "");
}

function stem(word: string): string {
  if (!ASCII.test(word)) return word;
  const known = stems.get(word);
  if (known !== undefined) return known;
  if (stems.size >= STEMS_KEPT) stems.clear();
  const stemmed = stemmer(word);
  stems.set(word, stemmed);
  return stemmed;
}
