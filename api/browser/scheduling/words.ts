import type { Words as AllWords } from "../../../schemas/languages.ts";

/** The page's own texts in one language (schemas/languages); `{…}` are placeholders. */
export type PageWords = AllWords["bookingPage"];

/** The locale of dates and money: the visitor's region if its language is the page's, else the language alone. */
export function localeOf(language: string, preferred: readonly string[]): string {
  return preferred.find((locale) => primary(locale) === primary(language)) ?? language;
}

/** `de` of `de-CH`. */
function primary(locale: string): string {
  return locale.split("-")[0]?.toLowerCase() ?? "";
}
