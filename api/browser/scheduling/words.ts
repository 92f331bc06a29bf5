import type { Words as AllWords } from "../../../schemas/languages.ts";

/** What the page itself says in one language (schemas/languages); `{…}` are places. */
export type Words = AllWords["bookingPage"];

/** The way in which the visitor writes dates and money: that of their region where they speak the page's language, else the language's own. */
export function localeOf(language: string, preferred: readonly string[]): string {
  return preferred.find((locale) => primary(locale) === primary(language)) ?? language;
}

/** `de` of `de-CH`. */
function primary(locale: string): string {
  return locale.split("-")[0]?.toLowerCase() ?? "";
}
