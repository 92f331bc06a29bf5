import { visibleCharacters } from "../platform/characters.ts";

/** What a text claims that can be checked without understanding it. */
export interface Facts {
  /** In plain decimal form: `1000`, `29.5`. */
  numbers: ReadonlySet<string>;
  /** Small numbers that the text writes as words, as digits. */
  words: ReadonlySet<string>;
  /** Amounts as `EUR 29.5`, shares as `% 20`. */
  amounts: ReadonlySet<string>;
  /** Units of the amounts, and currencies that are named without one. */
  units: ReadonlySet<string>;
  /** Times of day in minutes. */
  times: ReadonlySet<number>;
  /** Words that hold digits after letters (`SAVE20`), in lower case. */
  codes: ReadonlySet<string>;
  mails: ReadonlySet<string>;
  /** Digits of telephone numbers. */
  phones: ReadonlySet<string>;
  /** Addresses without scheme, `www.` and final slash. */
  links: ReadonlySet<string>;
}

const MAIL = /[\p{L}\p{N}._%+-]{1,64}@[\p{L}\p{N}.-]{1,255}/gu;
const ADDRESS = /\b(?:[a-z][a-z0-9+.-]{1,20}:\/\/|www\.)[^\s<>"'`)\]}]+/gi;
const ENDINGS =
  "com org net io co de at ch eu uk fr es it nl be pt br us ca au info biz dev app ai me tv shop store online site xyz gg ly " +
  "link click page blog cloud example test invalid localhost ru cn in jp pl se dk no fi ie lu";
const HOST = new RegExp(
  `^[\\p{L}\\p{N}-]+(?:\\.[\\p{L}\\p{N}-]+)*\\.(?:${ENDINGS.replaceAll(" ", "|")})(?:[/?#:]\\S*)?$`,
  "iu",
);
const PHONE = /(?<!\d)(?:\+|\(?0)\d[\d\s()./-]{5,24}\d|(?<!\d)\d{3}[-. ]\d{3}[-. ]\d{4}(?!\d)/g;
const DATE = /^\d{1,2}([./-])\d{1,2}\1\d{2,4}$/;
const SHORTEST_PHONE = 7;
const TIME =
  /(?<![\d.,:])(\d{1,2})(?:(?::|\s?h\s?)(\d{2})(?!\d)|\.(\d{2})(?=\s?(?:uhr|[ap]\.?m))|(?=\s?(?:uhr|uur|heures?|h|[ap]\.?m)\b))(?:\s?([ap])\.?m\b\.?)?/gi;
const CODE = /(?<![\p{L}\p{N}])\p{L}+\d[\p{L}\p{N}]*/gu;
const NUMBER = /\d{1,3}(?:[ \u00a0\u202f'’]\d{3})+(?!\d)|\d+(?:[.,]\d+)*/g;
const UNIT_BEFORE = /(us\$|r\$|[€$£¥₹]|\b(?:eur|usd|gbp|chf|cad|aud|brl|jpy|inr|sek|nok|dkk|pln|fr\.|kr))\s?$/i;
const UNIT_AFTER =
  /^\s?([%€$£¥₹]|(?:eur|usd|gbp|chf|cad|aud|brl|jpy|inr|sek|nok|dkk|pln|kr|zł|euros?|dollars?|pounds?|francs?|franken|reais|rupees?|yen|per ?cent|prozent|pour ?cent|por ?ciento|por ?cento|procent)(?!\p{L}))/iu;
const UNIT_NAMED =
  /[€$£¥₹]|\b(?:eur|usd|gbp|chf|cad|aud|brl|jpy|inr|sek|nok|dkk|pln|euros?|dollars?|pounds?|francs?|franken)\b/gi;
/** Names of one unit, the first being its code. */
const UNITS = [
  "EUR € euro euros",
  "USD $ us$ dollar dollars",
  "GBP £ pound pounds",
  "CHF fr. franc francs franken",
  "JPY ¥ yen",
  "INR ₹ rupee rupees",
  "BRL r$ reais",
  "SEK kr",
  "PLN zł",
  "% percent prozent pourcent porciento porcento procent",
].map((row) => row.split(" "));
/** Numbers from two upwards as public text writes them. */
const NUMBER_WORDS = [
  "two zwei deux dos due twee dois duas",
  "three drei trois tres tre drie três",
  "four vier quatre cuatro quattro quatro",
  "five fünf cinq cinco cinque vijf",
  "six sechs seis sei zes",
  "seven sieben sept siete sette zeven sete",
  "eight acht huit ocho otto oito",
  "nine neun neuf nueve nove negen",
  "ten zehn dix diez dieci tien dez",
  "eleven elf onze once undici",
  "twelve zwölf douze doce dodici twaalf doze",
].map((row) => row.split(" "));
/** Common words that hold digits and claim nothing. */
const HARMLESS_CODES = new Set(["b2b", "b2c", "h2o", "co2", "web3", "mp3", "mp4", "html5"]);

/** Reads the checkable facts of a text; linear in its length. */
export function factsOf(text: string): Facts {
  return new FactReader(text).read();
}

/** True where everything that a sentence claims occurs in the evidence; numbers, amounts and times count by value. */
export function supports(evidence: Facts, claim: Facts): boolean {
  return (
    every(claim.mails, (mail) => evidence.mails.has(mail)) &&
    every(claim.links, (link) => evidence.links.has(link)) &&
    every(claim.codes, (code) => HARMLESS_CODES.has(code) || evidence.codes.has(code)) &&
    every(claim.phones, (phone) => some(evidence.phones, (known) => known.endsWith(phone))) &&
    every(claim.times, (time) => supportsTime(evidence, time)) &&
    every(claim.numbers, (number) => evidence.numbers.has(number) || evidence.words.has(number)) &&
    every(claim.amounts, (amount) => supportsAmount(evidence, amount))
  );
}

function supportsTime({ times, numbers }: Facts, time: number): boolean {
  return times.has(time) || (time % 60 === 0 && numbers.has(String(time / 60)));
}

/** The evidence names the amount, or the bare number and its only currency elsewhere (say, above a column). */
function supportsAmount({ amounts, numbers, units }: Facts, amount: string): boolean {
  const [unit = "", number = ""] = amount.split(" ");
  const otherwise = some(amounts, (known) => known.endsWith(` ${number}`));
  return amounts.has(amount) || (!otherwise && numbers.has(number) && units.size === 1 && units.has(unit));
}

function every<T>(values: ReadonlySet<T>, holds: (value: T) => boolean): boolean {
  return !some(values, (value) => !holds(value));
}

function some<T>(values: ReadonlySet<T>, holds: (value: T) => boolean): boolean {
  for (const value of values) if (holds(value)) return true;
  return false;
}

/** Takes facts out of a text one kind after the other, so that no digit counts twice. */
class FactReader {
  private rest: string;
  private readonly numbers = new Set<string>();
  private readonly amounts = new Set<string>();
  private readonly units = new Set<string>();

  constructor(text: string) {
    this.rest = visibleCharacters(text)
      .normalize("NFKC")
      .replace(/(?![0-9])\p{Nd}/gu, asciiDigit);
  }

  read(): Facts {
    const mails = new Set(this.take(MAIL).map(([mail]) => mail.toLowerCase().replace(/[.-]+$/, "")));
    const links = new Set([...this.take(ADDRESS).map(([link]) => bareAddress(link)), ...this.takeHosts()]);
    const phones = new Set(this.take(PHONE, isPhone).map(([phone]) => phone.replace(/\D/g, "")));
    const times = new Set(this.take(TIME).map(minutesOf));
    const codes = new Set(this.take(CODE).map(([code]) => code.toLowerCase()));
    for (const match of this.rest.matchAll(NUMBER)) this.addNumber(match);
    for (const [unit] of this.rest.matchAll(UNIT_NAMED)) this.units.add(codeOf(unit));
    const { numbers, amounts, units } = this;
    return { mails, links, phones, times, codes, numbers, amounts, units, words: this.numberWords() };
  }

  private take(pattern: RegExp, isOne: (match: string) => boolean = () => true): RegExpExecArray[] {
    const found = [...this.rest.matchAll(pattern)].filter(([match]) => isOne(match));
    if (found.length > 0) this.rest = this.rest.replace(pattern, (match) => (isOne(match) ? " ; " : match));
    return found;
  }

  /** Hosts without a scheme, as in "see example.com". */
  private takeHosts(): string[] {
    if (!/\.\p{L}{2}/u.test(this.rest)) return [];
    const found: string[] = [];
    const kept = this.rest.split(/(\s+)/).map((word) => {
      const host = word.slice(0, 300).replace(/^[("'[<*_]+|[)"'\]>*_.,;:!?]+$/g, "");
      if (!HOST.test(host)) return word;
      found.push(bareAddress(host));
      return ";";
    });
    this.rest = kept.join("");
    return found;
  }

  private addNumber({ 0: token, index }: RegExpExecArray): void {
    const number = numberOf(token);
    if (number === undefined) {
      for (const part of token.split(/[.,]/)) this.numbers.add(plainDigits(part));
      return;
    }
    this.numbers.add(number);
    const end = index + token.length;
    const before = UNIT_BEFORE.exec(this.rest.slice(Math.max(0, index - 6), index))?.[1];
    const unit = before ?? UNIT_AFTER.exec(this.rest.slice(end, end + 16))?.[1];
    if (unit !== undefined) this.amounts.add(`${codeOf(unit)} ${number}`);
  }

  private numberWords(): Set<string> {
    const words = new Set(this.rest.toLowerCase().match(/\p{L}+/gu) ?? []);
    const found = NUMBER_WORDS.map((names, at) => (names.some((name) => words.has(name)) ? String(at + 2) : ""));
    return new Set(found.filter((number) => number !== ""));
  }
}

/** Decimal digits of every script stand in blocks of ten. */
function asciiDigit(digit: string): string {
  const point = digit.codePointAt(0)!;
  let value = 0;
  while (value < 9 && /\p{Nd}/u.test(String.fromCodePoint(point - value - 1))) value++;
  return String(value);
}

function bareAddress(address: string): string {
  const trimmed = address.replace(/[.,;:!?*_]+$/, "").replace(/^(?:https?:\/\/)?(?:www\.)?/i, "");
  const [host = ""] = trimmed.split(/[/?#]/);
  return (host.toLowerCase() + trimmed.slice(host.length)).replace(/\/$/, "");
}

function isPhone(match: string): boolean {
  return match.replace(/\D/g, "").length >= SHORTEST_PHONE && !DATE.test(match.trim());
}

function minutesOf([, hours, minutes, dotted, half]: RegExpExecArray): number {
  const afternoon = half?.toLowerCase() === "p" ? 12 : 0;
  const hour = half ? (Number(hours) % 12) + afternoon : Number(hours);
  return hour * 60 + Number(minutes ?? dotted ?? 0);
}

/** The value of `1,000`, `1.000`, `1 000`, `29,50`; undefined for dates and versions, which are several numbers. */
function numberOf(token: string): string | undefined {
  const compact = token.replace(/[ \u00a0\u202f'’]/g, "");
  const decimal = Math.max(compact.lastIndexOf("."), compact.lastIndexOf(","));
  if (decimal < 0) return plainDigits(compact);
  const groups = compact.split(/[.,]/);
  const grouped = groups[0]!.length <= 3 && groups[0] !== "0" && groups.slice(1).every((group) => group.length === 3);
  const mixed = compact.includes(".") && compact.includes(",");
  if (grouped && !mixed) return plainDigits(groups.join(""));
  if (groups.length > 2 && !(mixed && groups.slice(1, -1).every((group) => group.length === 3))) return undefined;
  const fraction = groups.at(-1)!.replace(/0+$/, "");
  return plainDigits(groups.slice(0, -1).join("")) + (fraction === "" ? "" : `.${fraction}`);
}

function plainDigits(digits: string): string {
  return digits.replace(/^0+(?=\d)/, "");
}

function codeOf(unit: string): string {
  const name = unit.toLowerCase().replace(/\s/g, "");
  return UNITS.find((row) => row.includes(name))?.[0] ?? name.toUpperCase();
}
