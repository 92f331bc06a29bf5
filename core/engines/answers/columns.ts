import type { Library, Unit } from "./library.ts";
import type { Likeness } from "./matching.ts";
import type { Question } from "./question.ts";
import { termsIn } from "./words.ts";

/** How near a word of the question must be to a word of a name. */
const NAMES = 0.65;
/** With a label and one column there is nothing to pick. */
const MIN_COLUMNS = 3;

/** The rows of a table that a question asks for by the name of a column, each as its label and that cell. */
export interface ColumnQuote {
  units: Unit[];
  /** The question names the row too. */
  isCell: boolean;
}

/**
 * Reads a question that names one column of a table: the cell of the best row where the row is named too, else that column of all
 * `rows`. Undefined where it names none or several alike, where the cell is empty, where names and cells differ in number, and
 * where the question holds a number that the names don't.
 */
export function columnQuote(
  library: Library,
  question: Question,
  { best, rows }: { best: Unit; rows: readonly Unit[] },
): ColumnQuote | undefined {
  const { cells, columns, table } = best.block;
  if (!cells || cells.length < MIN_COLUMNS || columns?.length !== cells.length) return undefined;
  const asked = question.subjects.map((subject) => library.likenessOf(subject, question.language));
  // The first column holds the labels.
  const column = 1 + (namedOnce(columns.slice(1), asked, best.section.language) ?? -1);
  if (column === 0 || cells[column] === "") return undefined;
  const own = rows.filter(({ block }) => block.table === table && block.columns?.length === block.cells?.length);
  const row = namedOnce(
    own.map(({ block }) => block.cells![0]!),
    asked,
    best.section.language,
  );
  const names = termsIn(`${cells[0]} ; ${columns[column]}`, best.section.language);
  if (!numbersOf(question).every((number) => names.includes(number))) return undefined;
  const isCell = row !== undefined && own[row]?.at === best.at;
  return { units: (isCell ? [best] : own).map((unit) => narrowed(unit, column)), isCell };
}

/** A number that no name has may fall into the range of any row: 45 days, where rows begin at 30 and 60. */
function numbersOf({ subjects }: Question): string[] {
  return subjects.flatMap(({ forms: [term = ""] }) => (/^\p{N}/u.test(term) ? [term] : []));
}

/** The place of the name that most words of the question speak of; undefined where none or several do. */
function namedOnce(names: readonly string[], asked: readonly Likeness[], language: string): number | undefined {
  const scores = names.map((name) => {
    const terms = termsIn(name, language);
    return asked.filter((likeness) => terms.some((term) => (likeness.get(term) ?? 0) >= NAMES)).length;
  });
  const most = Math.max(...scores);
  const at = scores.indexOf(most);
  return most > 0 && scores.lastIndexOf(most) === at ? at : undefined;
}

function narrowed(unit: Unit, column: number): Unit {
  const { cells = [], columns = [] } = unit.block;
  const pick = (list: readonly string[]) => [list[0]!, list[column]!];
  return { ...unit, block: { ...unit.block, cells: pick(cells), columns: pick(columns) } };
}
