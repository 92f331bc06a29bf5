/** A fault of a text as a sentence, and where it is: the offset in UTF-16 units from 0, line and column from 1. */
export function faultAt(source: string, position: number, why: string) {
  const before = source.slice(0, position).split("\n");
  const coordinates = { position, line: before.length, column: (before.at(-1) as string).length + 1 };
  const { line, column } = coordinates;
  return { coordinates, message: `at position ${position} (line ${line}, column ${column}): ${why}` };
}
