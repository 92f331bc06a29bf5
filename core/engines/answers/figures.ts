import { asciiDigits, compatible, UNSPACED, visibleCharacters } from "../../platform/characters.ts";
import { UNIT, unitNamed } from "./amounts.ts";
import { AFTER_HOUR, isSameDay, withoutDates } from "./dates.ts";
import { spansIn } from "./measures.ts";
import { alternatives } from "./phrases.ts";
import { plainNumber, wordsIn } from "./words.ts";

/**
 * The facts of a text that can be checked without understanding it, each as a kind and a value: `number 545`, `amount GBP 545`,
 * `time 570` (minutes), `date 4-16` (month and day), `mail …`, `phone …` (digits), `link …` (without scheme and final slash), `code save20`.
 */
export type Figures = ReadonlySet<string>;

const MAIL = /[\p{L}\p{N}._%+-]{1,64}@[\p{L}\p{N}.-]{1,255}/gu;
const ADDRESS = /\b(?:[a-z][a-z0-9+.-]{1,20}:\/\/|www\.)[^\s<>"'`)\]}]+/gi;
/** Not within a path or a file name, but behind a slash or a full stop of its own: people read `//acme.example` as a link. */
const HOST =
  /(?<![\p{L}\p{N}@-]|[\p{L}\p{N}@-][./])[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)*\.\p{L}{2,}(?![\p{L}\p{N}])(?:[/?#:][^\s<>"'`)\]}]*)?/giu;
/** With a plus, a zero or an area code first, or nine digits in groups. */
const PHONE =
  /(?<!\d)(?:\+|\(?0)\d[\d\s()./-]{5,24}\d|(?<!\d)\d{3}[-. ]\d{3}[-. ]\d{4}(?!\d)|(?<!\d)\d{3}[ .-]\d{3}[ .-]\d{3}(?!\d)|(?<!\d)\d{2,3}[ .-]\d{2,3}[ .-]\d{2}[ .-]\d{2}(?!\d)/g;
const DATE = /(?<![\d./-])(?:[0-2]?\d|3[01])([./-])(?:[0-2]?\d|3[01])\1\d{2,4}(?![./-]?\d)/;
/** In minutes. */
const HALF_DAY = 720;
const MIN_PHONE_DIGITS = 7;
const MIN_GROUPED_DIGITS = 9;
const TIME = new RegExp(
  `(?<![\\d.,:])(\\d{1,2})(?:(?::|\\s?h\\s?)(\\d{2})(?!\\d)|\\.(\\d{2})(?=\\s?${AFTER_HOUR})|(?=\\s?${AFTER_HOUR}))(?:\\s?([ap])\\.?m\\b\\.?)?`,
  "gi",
);
/** Marks of footnotes and exponents. */
const RAISED = /[⁰¹²³⁴-⁹]+/g;
/** A span of hours without a mark: "10 to 16", "9–5". */
const HOURS = new RegExp(
  `(?<![\\d.,:–-])(\\d{1,2})\\s?(?:[-–]|(?:${alternatives("ranges")})(?!\\p{L}))\\s?(\\d{1,2})(?![\\d–-]|[.,:]\\d|\\s?${UNIT})`,
  "giu",
);
/** In a script without spaces a whole sentence may stand before and behind a number. */
const LETTER = `(?:(?!${UNSPACED.source})\\p{L})`;
const CODE = new RegExp(`(?<![\\p{L}\\p{N}])${LETTER}+\\d(?:${LETTER}|\\p{N})*`, "gu");
const NUMBER = /\d{1,3}(?:[ \u00a0\u202f'’]\d{3})+(?:[.,]\d{1,2})?(?!\d)|\d+(?:[.,]\d+)*/g;
const UNIT_BEFORE = new RegExp(`(${UNIT})\\s?$`, "iu");
const UNIT_AFTER = new RegExp(`^\\s?(${UNIT}(?!\\p{L}))`, "iu");
/** Names of units that are no amounts by themselves. */
const UNIT_WORD = new RegExp(`^(?:${alternatives("coins", "clock")}|[ap]m|h)$`);
const UNIT_NAMED = new RegExp(`(?<!\\d\\s?)${UNIT}(?!\\p{L})(?!\\s?\\d)`, "giu");

/** The checkable facts of a text. Linear in its length. */
export function figuresIn(text: string, language: string): Set<string> {
  const found = new Set<string>();
  const visible = visibleCharacters(text).replace(RAISED, " ");
  let rest = asciiDigits(compatible(visible));
  const take = (pattern: RegExp, read: (match: string[]) => string | undefined) => {
    rest = rest.replace(pattern, (...match) => {
      const value = read(match);
      if (value === undefined) return match[0]!;
      found.add(value);
      return " ; ";
    });
  };
  take(MAIL, ([mail = ""]) => `mail ${mail.toLowerCase().replace(/[.-]+$/, "")}`);
  take(ADDRESS, ([link = ""]) => `link ${bareAddress(link)}`);
  take(HOST, ([link = ""]) => `link ${bareAddress(link)}`);
  rest = withoutDates(rest, language, (figure) => found.add(figure));
  take(PHONE, ([phone = ""]) => (isPhone(phone) ? `phone ${phone.replace(/\D/g, "")}` : undefined));
  take(TIME, (match) => `time ${minutesOf(match)}`);
  take(CODE, ([code = ""]) => `code ${code.toLowerCase()}`);
  for (const [, from, to] of rest.matchAll(HOURS)) found.add(`hour ${from}`).add(`hour ${to}`);
  for (const match of rest.matchAll(NUMBER)) addNumber(found, rest, match);
  const written = wordsIn(rest.replace(NUMBER, ";"), language).filter(({ text: word }) => /^\d+$/.test(word));
  for (const { text: number } of written) found.add(`number ${number}`);
  if (spansIn(rest, language).some(({ count }) => count === "1")) found.add("number 1");
  for (const unit of unitsNamedIn(rest)) found.add(`unit ${unit}`);
  return found;
}

/** The units of amounts that a text names without a number, such as `GBP` for "in pounds". */
export function unitsNamedIn(text: string): (string | undefined)[] {
  return [...text.matchAll(UNIT_NAMED)].map(([name]) => unitNamed(name));
}

/** True if a claim is among the figures of a text; amounts, times and numbers are compared by value. */
export function holdsFigure(figures: Figures, claim: string): boolean {
  if (figures.has(claim)) return true;
  const [kind = "", unit = "", value = ""] = claim.split(" ");
  const known = [...figures];
  if (kind === "date") return known.some((one) => one.startsWith("date ") && isSameDay(one.slice(5), unit));
  const isTime = (one: string) => one.startsWith("hour ") && isTimeOf(one.slice(5), Number(unit), true);
  if (kind === "time") return known.some(isTime);
  if (kind === "amount") return figures.has(`number ${value}`) && isOnlyUnit(figures, unit);
  return kind === "number" && known.some((one) => isNumberOf(one, unit));
}

/** A bare number is an amount if its unit is named elsewhere, as above its column, and no other number has a unit. */
function isOnlyUnit(figures: Figures, unit: string): boolean {
  return figures.has(`unit ${unit}`) && ![...figures].some((known) => known.startsWith("amount "));
}

/** True for the hour of a time, or all of one with a full stop, and for the day of a date, also with its month: "3.10" may be the third of October. */
function isNumberOf(figure: string, number: string): boolean {
  if (figure.startsWith("time ")) return isTimeOf(number, Number(figure.slice(5)));
  if (!figure.startsWith("date ")) return false;
  const [day = "", month] = number.split(".");
  return figure
    .slice(5)
    .split("/")
    .some((one) => (month ? one === `${Number(month)}-${Number(day)}` : one.endsWith(`-${day}`)));
}

/** True for a time of either half of the day, "9.3" for 9:30 and 21:30; without its minutes for any time of the hour, unless `isWhole`. */
function isTimeOf(number: string, minutes: number, isWhole = number.includes(".")): boolean {
  const [hour, part = ""] = number.split(".");
  const said = Number(hour) * 60 + Number(part.padEnd(2, "0"));
  const meant = isWhole ? minutes : minutes - (minutes % 60);
  return said === meant || (said <= HALF_DAY && (said + HALF_DAY) % (2 * HALF_DAY) === meant);
}

function addNumber(found: Set<string>, text: string, { 0: token, index }: RegExpExecArray): void {
  const compact = token.replace(/[ \u00a0\u202f'’]/g, "");
  // An amount has the same value with zeros at its end.
  const value = plainNumber(compact).replace(/^(\d+\.\d*?[1-9])0+$/, "$1");
  // A date or a version is several numbers.
  for (const part of /^\d+(?:\.\d+){2,}$/.test(value) ? value.split(".") : [value])
    found.add(`number ${plainNumber(part)}`);
  const end = index + token.length;
  const before = UNIT_BEFORE.exec(text.slice(Math.max(0, index - 6), index))?.[1];
  const unit = before ?? UNIT_AFTER.exec(text.slice(end, end + 16))?.[1];
  if (unit !== undefined) found.add(`amount ${unitNamed(unit)} ${value}`);
  else if (/^\d{1,2}\.\d{2}$/.test(token)) found.add(`hour ${value}`);
}

/** True for the name of a currency, of a percentage or of a part of the day. */
export function isUnitName(word: string): boolean {
  return unitNamed(word) !== undefined || UNIT_WORD.test(word);
}

/** An address without scheme, `www.` and final slash; the host in lower case. */
export function bareAddress(address: string): string {
  // A dot within a run of dots begins no search: an address may consist of them.
  const trimmed = address.replace(/(?<![.,;:!?*_])[.,;:!?*_]+$/, "").replace(/^(?:https?:\/\/)?(?:www\.)?/i, "");
  const [host = ""] = trimmed.split(/[/?#]/);
  return (host.toLowerCase() + trimmed.slice(host.length)).replace(/\/$/, "");
}

function isPhone(match: string): boolean {
  const { length } = match.replace(/\D/g, "");
  return length >= (/^\(?[+0]/.test(match) ? MIN_PHONE_DIGITS : MIN_GROUPED_DIGITS) && !DATE.test(match);
}

function minutesOf([, hours, minutes, dotted, half]: string[]): number {
  const afternoon = half?.toLowerCase() === "p" ? 12 : 0;
  const hour = half ? (Number(hours) % 12) + afternoon : Number(hours);
  return hour * 60 + Number(minutes ?? dotted ?? 0);
}
