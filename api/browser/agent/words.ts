import type { Words as AllWords } from "../../../schemas/languages.ts";

/** The widget's own texts (schemas/languages). */
export type Words = AllWords["widget"];

/** Inserted by the build (scripts/browser.mjs). */
declare const englishWords: Words;

/** The current texts: English until the page brings others. */
export const words: Words = { ...englishWords };

/** Switches to the page's language. */
export function useWords(given: Partial<Words>): void {
  Object.assign(words, given);
}
