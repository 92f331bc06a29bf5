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

/** A sentence with values in the places of `{name}`; a name without a value stays as it is. */
export function filled(sentence: string, values: Readonly<Record<string, string>>): string {
  return sentence.replace(/\{(\w+)\}/g, (place, name: string) => values[name] ?? place);
}
