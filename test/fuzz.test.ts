import t from "tap";
import { fuzz } from "../fixtures/fuzz.ts";
import { startFuzzed } from "../fixtures/fuzzed-service.ts";

/** `npm run fuzz` sends many more, with other seeds. */
const cases = 4000;

t.test("every request gets an answer, with a code of the table if it is refused, and without internals", async (t) => {
  const target = await startFuzzed(t);
  const { sent, statuses, refused, faults } = await fuzz(target, { cases, seed: 1 });
  t.ok(sent >= cases);
  t.same(faults, []);
  t.ok((statuses["200"] ?? 0) > cases / 20, `${statuses["200"]} requests were right`);
  t.ok(refused.length < 60, `never succeeded: ${refused.join(", ")}`);
});
