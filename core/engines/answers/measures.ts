import { lazyByKey } from "../../platform/lazy.ts";
import { alternatives } from "./phrases.ts";
import { termsIn, wordsIn } from "./words.ts";

/** A measure, with its units by their names in Intl. */
const UNITS = {
  duration: ["second", "minute", "hour", "day", "week", "month", "year"],
  age: ["month", "year"],
  weight: ["gram", "kilogram", "ounce", "pound", "stone"],
  length: ["millimeter", "centimeter", "meter", "kilometer", "inch", "foot", "yard", "mile"],
  warmth: ["celsius", "fahrenheit", "degree"],
};
export type Measure = keyof typeof UNITS;
export const MEASURES = Object.keys(UNITS) as Measure[];

/** A unit in a text. */
export interface Quantity {
  unit: string;
  /** The number before it; undefined in a rate, such as "£4 a day". */
  count: string | undefined;
  /** The word before the unit and its number. */
  before: string;
}

/** How many units of time make one of the next longer unit. */
const LONGER = [
  ["minute", 60, "hour"],
  ["hour", 24, "day"],
  ["day", 7, "week"],
  ["month", 12, "year"],
] as const;
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

/** The units of a text, each with its number, which may have one word after it: "3 kg", "two working days", "10-day". */
function quantitiesIn(text: string, language: string): Quantity[] {
  const units = unitsByTerm(language);
  const words = wordsIn(text, language);
  const numbers = words.map(({ text, terms }) => (ONE.test(text) ? "1" : terms.find((term) => NUMBER.test(term))));
  return words.flatMap(({ terms }, at) => {
    const unit = terms.map((term) => units.get(term)).find(Boolean);
    if (unit === undefined) return [];
    const isNext = numbers[at - 1] !== undefined || words[at - 1]?.terms.length === 0;
    const from = at - (isNext ? 1 : 2);
    const count = numbers[from];
    const before = words[count === undefined ? at - 1 : from - 1]?.text ?? "";
    return [{ unit, count, before }];
  });
}

/** True for the term of a unit in a language, such as "day". */
export function isUnit(term: string, language: string): boolean {
  return unitsByTerm(language).has(term);
}

/** The spans of time among the units of a text. */
export function spansIn(text: string, language: string): Quantity[] {
  return quantitiesIn(text, language).filter(({ unit }) => UNITS.duration.includes(unit));
}

/** Spans of time in the next longer and the next shorter unit too: 14 days are 2 weeks, and a week is 7 days. */
export function withEqualSpans(spans: readonly Quantity[]): Quantity[] {
  const equal = ({ unit, count, before }: Quantity) =>
    LONGER.flatMap(([short, times, long]) => {
      const number = count === undefined && ARTICLE.test(before) ? 1 : Number(count);
      const value = unit === long ? number * times : unit === short ? number / times : Number.NaN;
      return Number.isInteger(value) ? [{ unit: unit === long ? short : long, count: String(value), before }] : [];
    });
  return [...spans, ...spans.flatMap(equal)];
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
  const named = [...new Set(Object.values(UNITS).flat())].flatMap((unit) =>
    [language, "en-GB"].flatMap((code) => namesOf(unit, code).map((name) => ({ unit, name }))),
  );
  // The symbol of the SI, which the short names of most languages don't have.
  named.push({ unit: "hour", name: "h" });
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
