import { fold } from "../../platform/characters.ts";
import { calendarNames } from "../../platform/formats.ts";
import { lazy } from "../../platform/lazy.ts";
import { UNIT } from "./amounts.ts";
import { AFTER_HOUR } from "./dates.ts";
import { figuresIn } from "./figures.ts";
import { isAbout } from "./matching.ts";
import { isMeasure, isMeasured, type Measure, spansIn } from "./measures.ts";
import { alternatives } from "./phrases.ts";
import { termsIn } from "./words.ts";

/**
 * The form of a requested answer. `things` is a number of things, `count` a number of any kind: "hoeveel" and "combien de" ask for a share or
 * a weight too.
 */
export type Shape = Measure | "amount" | "clock" | "time" | "things" | "count" | "phone" | "mail" | "place";

const CLOCK = `\\d{1,2}[:.h]\\d{2}(?!\\d)|\\d\\s?${AFTER_HOUR}`;
/** "At 9", with the word after it; "at 9 euros" and "at 9 °C" are no times. */
const HOUR = `\\b(?:${alternatives("hour")})\\s(?:1?\\d|2[0-4])\\b(?![.,]\\d|\\s?(?:°|${UNIT}))(?:\\s(\\p{L}+))?`;

const forms = lazy(
  (): Record<Exclude<Shape, "things" | "count" | "place" | Measure> | "hour", RegExp> => ({
    amount: new RegExp(`${UNIT}(?!\\p{L})|\\b(?:${alternatives("coins")})\\b`, "u"),
    clock: new RegExp(`${CLOCK}|\\b\\d{1,2}\\s?(?:[-–]|${alternatives("ranges")})\\s?\\d{1,2}\\b`, "u"),
    time: new RegExp(`${CLOCK}|\\b(?:${alternatives("moments")})\\b`, "u"),
    hour: new RegExp(HOUR, "giu"),
    phone: /(?:\+|\b0)\d[\d\s()/.-]{6,}\d|\b\d{3}(?:\) ?|[-. ])\d{3}[-. ]\d{3,4}\b/,
    mail: /(?<![\w.+-])[\w.+-]{1,64}@[\w-]+\.[\w.-]+/,
  }),
);

/** True if a text of a language contains something of a shape. */
export function holdsShape(text: string, shape: Shape, language: string): boolean {
  if (shape === "things") return text.split("\t").some((cell) => countsThings(cell, language));
  // A number that is written out is a term; a telephone number counts nothing.
  if (shape === "count")
    return termsIn(text.split(forms().phone).join(" "), language).some((term) => /^\p{N}/u.test(term));
  // "Within two weeks" is a time too, and "since 1974" is a duration.
  if (shape === "time" && (isMeasured(text, "duration", language) || isAbout(days(), text, language))) return true;
  if ((shape === "time" || shape === "clock") && withoutHours(text, language) !== text) return true;
  if ((shape === "time" || shape === "duration") && yearsIn(text, language).length > 0) return true;
  if (shape === "amount" && isAbout(["free"], text, language)) return true;
  if (shape === "place") return POSTCODE.test(text);
  if (isMeasure(shape)) return isMeasured(text, shape, language);
  return forms()[shape].test(fold(text));
}

/** True if a text has a whole number that is no price, percentage, year, date, time of day or telephone number, and of no unit. */
function countsThings(text: string, language: string): boolean {
  const timeless = withoutHours(text, language);
  const figures = [...figuresIn(timeless, language)].map((figure) => figure.split(" "));
  const valuesOf = (kind: string) => figures.flatMap(([one, ...rest]) => (one === kind ? [rest.at(-1)!] : []));
  const spans = spansIn(text, language).map(({ count }) => count);
  const others = [...valuesOf("amount"), ...spans, ...yearsIn(text, language)];
  const [said, other] = [timesOfEach(termsIn(timeless, language)), timesOfEach(others)];
  // "8 children from 8 to 12 years" has one 8 more than its spans.
  const isMore = (value: string) => (said.get(value) ?? 1) > (other.get(value) ?? 0);
  return valuesOf("number").some((value) => /^\d+$/.test(value) && isMore(value));
}

function timesOfEach<T>(list: readonly T[]): Map<T, number> {
  const times = new Map<T, number>();
  for (const one of list) times.set(one, (times.get(one) ?? 0) + 1);
  return times;
}

/** The numbers of a text that may be years: not "2,000", nor that of "2000 members". */
function yearsIn(text: string, language: string): string[] {
  const isCount = (year: string, next?: string) => (year < "1800" || year.endsWith("00")) && isCounted(next, language);
  return [...text.matchAll(YEAR)].flatMap(([, year = "", next]) => (isCount(year, next) ? [] : [year]));
}

/** A text without hours of the day: "las 24 habitaciones" has none. */
function withoutHours(text: string, language: string): string {
  return text.replace(forms().hour, (whole, next?: string) => (isCounted(next, language) ? whole : ` ; ${next ?? ""}`));
}

/** True for a word right after a number that is no stop word. */
function isCounted(next: string | undefined, language: string): boolean {
  return next !== undefined && termsIn(next, language).length > 0;
}

const YEAR = /((?<![\d.,])(?:1[89]|20)\d{2}|(?<=\p{L}\s|\()1[0-7]\d{2})(?!\d|[.,]\d)(?:\s(\p{L}+))?/gu;

/**
 * A postal code: "LA9 4DH", "M5V 2T6", "TX 78701"; at the start or behind a mark: "72070 Tübingen", "8800-322 Tavira", "1017 CE Amsterdam".
 * No year, and no "5000 Gäste".
 */
const POSTCODE =
  /\b[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}\b|\b[A-Z]\d[A-Z] ?\d[A-Z]\d\b|\b[A-Z]{2} \d{5}\b|(?<=^|[\n,;:·|(–-] ?)(?!(?:19|20)\d{2} )\d{4,5}(?:-\d{3})?(?: [A-Z]{2})? \p{Lu}\p{Ll}/u;

/** The matters of the days of the week and of the months. */
const days = lazy(() => [...calendarNames("en", "weekday"), ...calendarNames("en", "month")]);
