import t from "tap";
import { Batcher } from "../core/store/batcher.ts";

/** Groups whose work is ended by hand, in the order in which it began. */
function held(most: number): { groups: Batcher<number>; begun: string[]; end: (error?: Error) => Promise<void> } {
  const begun: string[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const groups = new Batcher<number>(async (name, things) => {
    begun.push(`${name} ${things.join()}`);
    await new Promise<void>((resolve, reject) => ends.push((error) => (error ? reject(error) : resolve())));
  }, most);
  const end = async (error?: Error): Promise<void> => {
    ends.shift()?.(error);
    await turn();
  };
  return { groups, begun, end };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

t.test("work begins at once; requests meanwhile are done together, in batches of limited size", async (t) => {
  const { groups, begun, end } = held(3);
  const first = groups.add("one", 1);
  await turn();
  const others = [2, 3, 4, 5].map((thing) => groups.add("one", thing));
  await turn();
  t.same(begun, ["one 1"]);
  await end();
  await first;
  t.same(begun, ["one 1", "one 2,3,4"]);
  await end();
  await end();
  await Promise.all(others);
  t.same(begun, ["one 1", "one 2,3,4", "one 5"]);
});

t.test("names don't wait for one another", async (t) => {
  const { groups, begun, end } = held(3);
  const both = [groups.add("one", 1), groups.add("other", 2)];
  await turn();
  t.same(begun, ["one 1", "other 2"]);
  await end();
  await end();
  await Promise.all(both);
});

t.test("a batch fails as a whole, and the next one runs", async (t) => {
  const { groups, begun, end } = held(3);
  const failing = [groups.add("one", 1), groups.add("one", 2)];
  await turn();
  const next = groups.add("one", 3);
  const refused = failing.map((one) => t.rejects(one, { message: "away" }));
  await end(new Error("away"));
  await Promise.all(refused);
  await end();
  await next;
  t.same(begun, ["one 1,2", "one 3"]);
});
