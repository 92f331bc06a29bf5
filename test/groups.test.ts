import t from "tap";
import { Batcher } from "../core/store/batcher.ts";

/** Groups whose work is ended by hand, in the order in which it began. */
function held(): { groups: Batcher<number, number>; begun: string[]; end: (error?: Error) => Promise<void> } {
  const begun: string[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const groups = new Batcher<number, number>(async (name, items) => {
    begun.push(`${name} ${items.join()}`);
    await new Promise<void>((resolve, reject) => ends.push((error) => (error ? reject(error) : resolve())));
    return items.map((item) => 10 * item);
  });
  const end = async (error?: Error): Promise<void> => {
    ends.shift()?.(error);
    await turn();
  };
  return { groups, begun, end };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

t.test("requests of one tick are done together, later ones wait for none, and each gets its own result", async (t) => {
  const { groups, begun, end } = held();
  const together = [1, 2, 3].map((item) => groups.add("one", item));
  await turn();
  const later = groups.add("one", 4);
  await turn();
  t.same(begun, ["one 1,2,3", "one 4"]);
  await end();
  t.same(await Promise.all(together), [10, 20, 30]);
  await end();
  t.equal(await later, 40);
});

t.test("names don't wait for one another", async (t) => {
  const { groups, begun, end } = held();
  const both = [groups.add("one", 1), groups.add("other", 2)];
  await turn();
  t.same(begun, ["one 1", "other 2"]);
  await end();
  await end();
  await Promise.all(both);
});

t.test("a batch fails as a whole, and the next one runs", async (t) => {
  const { groups, begun, end } = held();
  const failing = [groups.add("one", 1), groups.add("one", 2)];
  await turn();
  const refused = failing.map((one) => t.rejects(one, { message: "away" }));
  await end(new Error("away"));
  await Promise.all(refused);
  const next = groups.add("one", 3);
  await turn();
  await end();
  t.equal(await next, 30);
  t.same(begun, ["one 1,2", "one 3"]);
});
