import { UNSPACED } from "../../platform/characters.ts";
import { sentenceRanges } from "../../platform/sentences.ts";
import { queryTerms, terms } from "./words.ts";

/** Most characters of a snippet (UTF-16 units). */
const MAX_LENGTH = 240;
/** Characters to read of a longer text: a lesson card has up to 64,000. */
const MAX_READ = 4000;
/** A snippet ends with a sentence if at least this share of its length remains. */
const MIN_SHARE = 0.5;
/** Characters that a word and its term share at the start, at least and at most; their ends may differ. */
const PREFIX_LENGTH = { min: 3, max: 5 };

const ASCII = /^[\0-\x7f]*$/;
const LETTER = /[\p{L}\p{N}\p{M}_]/u;
const WORD = /[\p{L}\p{N}\p{M}]+(?:['’][\p{L}\p{M}]+)*/uy;
const MARKS = /^[ \t]*(?:(?:[-*+•]|\d{1,3}[.)]|#{1,6}|>)[ \t]+)*/;
const PARAGRAPH_END = /\n[ \t]*\n/;

/** A question, prepared for texts of one language. */
interface SnippetRequest {
  language: string;
  /** Index of a word in the question, by each of its terms. */
  words: ReadonlyMap<string, number>;
  /** Prefixes of the words that may have these terms. */
  prefixes: readonly string[];
  /** Indexes in the question of words of texts, as far as they were read. */
  known: Map<string, readonly number[]>;
}

/** A word of the question in a text. */
interface Mention {
  at: number;
  word: number;
}

/**
 * Makes snippets for one question: from each text at most 240 consecutive characters, from the sentence that matches the question best to
 * the end of its paragraph, cut between sentences or words. Linear in the length of the text.
 */
export function snippets(question: string): (passage: { text: string; language: string }) => string {
  const readings = new Map<string, SnippetRequest>();
  return ({ text, language }) => {
    const asked = readings.get(language) ?? readQuestion(question, language);
    readings.set(language, asked);
    return snippetOf(text.slice(0, MAX_READ), asked);
  };
}

function readQuestion(question: string, language: string): SnippetRequest {
  const words = new Map<string, number>();
  for (const [at, own] of queryTerms(question, [language]).entries()) for (const term of own) words.set(term, at);
  const prefixes = [...words.keys()].flatMap((term) => (UNSPACED.test(term) ? term : prefixesOf(term)));
  return { language, words, prefixes: [...new Set(prefixes)], known: new Map() };
}

/** Prefixes as a text has them: terms are folded, which writes ß as ss. */
function prefixesOf(term: string): string[] {
  return [term, term.replaceAll("ss", "ß")].map((form) => withoutAccents(prefixOf(form)));
}

/** Longer terms differ from their words in two letters at most. */
function prefixOf(term: string): string {
  const { min, max } = PREFIX_LENGTH;
  return term.slice(0, Math.max(1, Math.min(min, term.length - 1), Math.min(max, term.length - 2)));
}

function snippetOf(text: string, asked: SnippetRequest): string {
  const start = bestStart(text, mentions(text, asked)) ?? text.length - text.trimStart().length;
  const rest = text.slice(start);
  const end = rest.search(PARAGRAPH_END);
  return clip(end < 0 ? rest : rest.slice(0, end));
}

/** Reads only words that begin like one of the question: reading all would cost more than the search. */
function mentions(text: string, asked: SnippetRequest): Mention[] {
  const plain = withoutAccents(text);
  const found: Mention[] = [];
  for (const prefix of asked.prefixes)
    for (let at = plain.indexOf(prefix); at >= 0; at = plain.indexOf(prefix, at + 1))
      for (const word of wordsAt(text, at, asked)) found.push({ at, word });
  return found;
}

/** Lower case without accents if that keeps the length, else lower case alone, else the text. */
function withoutAccents(text: string): string {
  const lower = text.toLowerCase();
  if (ASCII.test(lower)) return lower;
  const plain = lower.normalize("NFD").replace(/\p{M}/gu, "");
  return [plain, lower].find(({ length }) => length === text.length) ?? text;
}

function wordsAt(text: string, at: number, { language, words, known }: SnippetRequest): readonly number[] {
  if (UNSPACED.test(text[at]!)) return [...words].filter(([term]) => text.startsWith(term, at)).map(([, word]) => word);
  if (at > 0 && LETTER.test(text[at - 1]!)) return [];
  WORD.lastIndex = at;
  const word = WORD.exec(text)?.[0] ?? "";
  const found = known.get(word) ?? terms(word, language).flatMap((term) => words.get(term) ?? []);
  known.set(word, found);
  return found;
}

/** The start of the sentence that matches the question best; rarer words count more, ties go to the first sentence. */
function bestStart(text: string, found: readonly Mention[]): number | undefined {
  const starts = startsOf(text, found);
  const held = new Map<number, Set<number>>();
  let sentence = 0;
  for (const { at, word } of found.toSorted((one, other) => one.at - other.at)) {
    while ((starts[sentence + 1] ?? Number.POSITIVE_INFINITY) <= at) sentence++;
    const start = starts[sentence]!;
    held.set(start, (held.get(start) ?? new Set()).add(word));
  }
  const counts = new Map<number, number>();
  for (const words of held.values()) for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  const scored = Array.from(held, ([start, words]) => {
    return { start, score: [...words].reduce((sum, word) => sum + 1 / counts.get(word)!, 0) };
  });
  return scored.sort((one, other) => other.score - one.score || one.start - other.start)[0]?.start;
}

/** Starts of the sentences in lines with a mention, in order; markers of a list or a heading come before. */
function startsOf(text: string, found: readonly Mention[]): number[] {
  const lines = new Set(found.map(({ at }) => text.lastIndexOf("\n", at - 1) + 1));
  const starts = [...lines].flatMap((line) => {
    const end = text.indexOf("\n", line);
    const own = text.slice(line, end < 0 ? text.length : end);
    const marks = MARKS.exec(own)![0].length;
    return sentenceRanges(own.slice(marks)).map(({ start }) => line + marks + start);
  });
  return starts.sort((one, other) => one - other);
}

/** The start of a text, cut after a sentence, else between two words, else between two code points. */
function clip(text: string): string {
  const whole = text.trimEnd();
  if (whole.length <= MAX_LENGTH) return whole;
  const head = whole.slice(0, MAX_LENGTH);
  const sentence = sentenceRanges(head).at(-1)!.start;
  const space = head.search(/\s\S*$/);
  const end = sentence >= MAX_LENGTH * MIN_SHARE ? sentence : space > 0 ? space : MAX_LENGTH;
  return head
    .slice(0, end)
    .replace(/[\ud800-\udbff]$/, "")
    .trimEnd();
}
