import { UNIT } from "./amounts.ts";
import { AFTER_HOUR } from "./dates.ts";
import { alternatives, boundsIn } from "./phrases.ts";
import { termsIn } from "./words.ts";

/** A whole number that is no price and no time of day. */
const START = `(?<![\\d.,:–-])(?<!${UNIT}\\s?)(\\d{1,3})`;
const END = `(?![\\d–-]|[.,:]\\d|\\s?(?:${UNIT}|${AFTER_HOUR}))`;
/** "6 to 10", "14 to 8" and "4 ans à 11". */
const RANGE = new RegExp(
  `${START}(?:\\s?\\p{L}{1,6})?\\s?(?:[-–]|(?:${alternatives("ranges", "toDay")})(?!\\p{L}))\\s?(\\d{1,3})${END}`,
  "giu",
);
const NUMBER = new RegExp(`${START}${END}`, "giu");
/** Characters beside a number that are read, and the words or the sign there that may make it a bound. */
const NEAR = 40;
const WORDS_BEFORE = /(?:\p{L}+['’ ]){0,3}$/u;
const WORDS_AFTER = /^(?:\+|(?: \p{L}+){0,3})/u;
const TERM = /^(\d*)–(\d*)$/;

/** The terms of a text, and those of its ranges of whole numbers: `6–10`, `–12` for "under 12", `14–` for "14 or over" and "14+". */
export function rangedTermsIn(text: string, language: string): string[] {
  const ranges: string[] = [];
  const rest = text.replace(RANGE, (_, from: string, to: string) => {
    ranges.push([from, to].sort((one, other) => Number(one) - Number(other)).join("–"));
    return " ; ";
  });
  const bounds = [...rest.matchAll(NUMBER)].flatMap((number) => boundAt(rest, number, language) ?? []);
  return [...termsIn(text, language), ...ranges, ...bounds];
}

function boundAt(text: string, { 0: number, index }: RegExpExecArray, language: string): string | undefined {
  const end = index + number.length;
  const [before] = WORDS_BEFORE.exec(text.slice(Math.max(0, index - NEAR), index))!;
  const [after] = WORDS_AFTER.exec(text.slice(end, end + NEAR))!;
  const [kind] = [before, after].flatMap((words) => boundsIn(words, language));
  if (after === "+" || kind === "more" || kind === "atLeast") return `${number}–`;
  return kind === "less" || kind === "atMost" ? `–${number}` : undefined;
}

/** True if a term is a range that contains a number. */
export function isWithin(number: string, term: string): boolean {
  const [, from = "", to = ""] = TERM.exec(term) ?? [];
  return from !== to && Number(from) <= Number(number) && (to === "" || Number(number) <= Number(to));
}
