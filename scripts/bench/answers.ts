import { readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { replyTo } from "../../core/engines/answers/answers.ts";
import { answerIn, judgedSets, type OpenSet, openSet, type Score, scoreOf } from "../../fixtures/answers/sets.ts";
import type { Row } from "./relay.ts";

const own = fileURLToPath(new URL("../../fixtures/answers", import.meta.url));
const NO_SCORE: Score = { right: 0, answerable: 0, false: 0, unanswerable: 0, hinted: 0 };

/**
 * How well questions are answered without a model, on each set and on all together: our own sets, and the JSON files and folders in
 * ANSWER_SETS (separated by `:`). Figures are percentages of the answerable and of the unanswerable questions.
 */
export async function bench(): Promise<Row[]> {
  const paths = [own, ...(process.env.ANSWER_SETS?.split(":") ?? [])].flatMap(filesOf);
  const sets = paths.map(openSet);
  const named = sets.map((set) => ({ name: set.handle, score: scoreOf(set) }));
  const judged = { name: "judged", score: sumOf(judgedSets().map(scoreOf)) };
  const all = { name: "all sets", score: sumOf([...named, judged].map(({ score }) => score)) };
  return [...[...named, judged, all].flatMap(rowsOf), timed([...sets, ...judgedSets()])];
}

function filesOf(path: string): string[] {
  if (path.endsWith(".json")) return [path];
  const names = readdirSync(path).filter((name) => name.endsWith(".json"));
  return names.sort().map((name) => join(path, name));
}

function sumOf(scores: readonly Score[]): Score {
  const keys = Object.keys(NO_SCORE) as (keyof Score)[];
  return scores.reduce(
    (sum, one) => Object.fromEntries(keys.map((key) => [key, sum[key] + one[key]])) as unknown as Score,
    NO_SCORE,
  );
}

function rowsOf({ name, score }: { name: string; score: Score }): Row[] {
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
function timed(sets: readonly OpenSet[]): Row {
  const times = sets.flatMap((set) =>
    set.questions.map((asked) => {
      const { question } = answerIn(set, asked);
      const from = performance.now();
      replyTo(set.library, question, { here: asked.page });
      return performance.now() - from;
    }),
  );
  const p50 = times.sort((one, other) => one - other)[times.length >> 1]!;
  return { name: "answers, one answer, p50", value: p50, unit: "ms", bar: "<= 10" };
}
