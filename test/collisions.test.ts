import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import t from "tap";
import { retryOnConflict } from "../core/store/retry.ts";

/** The results of six concurrent changes of one record, and the number of attempts. */
async function crowd(redis: Redis, inTurn: (tries: number) => Promise<string>) {
  let tries = 0;
  const attempt = async (alone: boolean) => (alone ? undefined : inTurn(++tries));
  const all = await Promise.allSettled(Array.from({ length: 6 }, () => retryOnConflict(redis, "page", attempt)));
  return { tries, ended: all.map((one) => (one.status === "fulfilled" ? one.value : one.reason.message)) };
}

t.test("if Redis is away, all waiting writers fail at once and not one after another", async (t) => {
  const redis = {} as Redis;
  const { tries, ended } = await crowd(redis, async () => {
    await sleep(20);
    throw new Error("Command timed out");
  });
  t.equal(tries, 1);
  t.same(ended, Array(6).fill("Command timed out"));
  t.equal(await retryOnConflict(redis, "page", async () => "written"), "written", "who comes later is tried again");
});

t.test("a refused change does not block the next one", async (t) => {
  const { tries, ended } = await crowd({} as Redis, async (tries) => {
    if (tries === 1) throw new Error("refused");
    return `written ${tries}`;
  });
  t.equal(tries, 6);
  t.same(ended, ["refused", ...[2, 3, 4, 5, 6].map((tries) => `written ${tries}`)]);
});
