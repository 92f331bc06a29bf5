import { wordsOf } from "../../../schemas/languages.ts";
import { lazyByKey } from "../../platform/lazy.ts";
import { alternatives } from "./phrases.ts";
import { termsIn, wordsIn } from "./words.ts";

/** A measure, with its units by their names in Intl. */
const UNITS = {
  duration: ["second", "minute", "quarter", "hour", "day", "week", "month", "year"],
  age: ["month", "year"],
  weight: ["gram", "kilogram", "ounce", "pound", "stone"],
  length: ["millimeter", "centimeter", "meter", "kilometer", "inch", "foot", "yard", "mile"],
  warmth: ["celsius", "fahrenheit", "degree"],
};
export type Measure = keyof typeof UNITS;
export const MEASURES = Object.keys(UNITS) as Measure[];

/** A number of units of a text. */
export interface Quantity {
  unit: string;
  /** The number before it, with its parts; undefined in a rate, such as "£4 a day". */
  count: string | undefined;
  /** The number as it is written: "3" in "three quarters of an hour", none in "half an hour". */
  number: string | undefined;
  /** The word before the unit and its number. */
  before: string;
  /** The terms of the unit and of the part. */
  terms: readonly string[];
  /** The unit and the number of a span in any unit: 45 of `minute` for "three quarters of an hour". */
  base: string;
  size: number;
  /** The sizes of both ends of a range, of one number twice. */
  ends: readonly [least: number, most: number];
}

interface CountedWord {
  text: string;
  terms: readonly string[];
  number: string | undefined;
  /** A half or a quarter. */
  part: number | undefined;
  /** True for a stop word. */
  isSmall: boolean;
}

type Count = Pick<Quantity, "count" | "number" | "before"> & { part?: CountedWord };

/** Units of time in a shorter one. */
const SIZES: Readonly<Record<string, readonly [unit: string, times: number]>> = {
  second: ["minute", 1 / 60],
  quarter: ["minute", 15],
  hour: ["minute", 60],
  day: ["minute", 1440],
  week: ["minute", 10_080],
  year: ["month", 12],
};
const PARTS = (
  [
    ["quarters", 0.25],
    ["halves", 0.5],
    ["oneAndHalf", 1.5],
  ] as const
).map(([list, value]) => [new RegExp(`^(?:${alternatives(list)})$`), value] as const);
/** "An hour" is one, but for a rate. */
const ARTICLE = new RegExp(`^(?:${alternatives("articles")})$`);
/** "For two years" is no age. */
const SINCE = new RegExp(`^(?:${alternatives("since")})$`);
const ONE = new RegExp(`^(?:${alternatives("one")})$`);
const NUMBER = /^\p{N}/u;

/** True for the name of a measure. */
export function isMeasure(name: string): name is Measure {
  return Object.hasOwn(UNITS, name);
}

/** The units of a text, each with its number, which may have one word after it: "3 kg", "two working days", "10-day", "half an hour". */
function quantitiesIn(text: string, language: string): Quantity[] {
  const units = unitsByTerm(language);
  const words = wordsIn(text, language).map(countedWord);
  return words.flatMap(({ terms }, at) => {
    const unit = terms.map((term) => units.get(term)).find(Boolean);
    if (unit === undefined) return [];
    const counts = countsAt(words, at, language);
    const [base, times] = SIZES[unit] ?? [unit, 1];
    const sizes = counts.map(({ count }) => Number(count ?? 1) * times);
    const ends = [Math.min(...sizes), Math.max(...sizes)] as const;
    return counts.map(({ part, ...count }, nth) => {
      const all = [...terms, ...(part?.terms ?? [])];
      return { unit, ...count, terms: all, base, size: sizes[nth]!, ends };
    });
  });
}

function countedWord({ text, terms }: { text: string; terms: readonly string[] }): CountedWord {
  const number = ONE.test(text) ? "1" : terms.find((term) => NUMBER.test(term));
  const part = PARTS.find(([names]) => names.test(text))?.[1];
  return { text, terms, number, part, isSmall: terms.length === 0 && number === undefined && part === undefined };
}

