/** A position in a text: offset in UTF-16 units from 0, line and column from 1. */
interface SourcePlace {
  position: number;
  line: number;
  column: number;
}

/** The line and column of an offset. */
export function placeAt(source: string, position: number): SourcePlace {
  const before = source.slice(0, position).split("\n");
  return { position, line: before.length, column: (before.at(-1) as string).length + 1 };
}

/** A fault at a position of a text, as a sentence. */
export function faultAt({ position, line, column }: SourcePlace, why: string): string {
  return `at position ${position} (line ${line}, column ${column}): ${why}`;
}
