import { readHtml } from "../engines/answers/answers.ts";

/** Words that people read in a minute. */
const WORDS_A_MINUTE = 220;
/** Characters of a text whose words are counted; the rest is taken to be alike. */
const SAMPLE_LENGTH = 20_000;
/** Characters that are segmented at once: Intl.Segmenter takes time that grows with their square. */
const PART_LENGTH = 500;

/** Minutes that it takes to read the text of an HTML fragment in a language (BCP 47), rounded; 0 for less than half a minute. */
export function readingMinutes(html: string, language: string): number {
  const text = readHtml(html)
    .blocks.map(({ text }) => text)
    .join("\n");
  const sample = text.slice(0, SAMPLE_LENGTH);
  const segmenter = new Intl.Segmenter(language, { granularity: "word" });
  let words = 0;
  for (let at = 0; at < sample.length; at += PART_LENGTH)
    for (const { isWordLike } of segmenter.segment(sample.slice(at, at + PART_LENGTH))) if (isWordLike) words++;
  return Math.round((words * text.length) / Math.max(1, sample.length) / WORDS_A_MINUTE);
}
