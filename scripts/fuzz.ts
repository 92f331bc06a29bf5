/**
 * `npm run fuzz` sends made-up requests to every route of a whole service on loopback, 100,000 or FUZZ_CASES. It prints the responses by
 * status and the findings; exit status 1 if there are any. FUZZ_SEED repeats an earlier run.
 */
import process from "node:process";
import { fuzz } from "../fixtures/fuzz.ts";
import { startFuzzed } from "../fixtures/fuzzed-service.ts";

const cases = Number(process.env.FUZZ_CASES ?? 100_000);
const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 1_000_000);
const ends: (() => Promise<unknown> | unknown)[] = [];

try {
  process.stdout.write(`fuzz: ${cases} requests, FUZZ_SEED=${seed}\n`);
  const target = await startFuzzed({ teardown: (end) => void ends.push(end) }, "error");
  const started = Date.now();
  const { sent, statuses, refused, faults } = await fuzz(target, { cases, seed });
  for (const { route, what, times, request, answer } of faults)
    process.stdout.write(`${route}: ${what}, ${times} times\n  ${presentFailure(request)}\n  ${answer}\n`);
  process.stdout.write(
    `${sent} requests in ${Math.round((Date.now() - started) / 1000)} s: ${JSON.stringify(statuses)}\n`,
  );
  if (refused.length > 0) process.stdout.write(`never succeeded: ${refused.join(", ")}\n`);
  process.stdout.write(`${faults.length} faults\n`);
  process.exitCode = faults.length === 0 ? 0 : 1;
} finally {
  for (const end of ends.reverse()) await end();
}

function presentFailure({
  method,
  path,
  headers,
  body,
}: {
  method: string;
  path: string;
  headers: object;
  body: unknown;
}): string {
  const { authorization: _, ...rest } = headers as Record<string, string>;
  return `${method} ${path.slice(0, 500)} ${JSON.stringify(rest)}\n  ${String(body).slice(0, 1000)}`;
}
