import { readHtml } from "../engines/answers/answers.ts";

/** Words that people read in a minute, and characters of a page that are counted. */
const WORDS_A_MINUTE = 220;
const MAX_CHARACTERS = 200_000;

/** Minutes that it takes to read the text of an HTML fragment in a language (BCP 47), rounded; 0 for less than half a minute. */
export function readingMinutes(html: string, language: string): number {
  const text = readHtml(html)
    .blocks.map(({ text }) => text)
    .join("\n")
    .slice(0, MAX_CHARACTERS);
  let words = 0;
  for (const { isWordLike } of new Intl.Segmenter(language, { granularity: "word" }).segment(text))
    if (isWordLike) words++;
  return Math.round(words / WORDS_A_MINUTE);
}
