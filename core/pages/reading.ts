import type { StoredPage } from "../../schemas/pages.ts";
import { readHtml } from "../engines/answers/answers.ts";
import { languageOf } from "../platform/languages.ts";

/** Words that people read in a minute. */
const WORDS_A_MINUTE = 220;
/** Characters that suffice to detect the language of a fragment, or to count its words; the rest is taken to be alike. */
const SAMPLE_LENGTH = 20_000;
/** Characters that are segmented at once: Intl.Segmenter takes time that grows with their square. */
const PART_LENGTH = 500;

/** The language of a page (BCP 47): as declared, else the handle's, else detected from its public text. */
export function pageLanguage(page: StoredPage, ofHandle: string | null): string {
  const { title, description, accessMode, content, teaser } = page;
  const named = page.language ?? ofHandle;
  if (named) return named;
  const { blocks } = readHtml((accessMode === "PAID" ? teaser : content).slice(0, SAMPLE_LENGTH));
  return languageOf([title, description, ...blocks.map(({ text }) => text)].join("\n"));
}

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