/** The number of a unit, and the other end of a range: "two to three days". */
function countsAt(words: readonly CountedWord[], at: number, language: string): Count[] {
  const part = beyond(words, at, -1);
  if (words[part]?.part !== undefined) return [partAt(words, part, language)];
  const isNext = words[at - 1]?.number !== undefined || words[at - 1]?.terms.length === 0;
  const from = at - (isNext ? 1 : 2);
  const number = words[from]?.number;
  const before = words[number === undefined ? at - 1 : from - 1]?.text ?? "";
  const more = halfAfter(words, at, language);
  if (more && (number !== undefined || ARTICLE.test(before)))
    return [{ count: String(Number(number ?? 1) + more.part!), number, before, part: more }];
  const first = number === undefined ? undefined : words[beyond(words, from, -1)]?.number;
  return [...(first === undefined ? [] : [first]), number].map((count) => ({ count, number: count, before }));
}

/** "Three quarters", "one and a half", or a half alone. */
function partAt(words: readonly CountedWord[], at: number, language: string): Count {
  const part = words[at]!;
  const isSum = isAnd(words, beyond(words, at, -1) + 1, language);
  const number = words[isSum ? beyond(words, at, -1) : at - 1]?.number;
  const count = number === undefined ? part.part! : isSum ? Number(number) + part.part! : Number(number) * part.part!;
  return { count: String(count), number, before: "", part };
}

/** The half of "an hour and a half"; those of "two hours and half a day" and "a month and half membership" are of other things. */
function halfAfter(words: readonly CountedWord[], at: number, language: string): CountedWord | undefined {
  if (!isAnd(words, at + 1, language)) return undefined;
  const part = beyond(words, at, 1);
  const next = beyond(words, part, 1);
  const isOther = next === part + 1 || words[next]?.terms.some((term) => isUnit(term, language));
  return words[part]?.part === 0.5 && (next === words.length || !isOther) ? words[part] : undefined;
}

/** The index of the next word before or after another that is no stop word. */
function beyond(words: readonly CountedWord[], at: number, step: number): number {
  let next = at + step;
  while (words[next]?.isSmall) next += step;
  return next;
}

function isAnd(words: readonly CountedWord[], at: number, language: string): boolean {
  return wordsOf(language).answers.connectors.includes(words[at]?.text ?? "");
}

/** True for the term of a unit in a language, such as "day". */
export function isUnit(term: string, language: string): boolean {
  return unitsByTerm(language).has(term);
}

/** True for "two days" and "a day", not for "per day". */
export function isNumbered({ count, before }: Quantity): boolean {
  return count !== undefined || ARTICLE.test(before);
}

/** The spans of time among the units of a text, and the other units that have a number. */
export function spansIn(text: string, language: string): Quantity[] {
  return quantitiesIn(text, language).filter((one) => UNITS.duration.includes(one.unit) || isNumbered(one));
}

/** True if a text has a number of units of a measure, or one of them. */
export function isMeasured(text: string, measure: Measure, language: string): boolean {
  const isOne = (word: string) => measure !== "age" && ARTICLE.test(word);
  return quantitiesIn(text, language).some(
    ({ unit, count, before }) =>
      UNITS[measure].includes(unit) && (count === undefined ? isOne(before) : measure !== "age" || !SINCE.test(before)),
  );
}

const unitsByTerm = lazyByKey((language: string): Map<string, string> => {
  const known = [...new Set(Object.values(UNITS).flat())].filter((unit) => unit !== "quarter");
  const named = known.flatMap((unit) =>
    [language, "en-GB"].flatMap((code) => namesOf(unit, code).map((name) => ({ unit, name }))),
  );
  // The symbol of the SI, which the short names of most languages don't have.
  named.push({ unit: "hour", name: "h" });
  named.push(
    ...alternatives("quarterHours")
      .split("|")
      .map((name) => ({ unit: "quarter", name })),
  );
  return new Map(named.flatMap(({ unit, name }) => termsIn(name, language).map((term) => [term, unit] as const)));
});

/** The names of a unit in a language, long and short, for one and for several. */
export function namesOf(unit: string, code: string): string[] {
  const displays = ["long", "short"] as const;
  return displays.flatMap((unitDisplay) =>
    [1, 3].map((count) => {
      const parts = new Intl.NumberFormat(code, { style: "unit", unit, unitDisplay }).formatToParts(count);
      return parts.find(({ type }) => type === "unit")?.value ?? "";
    }),
  );
}
