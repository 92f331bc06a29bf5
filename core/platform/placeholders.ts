/** Fills the placeholders (`{name}`) of a sentence; one without a value stays. */
export function fillPlaceholders(sentence: string, values: Readonly<Record<string, string | number>>): string {
  return sentence.replace(/\{(\w+)\}/g, (place, name: string) => String(values[name] ?? place));
}
