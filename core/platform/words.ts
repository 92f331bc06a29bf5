/** True for two words that differ in case, `-` and `_` alone: `inPerson`, `in-person` and `IN_PERSON` are one. */
export function sameWord(one: string, other: string): boolean {
  return letters(one) === letters(other);
}

function letters(word: string): string {
  return word.toLowerCase().replace(/[-_]/g, "");
}

/** The first characters of a text, without white space at its ends. */
export function cutText(text: string, maxLength: number): string {
  return [...text.trim()].slice(0, maxLength).join("").trimEnd();
}
