import { clip } from "../../platform/characters.ts";
import { lazyByKey } from "../../platform/lazy.ts";
import { type Range, sentenceRanges } from "../../platform/sentences.ts";
import { queryTerms, terms } from "./words.ts";

/** Most characters of a snippet (UTF-16 units). */
const MAX_LENGTH = 240;
/** Characters to read of a longer text: a lesson card has up to 64,000. */
const MAX_READ = 4000;
/** A snippet ends with a sentence if at least this share of its length remains. */
const MIN_SHARE = 0.5;

const LINE = /[^\n]+/g;
const WORD = /[\p{L}\p{N}\p{M}]+(?:['’][\p{L}\p{M}]+)*/gu;
const PLAIN = /^[A-Za-z]{2,}$/;
const MARKS = /^[ \t]*(?:(?:[-*+•]|\d{1,3}[.)]|#{1,6}|>)[ \t]+)*/;
const PARAGRAPH_END = /\n[ \t]*\n/;

/** Returns the places in the question of the words that a word of a text may stand for. */
type Matcher = (word: string) => readonly number[];

/**
 * Makes snippets for one question: from each text at most 240 consecutive characters, from the sentence that matches the question best to
 * the end of its paragraph, cut between sentences or words. Linear in the length of the text.
 */
export function snippets(question: string): (passage: { text: string; language: string }) => string {
  const matcherOf = lazyByKey((language) => matcher(question, language));
  return ({ text, language }) => snippetOf(text.slice(0, MAX_READ), matcherOf(language));
}

/** Reads each word once, and of plain words only those that begin like a term: reading all would cost more than the search. */
function matcher(question: string, language: string): Matcher {
  const places = new Map<string, number>();
  for (const [at, own] of queryTerms(question, [language]).entries()) for (const term of own) places.set(term, at);
  const begins = new Set(Array.from(places.keys(), (term) => term.slice(0, 2)));
  const mayFit = (word: string): boolean => !PLAIN.test(word) || begins.has(word.slice(0, 2).toLowerCase());
  return lazyByKey((word) => (mayFit(word) ? terms(word, language) : []).flatMap((term) => places.get(term) ?? []));
}

function snippetOf(text: string, match: Matcher): string {
  const start = bestStart(text, match) ?? text.length - text.trimStart().length;
  const rest = text.slice(start);
  const end = rest.search(PARAGRAPH_END);
  return startOf(end < 0 ? rest : rest.slice(0, end));
}

/** The start of the sentence that matches the question best; rarer words count more, ties go to the first sentence. */
function bestStart(text: string, match: Matcher): number | undefined {
  const counts = new Map<number, number>();
  const found = sentencesOf(text).map(({ start, end }) => {
    const said = new Set((text.slice(start, end).match(WORD) ?? []).flatMap(match));
    for (const word of said) counts.set(word, (counts.get(word) ?? 0) + 1);
    return { start, said };
  });
  let best: { start?: number; score: number } = { score: 0 };
  for (const { start, said } of found) {
    const score = [...said].reduce((sum, word) => sum + 1 / counts.get(word)!, 0);
    if (score > best.score) best = { start, score };
  }
  return best.start;
}

/** The sentences of a text, without the markers of lists and headings before them. */
function sentencesOf(text: string): Range[] {
  return [...text.matchAll(LINE)].flatMap(({ 0: line, index }) => {
    const marks = MARKS.exec(line)![0].length;
    const from = index + marks;
    return sentenceRanges(line.slice(marks)).map(({ start, end }) => ({ start: from + start, end: from + end }));
  });
}

/** The start of a text, cut after a sentence, else between two words, else between two characters. */
function startOf(text: string): string {
  const whole = text.trimEnd();
  if (whole.length <= MAX_LENGTH) return whole;
  const sentence = sentenceRanges(whole.slice(0, MAX_LENGTH)).at(-1)!.start;
  return sentence >= MAX_LENGTH * MIN_SHARE ? whole.slice(0, sentence).trimEnd() : clip(whole, MAX_LENGTH);
}
