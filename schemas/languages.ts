import de from "./languages/de.json" with { type: "json" };
import en from "./languages/en.json" with { type: "json" };
import es from "./languages/es.json" with { type: "json" };
import fr from "./languages/fr.json" with { type: "json" };
import it from "./languages/it.json" with { type: "json" };
import nl from "./languages/nl.json" with { type: "json" };
import pt from "./languages/pt.json" with { type: "json" };

/** The service's own words in one language; English has every key, and so has every other file (test/languages.test.ts). */
export type Words = typeof en;

/** Languages that have a file, by their code (ISO 639-1). */
export const languages: Readonly<Record<string, Words>> = { en, de, fr, es, it, nl, pt };

/** The first of some languages (BCP 47) that has a file; English where none has. */
export function spokenLanguage(...wanted: (string | null | undefined)[]): string {
  return wanted.find((tag) => tag && hasWords(tag)) ?? "en";
}

/** True for a language (BCP 47) that has a file. */
export function hasWords(language: string): boolean {
  return Object.hasOwn(languages, codeOf(language));
}

/** The words of a language (BCP 47, in any case); English where it has no file. */
export function wordsOf(language: string): Words {
  return languages[wordsLanguage(language)] ?? en;
}

/** The code of the language in which `wordsOf` answers. */
export function wordsLanguage(language: string): string {
  return hasWords(language) ? codeOf(language) : "en";
}

function codeOf(language: string): string {
  return language.toLowerCase().split("-")[0] ?? "";
}
