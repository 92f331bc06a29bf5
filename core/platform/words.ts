/** True for two words that differ only in case, `-` and `_`: `inPerson`, `in-person` and `IN_PERSON` are one word. */
export function sameWord(one: string, other: string): boolean {
  return letters(one) === letters(other);
}

function letters(word: string): string {
  return word.toLowerCase().replace(/[-_]/g, "");
}

/** The first characters of a text, trimmed. */
export function cutText(text: string, maxLength: number): string {
  return [...text.trim()].slice(0, maxLength).join("").trimEnd();
}

/** Fills the placeholders (`{name}`) of a sentence; one without a value stays. */
export function fillPlaceholders(sentence: string, values: Readonly<Record<string, string | number>>): string {
  return sentence.replace(/\{(\w+)\}/g, (place, name: string) => String(values[name] ?? place));
}
