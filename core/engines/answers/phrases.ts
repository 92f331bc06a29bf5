import { languages, type Words, wordsOf } from "../../../schemas/languages.ts";
import { fold } from "../../platform/characters.ts";
import { clitics } from "../../platform/languages.ts";
import { lazyByKey } from "../../platform/lazy.ts";

type FigureWords = Words["answers"]["figures"];
export type Bound = keyof Words["answers"]["bounds"];

const CLITIC = new RegExp(
  `(?<=\\p{L})'(?=(?:${clitics.map((clitic) => clitic.split("'")[1]).join("|")})(?!\\p{L}))`,
  "gu",
);

/** A text in the form that phrases are compared with: folded words with one space between them. */
export function plainWords(text: string): string {
  return fold(text)
    .replace(CLITIC, "")
    .replace(/[^\p{L}\p{M}\p{N}]+/gu, " ")
    .trim();
}

/** True if the text contains one of the phrases as whole words; `plain` comes from `plainWords`. */
export function holdsPhrase(plain: string, phrases: readonly string[]): boolean {
  return phrases.length > 0 && pattern(phrases, "", "(?= |$)").test(` ${plain}`);
}

/** True if the text begins with one of the phrases. */
export function startsWithPhrase(plain: string, phrases: readonly string[]): boolean {
  return phrases.length > 0 && pattern(phrases, "^", "(?= |$)").test(` ${plain}`);
}

/** True if the text is one of the phrases. */
export function isPhrase(plain: string, phrases: readonly string[]): boolean {
  return phrases.length > 0 && pattern(phrases, "^", "$").test(` ${plain}`);
}

/** The words of the longest phrase in the text, without wildcards and the words for them; undefined without a phrase. */
export function wordsOfPhrase(plain: string, phrases: readonly string[]): string[] | undefined {
  const held = phrases
    .filter((phrase) => holdsPhrase(plain, [phrase]))
    .map((phrase) => phrase.split(" ").filter((word) => !/^[*#]$/.test(word)));
  const fixed = held.sort((one, other) => other.join(" ").length - one.join(" ").length)[0];
  if (fixed === undefined) return undefined;
  return plain.split(" ").filter((word) => isPhrase(word, fixed));
}

/** The text without phrases that don't mean what their words say, such as "feel free"; as `plainWords` if it has one. */
export function withoutIdioms(text: string, language: string): string {
  const { idioms } = wordsOf(language).answers;
  const plain = plainWords(text);
  return holdsPhrase(plain, idioms) ? ` ${plain}`.replace(pattern(idioms, "", "(?= |$)"), "") : text;
}

function pattern(phrases: readonly string[], before: string, after: string): RegExp {
  return compiled([before, after, ...phrases].join("\n"));
}

const compiled = lazyByKey((key) => {
  const [before = "", after = "", ...phrases] = key.split("\n");
  return new RegExp(`${before}(?:${phrases.map(source).join("|")})${after}`, "u");
});

/** Each word of a phrase with the space before it; `*` is up to four words, `~` any ending, `#` a number. */
function source(phrase: string): string {
  const words = phrase.split(" ").map((word) => {
    if (word === "*") return "(?: \\S+){0,4}";
    if (word === "#") return " \\d+";
    return ` ${plainWords(word.replace("~", ""))}${word.endsWith("~") ? "\\p{L}*" : ""}`;
  });
  return words.join("");
}

/** The words of some lists in all languages as the alternatives of a pattern, such as `uhr|uur`. */
export function alternatives(...lists: Exclude<keyof FigureWords, "currencies">[]): string {
  const words = Object.values(languages).map(({ answers }) => lists.map((list) => answers.figures[list]));
  return asAlternatives(words.flat().join(" ").split(" "));
}

/** Names with accents and without as the alternatives of a pattern, the longest first. */
export function asAlternatives(names: readonly string[]): string {
  const spelt = [...new Set(names.flatMap((name) => [name.toLowerCase(), fold(name)]))].filter((name) => name !== "");
  const longestFirst = spelt.sort((one, other) => other.length - one.length);
  return longestFirst.map((name) => name.replace(/[.$]/g, "\\$&").replaceAll(" ", "\\s?")).join("|");
}

/** True if a text of a language negates something: "no more than" and its like do not. */
export function isNegated(text: string, language: string): boolean {
  const { bounds, negations } = wordsOf(language).answers;
  const phrases = Object.values(bounds).flatMap((list) => list.filter((phrase) => phrase.includes(" ")));
  const rest = phrases.reduce((some, phrase) => some.replaceAll(phrase, " "), text.toLowerCase());
  return hasWordOf(rest, negations);
}

/** True if a text of a language speaks of all cases, as "always" does. */
export function isUniversal(text: string, language: string): boolean {
  return hasWordOf(text, wordsOf(language).answers.universals);
}

/** True if a text speaks of all cases, or of each one or the whole. */
export function coversAll(text: string, language: string): boolean {
  return isUniversal(text, language) || hasWordOf(text, wordsOf(language).answers.totals);
}

/** What a text names after "with" or "including": `vat` of "prices with VAT". */
export function namedWith(text: string, language: string): string {
  const [, [words = ""] = []] = wordsOf(language).answers.opposites;
  const [, ...after] = ` ${plainWords(text)}`.split(pattern(words.split(" "), "", "(?= |$)"));
  return after.join(" ");
}

/** The pairs of opposites of which a text says one side alone, such as "open" without "closed": their numbers, below 0 for the second side. */
export function statesIn(text: string, language: string): number[] {
  const plain = withoutIdioms(text, language);
  return wordsOf(language).answers.opposites.flatMap(([one = "", other = ""], at) => {
    const said = [one, other].map((list) => hasWordOf(plain, list));
    return said[0] === said[1] ? [] : [said[0] ? at + 1 : -at - 1];
  });
}

/** The kinds of words in a text that make a figure a bound, such as "at least" and "or more". */
export function boundsIn(text: string, language: string): Bound[] {
  const { bounds } = wordsOf(language).answers;
  const plain = plainWords(text);
  // "No more than" is not "more".
  const rest = ` ${plain}`
    .split(pattern(bounds.atMost, "", "(?= |$)"))
    .join(" ;")
    .trim();
  const isSaid = (kind: Bound) => holdsPhrase(kind === "atMost" ? plain : rest, bounds[kind]);
  return (Object.keys(bounds) as Bound[]).filter(isSaid);
}

function hasWordOf(text: string, list: string): boolean {
  const words = fold(list).split(" ");
  const isListed = (word: string) => words.some((one) => word === one || (one.includes("'") && word.endsWith(one)));
  return (fold(text).match(/\p{L}+(?:'\p{L}+)*/gu) ?? []).some(isListed);
}
