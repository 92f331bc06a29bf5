import { languages } from "../../schemas/languages.ts";
import { cutPoint } from "./characters.ts";
import { calendarNames } from "./formats.ts";
import { lazy } from "./lazy.ts";

/** An exact piece of a text. */
interface Piece {
  text: string;
  start: number;
}

/** A part of a text: from `start`, up to but not including `end`. */
export interface Range {
  start: number;
  end: number;
}

/** Longer sentences are cut between words. UTF-16 units. */
const MAX_SENTENCE_LENGTH = 400;
const ENDS = /(?:[.!?…]+|[。！？｡।॥؟۔։።]+)["'”’»」』）)\]*_]*/g;
const UNSPACED_END = /^[。！？｡]/;
/** A sentence end is certain once a whole word follows. */
const WORD_AFTER = /^\s+\S+\s/;
/** A sentence does not end with these, in any language; "etc." ends one if a capital letter follows. */
const ABBREVIATIONS = new Set(Object.values(languages).flatMap(({ answers }) => answers.abbreviations.split(" ")));
/** Words before an ordinal number, which ends with a full stop: "im 2. Stock". */
const BEFORE_ORDINALS = new Set(Object.values(languages).flatMap(({ answers }) => answers.ordinals.split(" ")));
/** Those that end a compound too: "-str" for "Talstr." */
const SUFFIXES = [...ABBREVIATIONS].flatMap((known) => (known.startsWith("-") ? known.slice(1) : []));

const months = lazy(
  () =>
    new Set(
      Object.keys(languages).flatMap((language) =>
        (["long", "short"] as const).flatMap((style) => calendarNames(language, "month", style)),
      ),
    ),
);

/**
 * The sentences of a text, each with the white space after it. Linear in its length, unlike `Intl.Segmenter`, which also cuts after "Dr.".
 */
export function sentenceRanges(text: string): Range[] {
  const starts = [
    0,
    ...ends(text).map((end) => end + /^\s*/.exec(text.slice(end, end + MAX_SENTENCE_LENGTH))![0].length),
  ];
  return starts
    .map((start, at) => ({ start, end: starts[at + 1] ?? text.length }))
    .filter(({ start, end }) => start < end);
}

/** The sentences of a paragraph, exact pieces of it without the white space around them. Linear in its length. */
export function sentences(text: string): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const end of [...ends(text), text.length]) {
    for (let start = from; start < end; ) {
      const cut =
        end - start > MAX_SENTENCE_LENGTH ? start + cutPoint(text.slice(start, end), MAX_SENTENCE_LENGTH) : end;
      const piece = text.slice(start, cut);
      const trimmed = piece.trim();
      if (trimmed !== "") found.push({ text: trimmed, start: start + piece.length - piece.trimStart().length });
      start = cut;
    }
    from = end;
  }
  return found;
}

/**
 * The end of the first sentence of a growing text, before white space; -1 while it is uncertain. The word after it decides, since
 * "approx. 5" and "16. April" are no ends.
 */
export function firstEnd(text: string): number {
  for (const match of text.matchAll(ENDS)) {
    const end = match.index + match[0].length;
    if (UNSPACED_END.test(match[0])) return end;
    if (!/^[.]/.test(match[0]) ? !/\s\S/.test(text.slice(end)) : !WORD_AFTER.test(text.slice(end))) {
      if (end === text.length || /^\s/.test(text.slice(end))) return -1;
      continue;
    }
    if (isEnd(text, match.index, end)) return end;
  }
  return -1;
}

function ends(text: string): number[] {
  const found: number[] = [];
  for (const match of text.matchAll(ENDS)) {
    const end = match.index + match[0].length;
    if (end < text.length && isEnd(text, match.index, end)) found.push(end);
  }
  return found;
}

function isEnd(text: string, mark: number, end: number): boolean {
  if (UNSPACED_END.test(text.slice(mark, mark + 1))) return true;
  if (!/\s/.test(text[end]!)) return false;
  // Dots that lead from a name to its price: "Cut ........ £30", "Cut ... £30".
  if (/^(?:\S\.{4}|\s\.)/.test(text.slice(mark - 1, mark + 4))) return false;
  if (!/^\.[^.]*$/.test(text.slice(mark, end))) return true;
  const next = text.slice(end, end + 40).trimStart();
  if (/^\p{Ll}/u.test(next)) return false;
  return !isAbbreviation(text, mark, next);
}

function isAbbreviation(text: string, mark: number, next: string): boolean {
  const before = text.slice(Math.max(0, mark - 24), mark);
  const word = before.slice(before.search(/[^\s("'„“«[]*$/));
  // A number at the start counts what follows.
  if (word.length === mark && /^\d{1,3}$/.test(word)) return true;
  if (/(?<!\d)\d{1,2}$/.test(word)) {
    const last = /\p{L}+(?= \S+$)/u.exec(before)?.[0].toLowerCase();
    return (last && BEFORE_ORDINALS.has(last)) || months().has(next.toLowerCase().split(/[\s.,;:]/, 1)[0]!);
  }
  const lower = word.toLowerCase();
  return /^\p{Lu}$/u.test(word) || ABBREVIATIONS.has(lower) || SUFFIXES.some((suffix) => lower.endsWith(suffix));
}
