/** Right-to-left scripts in current use (Unicode Standard Annex 24). */
const rightToLeft = new Set(["Adlm", "Arab", "Hebr", "Mand", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa", "Yezi"]);

/** A language tag in canonical form (BCP 47), `de-DE` for `DE-de`; undefined for an invalid one. */
export function canonicalLanguage(tag: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(tag)[0];
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** True for a valid language tag (BCP 47). No language has a code of more than three letters: `english` is a name. */
export function isLanguageTag(text: string): boolean {
  return /^[a-z]{2,3}(?![a-z])/.test(canonicalLanguage(text) ?? "");
}

/** The writing direction of a language for HTML's `dir`: by the script of the tag, else by the language's usual script. */
export function directionOf(tag: string): "ltr" | "rtl" {
  return rightToLeft.has(new Intl.Locale(tag).maximize().script ?? "") ? "rtl" : "ltr";
}
