import type { Library } from "./library.ts";
import type { Likeness } from "./matching.ts";
import { isMeasure } from "./measures.ts";
import { plainWords } from "./phrases.ts";
import type { Question } from "./question.ts";
import { type Unit, unitsOf } from "./sections.ts";
import { holdsShape, type Shape } from "./shapes.ts";
import { termsIn } from "./words.ts";

/** A table with a label and one column offers no choice. */
const MIN_COLUMNS = 3;

/**
 * The column that a question names, as rows with their label and one cell: the best row if it is named too, else the whole table. Undefined
 * if it names no column or several, negates something ("not in the first row"), if the cell is empty, a dash or lacks a requested price or
 * measure, and if a number of the question is in no name or only other cells or the titles of its parts tell the rows apart.
 */
export function columnQuote(library: Library, question: Question, best: Unit): Unit[] | undefined {
  const { cells, columns, table } = best.block;
  if (!cells || !columns || cells.length < MIN_COLUMNS || question.isNegated) return undefined;
  const words = question.subjects.map((subject) => library.likenessOf(subject, question.language));
  const named = (names: readonly string[]) => namedOnce(names, { words, plain: question.plain }, best.section.language);
  // The first column contains the labels.
  const column = 1 + named(columns.slice(1));
  if (column === 0 || /^[-–—]*$/.test(cells[column]!) || lacksMeasure(cells[column]!, best, question)) return undefined;
  const names = termsIn(`${cells[0]} ; ${columns[column]}`, best.section.language);
  if (!numbersOf(question).every((number) => names.includes(number))) return undefined;
  const rows = unitsOf(best.section).filter(({ block }) => block.table === table && block.columns);
  if (rows.some((row, at) => !isTold(row, rows.slice(0, at)))) return undefined;
  const isCell = rows[named(rows.map(({ block }) => block.cells![0]!))]?.at === best.at;
  return (isCell ? [best] : rows).map((unit) => narrowed(unit, column));
}

/** A price is not in the column "Hours a week", though "a week" is in the question, nor a duration in the column of prices. */
function lacksMeasure(cell: string, { text, section }: Unit, { asks }: Question): boolean {
  const isIn = (part: string, shape: Shape) => holdsShape(part, shape, section.language);
  const shapes = asks.map(({ shape }) => shape).filter((shape) => shape === "amount" || isMeasure(shape));
  return shapes.some((shape) => isIn(text, shape) && !isIn(cell, shape));
}

/** A number in no name may be within the range of any row: 45 days, if rows begin at 30 and 60. */
function numbersOf({ subjects }: Question): string[] {
  return subjects.flatMap(({ forms: [term = ""] }) => (/^\p{N}/u.test(term) ? [term] : []));
}

/**
 * The index of the one name that contains each word of the question that any of them contains; -1 if none or several do. A name of stop words
 * alone, such as "So" for Sunday in German, must be in the question literally.
 */
function namedOnce(
  names: readonly string[],
  { words, plain }: { words: readonly Likeness[]; plain: string },
  language: string,
): number {
  const held = names.map((name) => {
    const terms = termsIn(name, language);
    const label = plainWords(name);
    if (terms.length === 0) return label !== "" && ` ${plain} `.includes(` ${label} `) ? [label] : [];
    return words.filter((likeness) => terms.some((term) => likeness.has(term)));
  });
  const all = new Set<unknown>(held.flat());
  const found = held.flatMap((one, at) => (one.length > 0 && one.length === all.size ? [at] : []));
  return found.length === 1 ? found[0]! : -1;
}

/** True if its label tells a row from others, and all have the same title. */
function isTold({ block, introductions: [title] }: Unit, others: readonly Unit[]): boolean {
  return others.every((other) => other.introductions[0] === title && other.block.cells![0] !== block.cells![0]);
}

/** A number is no label by itself: "12" of "12, Riesling". */
function narrowed(unit: Unit, column: number): Unit {
  const { cells = [], columns = [] } = unit.block;
  const shown = new Set([0, ...(/^\d+\.?$/.test(cells[0]!) ? [1] : []), column]);
  const pick = (list: readonly string[]) => [...shown].map((at) => list[at]!);
  return { ...unit, block: { ...unit.block, cells: pick(cells), columns: pick(columns) } };
}
