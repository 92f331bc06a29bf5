import de from "./languages/de.json" with { type: "json" };
import en from "./languages/en.json" with { type: "json" };
import es from "./languages/es.json" with { type: "json" };
import fr from "./languages/fr.json" with { type: "json" };
import it from "./languages/it.json" with { type: "json" };
import nl from "./languages/nl.json" with { type: "json" };
import pt from "./languages/pt.json" with { type: "json" };

/** The service's texts in one language. Every file has the keys of the English one (test/languages.test.ts). */
export type Words = typeof en;

/** Languages that have a file, by their code (ISO 639-1). */
export const languages: Readonly<Record<string, Words>> = { en, de, fr, es, it, nl, pt };

/** The first supported one of some languages (BCP 47); else English. */
export function spokenLanguage(...wanted: (string | null | undefined)[]): string {
  return wanted.find((tag) => tag && hasWords(tag)) ?? "en";
}

/** True for a supported language (BCP 47). */
export function hasWords(language: string): boolean {
  return Object.hasOwn(languages, codeOf(language));
}

/** The texts of a language (BCP 47, in any case); English if it is not supported. */
export function wordsOf(language: string): Words {
  return languages[wordsLanguage(language)] ?? en;
}

/** The code of the language that `wordsOf` uses. */
export function wordsLanguage(language: string): string {
  return hasWords(language) ? codeOf(language) : "en";
}

function codeOf(language: string): string {
  return language.toLowerCase().split("-")[0] ?? "";
}
