/** A fault of a text as a sentence, and its place: the offset in UTF-16 units from 0, line and column from 1. */
export function faultAt(source: string, position: number, why: string) {
  const before = source.slice(0, position).split("\n");
  const place = { position, line: before.length, column: (before.at(-1) as string).length + 1 };
  return { place, message: `at position ${position} (line ${place.line}, column ${place.column}): ${why}` };
}
