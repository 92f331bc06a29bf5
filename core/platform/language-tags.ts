/** Scripts that are written from right to left (Unicode Standard Annex 24, of those that texts of today use). */
const rightToLeft = new Set(["Adlm", "Arab", "Hebr", "Mand", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa", "Yezi"]);

/** A language tag in its canonical form (BCP 47), `de-DE` for `DE-de`; undefined for what is none. */
export function canonicalLanguage(tag: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(tag)[0];
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** True for a language tag (BCP 47). */
export function isLanguageTag(text: string): boolean {
  return canonicalLanguage(text) !== undefined;
}

/** How a language is written, as HTML's `dir` says it: by the script of the tag or, without one, that of most of its texts. */
export function directionOf(tag: string): "ltr" | "rtl" {
  return rightToLeft.has(new Intl.Locale(tag).maximize().script ?? "") ? "rtl" : "ltr";
}
