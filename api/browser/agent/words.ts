import type { Words as AllWords } from "../../../schemas/languages.ts";

/** What the widget itself says (schemas/languages). */
export type Words = AllWords["widget"];

/** Put in by the build (scripts/browser.mjs). */
declare const englishWords: Words;

/** The words in use: English until the page brings others. */
export const words: Words = { ...englishWords };

/** Speaks the page's language from now on. */
export function useWords(given: Partial<Words>): void {
  Object.assign(words, given);
}
