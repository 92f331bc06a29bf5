import { type Words, wordsOf } from "../../../schemas/languages.ts";
import { fold } from "../../platform/characters.ts";
import { calendarNames } from "../../platform/formats.ts";
import { lazyByKey } from "../../platform/lazy.ts";
import { namesOf } from "./measures.ts";
import { termsIn } from "./words.ts";

/** The days of a word, from 0 for Sunday; two for "weekend". */
interface DayWord {
  days: readonly number[];
  start: number;
  end: number;
}

type Weekday = Extract<keyof Words["answers"]["matters"], `${string}day`>;

const WORD = /[\p{L}\p{M}]+/gu;
/** Between the ends of a span: a mark or a word, as in "Mon–Fri", "Monday through Friday", "ma t/m vr". */
const SPAN = /^\.?\s*(?:[-–—]|\p{L}{1,7}|t\/m)\s*$/u;
const DAYS = calendarNames("en", "weekday");

/** The days of the week that a text names, and those between two that may be the ends of a span; all seven if it speaks of days in general. */
export function weekdaysIn(text: string, language: string): ReadonlySet<number> {
  const words = dayWordsIn(text, language);
  if (words.length === 0) return new Set();
  const isGeneral = (text.match(WORD) ?? []).some(
    (word) => general(language).test(fold(word)) && daysOf(word, language).length === 0,
  );
  if (isGeneral) return new Set(DAYS.keys());
  const between = words.slice(1).flatMap(({ days, start }, at) => {
    const before = words[at]!;
    return SPAN.test(text.slice(before.end, start)) ? spanOf(before.days[0]!, days[0]!) : [];
  });
  return new Set([...words.flatMap(({ days }) => days), ...between]);
}

/** The days of each word for some in a text: `[[2], [0, 6]]` for "Tuesdays and weekends". */
export function weekdayWords(text: string, language: string): (readonly number[])[] {
  return dayWordsIn(text, language).map(({ days }) => days);
}

function dayWordsIn(text: string, language: string): DayWord[] {
  const found: DayWord[] = [];
  for (const { 0: word, index } of text.matchAll(WORD)) {
    const days = daysOf(word, language);
    const before = found.at(-1);
    const end = index + word.length;
    // A part of most names names no day by itself: "feira" of "quarta-feira".
    if (days.length > 2 && before?.end === index - 1) before.end = end;
    else if (days.length === 1 || days.length === 2) found.push({ days, start: index, end });
  }
  return found;
}

function daysOf(word: string, language: string): readonly number[] {
  return termsIn(word, language).flatMap((term) => daysByTerm(language).get(term) ?? []);
}

/** True for the term of a day of the week in a language. */
export function isWeekday(term: string, language: string): boolean {
  return daysByTerm(language).has(term);
}

/** The days by their names, long and short. Other languages' names may be other words: "quarta" in Portuguese, "quart d'heure" in French. */
const daysByTerm = lazyByKey((language: string): ReadonlyMap<string, readonly number[]> => {
  const found = new Map<string, readonly number[]>();
  const { matters } = wordsOf(language).answers;
  for (const [day, name] of calendarNames(language, "weekday").entries())
    for (const term of new Set(termsIn(`${name} ${matters[DAYS[day] as Weekday]}`, language)))
      found.set(term, [...(found.get(term) ?? []), day]);
  return found;
});

function spanOf(first: number, last: number): number[] {
  return [...DAYS.keys()].map((step) => (first + step) % 7).slice(0, ((last - first + 7) % 7) + 1);
}

/** Words such as "daily", "weekdays" and "holidays". */
const general = lazyByKey((language) => {
  const names = ["day", "week"].flatMap((unit) => namesOf(unit, language)).map(fold);
  return new RegExp(names.filter((name) => /^\p{L}{3,}$/u.test(name)).join("|"), "u");
});
