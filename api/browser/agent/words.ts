import type { Words as AllWords } from "../../../schemas/languages.ts";

/** The widget's own texts (schemas/languages). */
export type WidgetWords = AllWords["widget"];

/** Inserted by the build (scripts/browser.mjs). */
declare const englishWords: WidgetWords;

/** The current texts: English until the page brings others. */
export const words: WidgetWords = { ...englishWords };
