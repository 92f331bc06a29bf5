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

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Escapes text for content and quoted attribute values of HTML and XML. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => entities[sign] as string);
}

/** Fills the placeholders (`{name}`) of a sentence; one without a value stays. */
export function fillPlaceholders(sentence: string, values: Readonly<Record<string, string | number>>): string {
  return sentence.replace(/\{(\w+)\}/g, (place, name: string) => String(values[name] ?? place));
}
