import { fold } from "./words.ts";

/** A pattern of words as the language files write it: `*` stands for up to four words, `~` for any ending, `#` for a number, `?` for a word or none. */
export type Phrase = string;

const compiled = new Map<string, RegExp>();

/** A text as phrases are held against it: folded words with one space between them. */
export function plainWords(text: string): string {
  return fold(text)
    .replace(/(?<=\p{L})'(?=(?:[stdm]|re|ve|ll)(?!\p{L}))/gu, "")
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
}

/** True where one of the phrases stands in the text, between whole words; the text comes from `plainWords`. */
export function holdsPhrase(plain: string, phrases: readonly Phrase[]): boolean {
  return phrases.length > 0 && pattern(phrases, "(?:^| )", "(?= |$)").test(plain);
}

/** True where the text is one of the phrases. */
export function isPhrase(plain: string, phrases: readonly Phrase[]): boolean {
  return phrases.length > 0 && pattern(phrases, "^", "$").test(plain);
}

/** The words of the longest phrase that stands in the text, without what stands for any word; undefined where none does. */
export function wordsOfPhrase(plain: string, phrases: readonly Phrase[]): string[] | undefined {
  const held = phrases
    .filter((phrase) => holdsPhrase(plain, [phrase]))
    .sort((one, other) => other.length - one.length)[0];
  if (held === undefined) return undefined;
  const fixed = held
    .split(" ")
    .filter((word) => !/^[*?#]$/.test(word))
    .map((word) => ({ open: word.endsWith("~"), word: plainWords(word) }));
  return plain.split(" ").filter((one) => fixed.some(({ open, word }) => (open ? one.startsWith(word) : one === word)));
}

function pattern(phrases: readonly Phrase[], before: string, after: string): RegExp {
  const key = before + phrases.join("|");
  const known = compiled.get(key);
  if (known) return known;
  const made = new RegExp(`${before}(?:${phrases.map(source).join("|")})${after}`, "u");
  compiled.set(key, made);
  return made;
}

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
