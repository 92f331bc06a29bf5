import { wordsOf } from "../../../schemas/languages.ts";
import { fold } from "../../platform/characters.ts";
import { lazyByKey } from "../../platform/lazy.ts";

/** A pattern of words in a language file: `*` is up to four words, `~` any ending, `#` a number, `?` an optional word. */
export type Phrase = string;

/** A text in the form that phrases are compared with: folded words with one space between them. */
export function plainWords(text: string): string {
  return fold(text)
    .replace(/(?<=\p{L})'(?=(?:[stdm]|re|ve|ll)(?!\p{L}))/gu, "")
    .replace(/[^\p{L}\p{M}\p{N}]+/gu, " ")
    .trim();
}

/** True if the text contains one of the phrases as whole words; `plain` comes from `plainWords`. */
export function holdsPhrase(plain: string, phrases: readonly Phrase[]): boolean {
  return phrases.length > 0 && pattern(phrases, "(?:^| )", "(?= |$)").test(plain);
}

/** True if the text is one of the phrases. */
export function isPhrase(plain: string, phrases: readonly Phrase[]): boolean {
  return phrases.length > 0 && pattern(phrases, "^", "$").test(plain);
}

/** The words of the longest phrase in the text, without those of a wildcard; undefined without a phrase. */
export function wordsOfPhrase(plain: string, phrases: readonly Phrase[]): string[] | undefined {
  const held = phrases
    .filter((phrase) => holdsPhrase(plain, [phrase]))
    .sort((one, other) => other.length - one.length)[0];
  if (held === undefined) return undefined;
  const fixed = held.split(" ").filter((word) => !/^[*?#]$/.test(word));
  return plain.split(" ").filter((word) => isPhrase(word, fixed));
}

function pattern(phrases: readonly Phrase[], before: string, after: string): RegExp {
  return compiled([before, after, ...phrases].join("\n"));
}

const compiled = lazyByKey((key) => {
  const [before = "", after = "", ...phrases] = key.split("\n");
  return new RegExp(`${before}(?:${phrases.map(source).join("|")})${after}`, "u");
});

function source(phrase: Phrase): string {
  const words = phrase.split(" ").map((word) => {
    if (word === "*") return "(?:\\S+ ){0,4}";
    if (word === "?") return "(?:\\S+ )?";
    if (word === "#") return "\\d+ ";
    return `${plainWords(word.replace("~", ""))}${word.endsWith("~") ? "\\p{L}*" : ""} `;
  });
  // A star at the end needs no space after it.
  return words
    .join("")
    .replace(/ $/, "")
    .replace(/ \(\?:\\S\+ \)\{0,4\}$/, "(?: \\S+){0,4}")
    .replace(/ \(\?:\\S\+ \)\?$/, "(?: \\S+)?");
}

/** True if a text of a language negates something. */
export function isNegated(text: string, language: string): boolean {
  return hasWordOf(text, wordsOf(language).answers.negations) || /n't(?!\p{L})/u.test(fold(text));
}

/** True if a text of a language speaks of all cases, as "always" does. */
export function isUniversal(text: string, language: string): boolean {
  return hasWordOf(text, wordsOf(language).answers.universals);
}

function hasWordOf(text: string, list: string): boolean {
  const words = fold(list).split(" ");
  return (fold(text).match(/[\p{L}']+/gu) ?? []).some((word) => words.includes(word));
}
