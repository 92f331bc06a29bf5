import { wordsOf } from "../../../schemas/languages.ts";
import { calendarNames } from "../../platform/formats.ts";
import { lazyByKey } from "../../platform/lazy.ts";
import { UNIT } from "./amounts.ts";
import { alternatives } from "./phrases.ts";

/** What may follow the hour of a time of day. */
export const AFTER_HOUR = `(?:${alternatives("clock")}|h|[ap]\\.?m)\\b`;
/** "16.04.2027", "6/3/27", "2027-04-16", and both ends of "16.4.2027-18.4.2027". */
const FULL =
  /(?:(?<![\d./-])|(?<=\d\.-|[./]\d\d(?:\d\d)?-))(?:(\d{4})-(\d{2})-(\d{2})|(\d{1,2})([./])\s?(\d{1,2})\5\s?(\d{4}|\d{2})|(\d{1,2})-(\d{1,2})-(\d{4}))(?![./]?\d|-\d(?!\d?[./]))/g;
/** The first day of "14.-18.6.2027" and "13./14.2.", whose month is that of the next one. */
const FIRST = /(?<![\d.,:/-])(\d{1,2})\.\s?[-–/]\s?(?=\d{1,2}\.\s?(\d{1,2})\.)/g;
/** "24.12." */
const SHORT = /(?<![\d,/:.])(\d{1,2})\.\s?(\d{1,2})\.(?!\s?\d)/g;

/**
 * The text without its dates, each given to `add` as figures: `date 4-16` for the sixteenth of April in any form, `date 3-6/6-3` if the
 * order of day and month is unknown, and its year as `number 2027`. Of "12–14 June" or "4, 11 and 18 May" each day is a date; a month
 * alone is none.
 */
export function withoutDates(text: string, language: string, add: (figure: string) => void = () => {}): string {
  const { names, dayFirst, monthFirst, isShort } = calendarOf(language);
  const read = (match: string, [day, month, year]: (string | undefined)[], isSwappable = false): string => {
    const days = [dayOf(day, month), isSwappable ? dayOf(month, day) : undefined].filter(Boolean);
    if (days.length === 0) return match;
    add(`date ${[...new Set(days)].join("/")}`);
    if (year) add(`number ${year.length === 2 ? `20${year}` : year}`);
    return " ; ";
  };
  const named = (match: string, list: string, month: string, year?: string): string => {
    // In English, "may" and "march" are other words too.
    if (language === "en" && !/^\p{Lu}/u.test(month)) return match;
    const days = list.match(/\d+/g)!.map((day) => dayOf(day, String(1 + names.get(month.toLowerCase())!)));
    if (!days.every(Boolean)) return match;
    for (const day of days) add(`date ${day}`);
    if (year) add(`number ${year}`);
    return " ; ";
  };
  const apart = isShort ? text.replace(FIRST, (match, day, month) => read(match, [day, month])) : text;
  let rest = apart.replace(FULL, (match, ...[y, m, d, day, mark, month, year, first, second, last]) =>
    y
      ? read(match, [d, m, y])
      : first
        ? read(match, [first, second, last])
        : read(match, [day, month, year], mark === "/"),
  );
  if (isShort) rest = rest.replace(SHORT, (match, day, month) => read(match, [day, month]));
  rest = rest.replace(dayFirst, (match, days, month, year) => named(match, days, month, year));
  return monthFirst ? rest.replace(monthFirst, (match, month, days, year) => named(match, days, month, year)) : rest;
}

/** `4-16`; undefined if there is no such day. */
function dayOf(day = "", month = ""): string | undefined {
  const isDay = Number(day) >= 1 && Number(day) <= 31 && Number(month) >= 1 && Number(month) <= 12;
  return isDay ? `${Number(month)}-${Number(day)}` : undefined;
}

/** True if two dates may be the same day. */
export function isSameDay(one: string, other: string): boolean {
  const days = one.split("/");
  return other.split("/").some((day) => days.includes(day));
}

const calendarOf = lazyByKey((language: string) => {
  const codes = language === "en" ? ["en", "en-GB"] : [language];
  const lists = codes.flatMap((code) => [calendarNames(code, "month"), calendarNames(code, "month", "short")]);
  const names = new Map(lists.flatMap((list) => list.map((name, at) => [name, at] as const)));
  const name = `(${[...names.keys()].sort((one, other) => other.length - one.length).join("|")})(?!\\p{L})\\.?`;
  const of = alternatives("ofMonth");
  const year = `(?:,?\\s(?:(?:${of})\\s)?(\\d{4})(?!\\d))?`;
  const and = wordsOf(language).answers.connectors.filter((phrase) => !phrase.includes(" "));
  const to = `(?:\\s?[-–]\\s?|\\s(?:${alternatives("ranges", "toDay")})\\s)`;
  const between = `(?:${to}|\\s?[/&]\\s?|\\s(?:${and.join("|")})\\s)`;
  // "1st", "1er", "1." and "1°"
  const day = `\\d{1,2}(?!\\d|\\s?${AFTER_HOUR})(?:[.°]|\\p{L}{1,2}(?!\\p{L}))?`;
  // The span in "May 4, 9–12" is of hours, and "May 4, 12 places" no list.
  const days = (afterComma = "") => `(${day}(?:${between}${day}|\\s?,\\s?${day}${afterComma}){0,9})`;
  // "1st of May", "1 de mayo", but not "€1, 3 May"
  const dayFirst = `(?=\\d)(?<![\\d.,:/]|(?<!\\d\\s?)${UNIT}\\s?)${days()}\\s(?:(?:${of})\\s)?${name}${year}`;
  const monthFirst = `(?<!\\p{L})${name}\\s${days(`(?!${to}\\d|(?!${between})\\s\\p{L})`)}(?![.:]?\\d|\\s?[-–]\\s?\\d|\\s?${UNIT})${year}`;
  const parts = new Intl.DateTimeFormat(language, { day: "numeric", month: "long" }).formatToParts(0);
  const order = parts.map(({ type }) => type);
  const numeric = new Intl.DateTimeFormat(language, { day: "numeric", month: "numeric" }).format(0);
  return {
    names,
    dayFirst: new RegExp(dayFirst, "giu"),
    monthFirst: order.indexOf("month") < order.indexOf("day") ? new RegExp(monthFirst, "giu") : undefined,
    isShort: /\d\.\s?\d+\.$/.test(numeric),
  };
});
