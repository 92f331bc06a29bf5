import { lazy } from "./lazy.ts";

/**
 * Invisible characters: controls, soft hyphens, zero-width and bidirectional marks, interlinear marks, tag characters and the second range
 * of variation selectors. The last two can hide whole sentences.
 */
const HIDDEN =
  /[\u00ad\u061c\u115f\u1160\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]|\u034f|\u17b4|\u17b5|\u180e|(?![\t\n\r])\p{Cc}/gu;
/** Joiners, except after letters of Arabic, Indic and similar scripts and between the parts of an emoji, where they have a meaning. */
const JOINERS =
  /(?<![\p{Extended_Pictographic}\p{Emoji_Modifier}\p{M}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mongolian}])[\u200c\u200d]+/gu;
const LONE_SURROGATES = /\p{Cs}/gu;
const MAY_HIDE = /[^\t\n\r -~\u00a0-\u00ac\u00ae-\u033f]/;

/** The text without invisible characters. Letters, spaces and line breaks remain. */
export function visibleCharacters(text: string): string {
  if (!MAY_HIDE.test(text)) return text;
  return text.replace(LONE_SURROGATES, "").replace(HIDDEN, "").replace(JOINERS, "");
}

/** A visible character: no white space, control or default ignorable code point (UAX #44), no empty Braille cell or interlinear mark. */
const VISIBLE = /[^\s\p{Cc}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]/u;

/** True for a text without a visible character: a required text that is blank is missing. */
export function isBlank(text: string): boolean {
  return !VISIBLE.test(text);
}

/** One line: invisible characters removed, each run of white space replaced by one space, trimmed. */
export function oneLine(text: string): string {
  return visibleCharacters(text).replace(/\s+/g, " ").trim();
}

/** Spaces for tabs, which browsers keep in an input of one line when cells of a table are pasted into it. */
export function withoutTabs(text: string): string {
  return text.replaceAll("\t", " ");
}

/** The first characters of a text, trimmed. */
export function firstCharacters(text: string, maxLength: number): string {
  return [...text.trim()].slice(0, maxLength).join("").trimEnd();
}

/** True for a text of more than `limit` characters, which are Unicode code points. */
export function isLonger(text: string, limit: number): boolean {
  // A text has no more code points than UTF-16 units, so most texts need no counting.
  return text.length > limit && [...text].length > limit;
}

/** At most the first `limit` UTF-16 units, cut after a word if possible and never inside a character as people see it. */
export function clip(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return text.slice(0, /\s/.test(text[limit]!) ? limit : cutPoint(text, limit)).trimEnd();
}

/** Where to cut a text of more than `limit` UTF-16 units: after the last space of its second half, else between two visible characters. */
export function cutPoint(text: string, limit: number): number {
  for (let at = limit - 1; at > limit / 2; at--) if (/\s/.test(text[at]!)) return at + 1;
  const from = Math.max(0, limit - LONGEST_CHARACTER);
  const { index } = segmenter()
    .segment(text.slice(from, limit + 2))
    .containing(limit - from)!;
  if (index > 0) return from + index;
  return /[\ud800-\udbff]/.test(text[limit - 1]!) ? limit - 1 : limit;
}

// Lazy values here are marked as pure: bundles for browsers leave them out.
const segmenter = /* @__PURE__ */ lazy(() => new Intl.Segmenter("und", { granularity: "grapheme" }));
/** In UTF-16 units: an emoji of a family has 11. */
const LONGEST_CHARACTER = 64;

/** A letter of a script without spaces or with agglutinated words, where pairs of letters replace words. */
export const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

/** A letter with marks in a script that is also written without them; in others, such as Devanagari and kana, a mark makes another letter. */
const ACCENTED = /([\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Arabic}\p{Script=Hebrew}])\p{M}+/gu;

/** Two signs for whole phrases, of 18 and 8 letters: a text of them would take sixty times as long to read as any other. */
const PHRASE_SIGNS = /[\ufdfa\ufdfb]/g;

/** NFKC, with a space for each sign that stands for a whole phrase. */
export function compatible(text: string): string {
  return text.replace(PHRASE_SIGNS, " ").normalize("NFKC");
}

/** The text with the decimal digits of every script as 0 to 9. */
export function asciiDigits(text: string): string {
  return text.replace(/(?![0-9])\p{Nd}/gu, asciiDigit);
}

/** The decimal digits of a script are ten code points, some directly before those of another one. */
function asciiDigit(digit: string): string {
  const point = digit.codePointAt(0)!;
  let before = 0;
  while (/\p{Nd}/u.test(String.fromCodePoint(point - before - 1))) before++;
  return String(before % 10);
}

const STROKED = /[\u00df-\u024f]/g;
/** Latin letters that differ from a plain one by a stroke, which is no mark: "l" for "ł" (Unicode Technical Standard 10). */
const plainLetters = /* @__PURE__ */ lazy(() => {
  const { compare } = new Intl.Collator("en", { sensitivity: "base" });
  const plain = [..."abcdefghijklmnopqrstuvwxyz"];
  const stroked = Array.from({ length: 0x171 }, (_, at) => String.fromCharCode(0xdf + at));
  return new Map(stroked.map((letter) => [letter, plain.find((one) => compare(letter, one) === 0)]));
});

/** Lower case without accents: `Öffnungszeiten` and `offnungszeiten` are one word. */
export function fold(text: string): string {
  const lower = compatible(text).toLowerCase();
  return /^[\t\n\r -~]*$/.test(lower)
    ? lower
    : lower
        .replaceAll("ß", "ss")
        .replaceAll("ς", "σ")
        .replaceAll("ı", "i")
        .replace(/[’‘]/g, "'")
        .normalize("NFD")
        .replace(ACCENTED, "$1")
        .normalize("NFC")
        .replace(STROKED, (letter) => plainLetters().get(letter) ?? letter);
}

/** True for two words that differ only in case, `-` and `_`: `inPerson`, `in-person` and `IN_PERSON` are one word. */
export function sameWord(one: string, other: string): boolean {
  return letters(one) === letters(other);
}

function letters(word: string): string {
  return word.toLowerCase().replace(/[-_]/g, "");
}
