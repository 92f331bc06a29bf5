import { languages } from "../../../schemas/languages.ts";
import { fold } from "../../platform/characters.ts";
import { calendarNames } from "../../platform/formats.ts";
import { lazy, lazyByKey } from "../../platform/lazy.ts";
import { termsIn, wordsIn } from "./words.ts";

/** The form of a requested answer. */
export type Shape = Measure | "amount" | "clock" | "time" | "count" | "place" | "person" | "phone" | "mail";

/** A number of units. */
type Measure = keyof typeof UNITS;

/** The units of each measure, by their names in Intl. */
const UNITS = {
  duration: ["second", "minute", "hour", "day", "week", "month", "year"],
  age: ["month", "year"],
  weight: ["gram", "kilogram", "ounce", "pound", "stone"],
  length: ["millimeter", "centimeter", "meter", "kilometer", "inch", "foot", "yard", "mile"],
  warmth: ["celsius", "fahrenheit", "degree"],
};
/** "An hour" is one. */
const ARTICLE =
  /^(?:an?|half|ein(?:e[nmrs]?)?|halbe[nrs]?|une?|demie?|una?|medi[ao]|mezz[ao]|een|halve?|uma?|mei[ao])$/;
/** "For two years" is no age. */
const SINCE = /^(?:for|since|seit|depuis|pendant|desde|durante|sinds|per|ha)$/;

const CLOCK = "\\d{1,2}[:.h]\\d{2}(?!\\d)|\\d\\s?(?:[ap]\\.?m\\b|uhr|h\\b|heures?|uur)";
const NOONS =
  "noon|midnight|mittags?|mitternacht|mediodia|medianoche|midi|minuit|mezzogiorno|mezzanotte|middernacht|meio-dia|meia-noite";
const codes = Object.keys(languages);

const forms = lazy(
  (): Record<Exclude<Shape, "count" | Measure>, RegExp> => ({
    amount:
      /[€$£¥₹%]|\b(?:eur|usd|gbp|chf|euros?|dollars?|pounds?|franken|francs?|pence|free|kostenlos|kostenfrei|gratis|gratuit\w*|gratuito)\b/,
    clock: new RegExp(
      `${CLOCK}|\\b\\d{1,2}\\s?(?:[-–]|to|till|bis|a|as|alle|tot|y|et)\\s?\\d{1,2}\\b|\\b(?:${NOONS})\\b`,
    ),
    time: new RegExp(
      `${CLOCK}|\\b(?:1[89]|20)\\d{2}\\b|\\b(?:${calendar()})(?:s|en)?\\b|\\b(?:before|after|until|vor|nach|bis|avant|apres|hasta|dopo|prima|daily|taglich)\\b`,
    ),
    place:
      /\d{4,5}\s+\p{L}|\b[a-z]{1,2}\d{1,2}[a-z]? \d[a-z]{2}\b|\p{L}(?:strasse|str\.|gasse|weg|platz)\b|\b(?:street|road|lane|square|avenue|rue|place|calle|avenida|plaza|via|piazza|straat|plein|rua|quay|floor)\b/u,
    person: /\p{Lu}\p{Ll}+\s\p{Lu}\p{Ll}+/u,
    phone: /(?:\+|\b0)\d[\d\s()/.-]{6,}\d|\b\d{3}[-. ]\d{3}[-. ]\d{3,4}\b/,
    mail: /[\w.+-]+@[\w-]+\.[\w.-]+/,
  }),
);

const span = lazy(() => new RegExp(`^(?:${spans()})$`));

/** True for the name of a span of time, from the second to the year. */
export function isSpan(word: string): boolean {
  return span().test(word);
}

/** True if a text of a language contains something of a shape. */
export function holdsShape(text: string, shape: Shape, language: string): boolean {
  // A number that is written out is a term; a telephone number counts nothing.
  if (shape === "count")
    return termsIn(text.split(forms().phone).join(" "), language).some((term) => /^\p{N}/u.test(term));
  // "Within two weeks" is a time too, and "since 1974" is a duration.
  if (shape === "time" && isMeasured(text, "duration", language)) return true;
  if (shape === "duration" && /\b(?:1[89]|20)\d{2}\b/.test(text)) return true;
  if (isMeasure(shape)) return isMeasured(text, shape, language);
  return forms()[shape].test(shape === "person" ? text : fold(text));
}

/** True for a number of units, such as a weight. */
export function isMeasure(shape: Shape): shape is Measure {
  return Object.hasOwn(UNITS, shape);
}

/** A number with a unit at most one word after it: "3 kg", "two working days", "10-day". */
function isMeasured(text: string, measure: Measure, language: string): boolean {
  const words = wordsIn(text, language);
  const isUnit = (at: number) => words[at]?.terms.some((term) => unitTerms(language)[measure].has(term)) ?? false;
  return words.some(({ text: word, terms }, at) => {
    const isNumber = terms.some((term) => /^\p{N}/u.test(term)) || ARTICLE.test(word);
    const isSince = measure === "age" && SINCE.test(words[at - 1]?.text ?? "");
    return isNumber && !isSince && (isUnit(at + 1) || isUnit(at + 2));
  });
}

const unitTerms = lazyByKey((language: string): Record<Measure, ReadonlySet<string>> => {
  const termsOf = (units: readonly string[]) => {
    const names = [language, "en-GB"].flatMap((code) =>
      units.flatMap((unit) => [...unitNames(unit, code, "long"), ...unitNames(unit, code, "short")]),
    );
    return new Set(names.flatMap((name) => termsIn(name, language)));
  };
  const { duration, age, weight, length, warmth } = UNITS;
  return {
    duration: termsOf(duration),
    age: termsOf(age),
    weight: termsOf(weight),
    length: termsOf(length),
    warmth: termsOf(warmth),
  };
});

/** The names of the days of the week and of the months, as one alternative of a pattern. */
function calendar(): string {
  const names = codes.flatMap((code) => [...calendarNames(code, "weekday"), ...calendarNames(code, "month")]);
  return alternatives(names.map(fold));
}

/** The names of units of time, one and several. */
function spans(): string {
  return alternatives(
    codes.flatMap((code) => UNITS.duration.flatMap((unit) => unitNames(unit, code, "long").map(fold))),
  );
}

/** The names of a unit in a language: for one and for several. */
function unitNames(unit: string, code: string, unitDisplay: "long" | "short"): string[] {
  return [1, 3].map((count) => {
    const parts = new Intl.NumberFormat(code, { style: "unit", unit, unitDisplay }).formatToParts(count);
    return parts.find(({ type }) => type === "unit")?.value ?? "";
  });
}

function alternatives(words: string[]): string {
  return [...new Set(words)]
    .filter((word) => word !== "")
    .map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
    .join("|");
}
