import { readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { replyTo } from "../../core/engines/answers/answers.ts";
import {
  answerIn,
  type FilterScore,
  filterScoreOf,
  judgedSets,
  laterSets,
  type OpenSet,
  openSet,
  type Score,
  scoreOf,
} from "../../fixtures/answers/sets.ts";
import { type BenchRow, quantile } from "./figures.ts";

const own = fileURLToPath(new URL("../../fixtures/answers", import.meta.url));
/** Sets whose visitors hardly use a word of the site. */
const exams = join(own, "exams");
const NO_SCORE: Score = { right: 0, answerable: 0, false: 0, unanswerable: 0, hinted: 0 };
/** For the sites and sentences that the filter was made with; those that were written later have none. */
const BARS = { passed: "<= 25", dropped: "<= 10" };
const NO_FILTER_SCORE: FilterScore = { passed: 0, unsupported: 0, dropped: 0, supported: 0 };

/**
 * How well questions are answered without a model, on each set and on all together: our own sets, the exams, and the JSON files and
 * folders in ANSWER_SETS (separated by `:`). Figures are percentages of the answerable and of the unanswerable questions, and of the
 * supported and the unsupported sentences of a model.
 */
export async function bench(): Promise<BenchRow[]> {
  const paths = [own, exams, ...(process.env.ANSWER_SETS?.split(":") ?? [])].flatMap(filesOf);
  const sets = paths.map(openSet);
  const named = sets.map((set) => ({ name: set.handle, score: scoreOf(set) }));
  const judged = { name: "judged", score: sumOf(judgedSets().map(scoreOf), NO_SCORE) };
  const scores = [...named, judged].map(({ score }) => score);
  const all = { name: "all sets", score: sumOf(scores, NO_SCORE) };
  const filtered = (some: readonly OpenSet[]) =>
    sumOf(
      some.flatMap((set) => filterScoreOf(set) ?? []),
      NO_FILTER_SCORE,
    );
  const later = filterRows("sentences that were written later", filtered(laterSets([...sets, ...judgedSets()])));
  const filter = [...filterRows("sentences of a model", filtered(sets), BARS), ...later];
  return [...[...named, judged, all].flatMap(rowsOf), ...filter, timed([...sets, ...judgedSets()])];
}

function filesOf(path: string): string[] {
  if (path.endsWith(".json")) return [path];
  const names = readdirSync(path).filter((name) => name.endsWith(".json"));
  return names.sort().map((name) => join(path, name));
}

function sumOf<T extends Score | FilterScore>(scores: readonly T[], none: T): T {
  return scores.reduce(
    (sum, one) =>
      Object.fromEntries(Object.entries(sum).map(([key, value]) => [key, value + one[key as keyof T]])) as T,
    none,
  );
}

function filterRows(of: string, score: FilterScore, bars: Partial<typeof BARS> = {}): BenchRow[] {
  const row = (name: string, key: keyof typeof BARS, all: number): BenchRow => ({
    name: `answers, ${of}, ${name}`,
    value: (100 * score[key]) / (all || 1),
    unit: "%",
    ...(bars[key] ? { bar: bars[key] } : {}),
    baseline: `${score[key]} of ${all}`,
  });
  return [
    row("unsupported and shown", "passed", score.unsupported),
    row("supported and dropped", "dropped", score.supported),
  ];
}

function rowsOf({ name, score }: { name: string; score: Score }): BenchRow[] {
  const { right, answerable, unanswerable, hinted } = score;
  const counted = `${right} of ${answerable}, ${hinted} more shown as closest`;
  return [
    { name: `answers, ${name}, right`, value: (100 * right) / answerable, unit: "%", bar: ">= 65", baseline: counted },
    {
      name: `answers, ${name}, false`,
      value: (100 * score.false) / (unanswerable || 1),
      unit: "%",
      bar: "<= 10",
      baseline: `${score.false} of ${unanswerable}`,
    },
  ];
}

/** Time per question once its library is open. */
function timed(sets: readonly OpenSet[]): BenchRow {
  const times = sets.flatMap((set) =>
    set.questions.map((asked) => {
      const { question } = answerIn(set, asked);
      const from = performance.now();
      replyTo(set.library, question, { here: asked.page });
      return performance.now() - from;
    }),
  );
  const p50 = quantile(times, 0.5);
  return { name: "answers, one answer, p50", value: p50, unit: "ms", bar: "<= 10" };
}
