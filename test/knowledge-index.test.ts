import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import t, { type Test } from "tap";
import { Collection } from "../core/engines/search/collection.ts";
import { MemoryIndex } from "../core/engines/search/memory-index.ts";
import { openIndex } from "../core/engines/search/search.ts";
import { readEnv } from "../core/platform/env.ts";
import type { SearchIndex, SearchRequest, SearchResult } from "../core/platform/runtime.ts";
import { keys } from "../core/store/keys.ts";
import { connect, mastersOf } from "../core/store/redis.ts";
import { dropDocument, writeDocument } from "../fixtures/chunks.ts";
import { onCluster, startRedis } from "../fixtures/redis.ts";
import { eventually } from "../fixtures/service.ts";

interface Stage {
  redis: Redis;
  /** An index as one more process has it. */
  open(): Promise<SearchIndex>;
  /** Rebuilds the server's index from the chunks, as a restart or an operator does. */
  rebuild(): Promise<void>;
}

const policies = {
  documentId: "doc_1",
  title: "Refund policy",
  tags: ["public", "policy"],
  chunks: [
    { heading: "Time", text: "Refunds are paid within 14 days of the return.", vector: [1, 0, 0, 0] },
    { heading: "Costs", text: "Shipping costs are not refunded unless the item was faulty.", vector: [0.8, 0.6, 0, 0] },
  ],
};
const hours = {
  documentId: "doc_2",
  title: "Opening hours",
  tags: ["public"],
  chunks: [{ text: "The shop opens at nine and closes at six, Monday to Friday.", vector: [0, 1, 0, 0] }],
};
const runbook = {
  documentId: "doc_3",
  title: "Runbook",
  tags: ["internal"],
  chunks: [{ text: "Rotate the key of the refund machine every month.", vector: [0, 0, 1, 0] }],
};

const ask = (handle: string, text: string, more: Partial<SearchRequest> = {}): SearchRequest => ({
  handle,
  text,
  tags: [],
  limit: 10,
  ...more,
});
const ids = ({ hits }: SearchResult): string[] => hits.map(({ passage }) => passage.id);
const embedding = (...numbers: number[]) => ({ model: "test", values: Float32Array.from(numbers) });
const north = embedding(1, 0, 0, 0);
const west = embedding(0, 1, 0, 0);

t.test("in process", async (t) => {
  const server = await startRedis({ own: true });
  const redis = connect(readEnv(server.env));
  t.teardown(async () => {
    redis.disconnect();
    await server.stop();
  });
  await promises(t, { redis, open: async () => new MemoryIndex(redis), rebuild: async () => undefined });
  await inProcess(t, redis);
});

const searchServer = process.env.TEST_REDISEARCH_URL;
t.test("on RediSearch", { skip: searchServer ? false : "TEST_REDISEARCH_URL is not set" }, async (t) => {
  const redis = new Redis(searchServer as string);
  await redis.flushall();
  t.teardown(() => redis.disconnect());
  const open = () => openIndex(redis, { isCluster: false });
  const index = await open();
  t.equal(index.kind, "redisearch");
  await index.prepareVectors(4);
  await eventually(async () => (await index.status()).serving === "redisearch");
  const rebuild = async () => {
    const names = (await redis.call("FT._LIST")) as string[];
    for (const name of names) await redis.call("FT.DROPINDEX", name);
  };
  await promises(t, { redis, open, rebuild });
  await onRediSearch(t, redis);
});

/** The promises of both indexes. */
async function promises(t: Test, { redis, open, rebuild }: Stage): Promise<void> {
  const write = async (handle: string, ...documents: (typeof policies | typeof hours | typeof runbook)[]) => {
    for (const document of documents) await writeDocument(redis, { handle, ...document });
  };

  await t.test("passages are found by their words in any form, the best first", async (t) => {
    await write("words", policies, hours, runbook);
    const index = await open();
    const found = await index.search(ask("words", "How long does a refund take, how many days?"));
    t.same(found.hits[0]?.passage, {
      id: "doc_1:0",
      documentId: "doc_1",
      title: "Refund policy",
      topic: "",
      source: "",
      heading: "Time",
      text: "Refunds are paid within 14 days of the return.",
      language: "en",
      tags: ["public", "policy"],
    });
    t.same([found.mode, found.degraded], ["lexical", false]);
    t.same(ids(found).sort(), ["doc_1:0", "doc_1:1", "doc_3:0"]);
    const scores = found.hits.map(({ score }) => score);
    t.same(
      scores,
      [...scores].sort((one, other) => other - one),
    );
    t.same(ids(await index.search(ask("words", "opened hour"))), ["doc_2:0"], "title and text, by stems");
    t.same(ids(await index.search(ask("words", "faulty costs"))).slice(0, 1), ["doc_1:1"], "headings too");
    t.same(ids(await index.search(ask("words", "giraffes"))), []);
    t.same(ids(await index.search(ask("nobody", "refund"))), []);
  });

  await t.test("a limit keeps the best", async (t) => {
    await write("limits", policies, hours, runbook);
    const index = await open();
    const all = ids(await index.search(ask("limits", "refund return days")));
    t.equal(all.length, 3);
    t.same(ids(await index.search(ask("limits", "refund return days", { limit: 1 }))), all.slice(0, 1));
    const near = await index.search(ask("limits", "refund return days", { limit: 2, vector: north }));
    t.equal(near.hits.length, 2);
  });

  await t.test("a passage is found with all requested tags alone, by words and by vectors", async (t) => {
    await write("tags", policies, hours, runbook);
    const index = await open();
    const of = async (...tags: string[]) => ids(await index.search(ask("tags", "refund", { tags }))).sort();
    t.same(await of("public"), ["doc_1:0", "doc_1:1"]);
    t.same(await of("public", "policy"), ["doc_1:0", "doc_1:1"]);
    t.same(await of("internal"), ["doc_3:0"]);
    t.same(await of("public", "internal"), []);
    t.same(await of("Public"), [], "tags are compared as they are");
    t.same(await of("pub"), []);
    const near = await index.search(ask("tags", "refund", { tags: ["public"], vector: embedding(0, 0, 1, 0) }));
    t.notOk(ids(near).includes("doc_3:0"));
  });

  await t.test("tags and handles may contain any printable character", async (t) => {
    const odd = ["a.b@c d-e", "{x}|y", "*", "ünï✓", "it's $1 (50%)"];
    await writeDocument(redis, { handle: "odd-name", ...policies, tags: odd });
    const index = await open();
    for (const tag of odd)
      t.equal((await index.search(ask("odd-name", "refund", { tags: [tag] }))).hits.length, 2, tag);
    t.same((await index.search(ask("odd-name", "refund", { tags: odd }))).hits[0]?.passage.tags, odd);
    for (const tag of ["a", "x", "**", "a.b@c", "{x}"]) {
      t.equal((await index.search(ask("odd-name", "refund", { tags: [tag] }))).hits.length, 0, tag);
    }
  });

  await t.test("a handle finds its own passages alone", async (t) => {
    await write("own", policies);
    await write("other", hours, runbook);
    const index = await open();
    t.same(ids(await index.search(ask("other", "refund shop"))).sort(), ["doc_2:0", "doc_3:0"]);
    const near = await index.search(ask("other", "refund", { vector: north }));
    t.same(ids(near).sort(), ["doc_2:0", "doc_3:0"]);
  });

  await t.test("no text of a visitor is read as syntax", async (t) => {
    await write("safe", policies);
    await write("secret", runbook);
    const index = await open();
    const texts = [
      "@handle:{secret} rotate",
      "* | @tags:{internal}",
      "-refund",
      "(",
      '"unclosed',
      "%%%",
      "a=>[KNN 3 @vector $q]",
      "\0\ud800",
      "",
      " ",
    ];
    for (const text of texts) {
      const found = await index.search(ask("safe", text, { tags: ["public"] }));
      t.notOk(ids(found).includes("doc_3:0"), JSON.stringify(text));
      t.equal(found.degraded, false);
    }
    t.same(ids(await index.search(ask("safe", "what is it and who are you"))), [], "stop words ask for nothing");
  });

  await t.test("every script can be searched", async (t) => {
    const texts = [
      "返品は14日以内に承ります。",
      "Возврат денег в течение 14 дней",
      "คืนเงินภายในสิบสี่วัน",
      "환불은 14일 이내에 됩니다",
      "Öffnungszeiten im Café",
    ];
    await writeDocument(redis, { handle: "scripts", documentId: "doc_1", chunks: texts.map((text) => ({ text })) });
    const index = await open();
    const asked = ["返品できますか", "возврат", "คืนเงิน", "환불", "offnungszeiten CAFE"];
    for (const [at, text] of asked.entries())
      t.equal((await index.search(ask("scripts", text))).hits[0]?.passage.text, texts[at]);
  });

  await t.test("with a vector the nearest passages are found, fused with those of the words", async (t) => {
    await write("near", policies, hours, runbook);
    const index = await open();
    const near = await index.search(ask("near", "", { vector: north }));
    t.same([near.mode, near.degraded], ["vector", false]);
    t.same(ids(near).slice(0, 2), ["doc_1:0", "doc_1:1"]);
    const both = await index.search(ask("near", "shop Friday", { vector: north }));
    t.equal(both.hits[0]?.passage.id, "doc_2:0", "second by vectors and first by words beats first by vectors");
    t.same(ids(both).sort(), ["doc_1:0", "doc_1:1", "doc_2:0", "doc_3:0"]);
  });

  await t.test("passages without a vector are found by words among those with one", async (t) => {
    await write("some", policies);
    await writeDocument(redis, { handle: "some", documentId: "doc_9", chunks: [{ text: "Giraffes eat leaves." }] });
    const found = await (await open()).search(ask("some", "giraffes", { vector: north }));
    t.equal(found.mode, "vector");
    t.ok(ids(found).includes("doc_9:0"));
  });

  await t.test("vectors of another model take no part, and the answer says so", async (t) => {
    await write("models", policies);
    const index = await open();
    const asked = (more: Partial<SearchRequest>) => index.search(ask("models", "refund", more));
    const summary = ({ mode, degraded, hits }: SearchResult) => [mode, degraded, hits.length];
    t.same(summary(await asked({ vector: embedding(1, 0) })), ["lexical", true, 2], "another dimension");
    t.same(summary(await asked({ vector: { ...north, model: "newer" } })), ["lexical", true, 2], "another model");
    t.same(summary(await asked({ vector: north })), ["vector", false, 2]);
    await writeDocument(redis, { handle: "unembedded", documentId: "doc_1", chunks: [{ text: "A refund." }] });
    const waiting = await index.search(ask("unembedded", "refund", { vector: north }));
    t.same(summary(waiting), ["lexical", false, 1], "vectors that are still to come are no failure");
  });

  await t.test("every process finds what was accepted, changed or deleted before the question", async (t) => {
    const [one, other] = [await open(), await open()];
    for (const index of [one, other]) t.same(ids(await index.search(ask("fresh", "refund"))), []);
    await write("fresh", policies, hours);
    for (const index of [one, other]) t.equal((await index.search(ask("fresh", "refund"))).hits.length, 2);
    await writeDocument(redis, {
      handle: "fresh",
      ...policies,
      chunks: [{ text: "Giraffes only.", vector: [0, 1, 0, 0] }],
    });
    for (const index of [one, other]) {
      t.same(ids(await index.search(ask("fresh", "faulty"))), []);
      t.same(ids(await index.search(ask("fresh", "giraffe"))), ["doc_1:0"]);
      t.same(ids(await index.search(ask("fresh", "giraffe", { vector: west }))).sort(), ["doc_1:0", "doc_2:0"]);
    }
    await writeDocument(redis, { handle: "fresh", ...hours, tags: ["internal"] });
    for (const index of [one, other]) t.same(ids(await index.search(ask("fresh", "shop", { tags: ["public"] }))), []);
    await dropDocument(redis, "fresh", "doc_1");
    for (const index of [one, other]) {
      t.same(ids(await index.search(ask("fresh", "giraffe"))), []);
      t.same(ids(await index.search(ask("fresh", "", { vector: west }))), ["doc_2:0"]);
    }
  });

  await t.test("among hundreds of passages those with all words of a question beat those with one", async (t) => {
    const subjects = await writeLibrary(redis, "library");
    const index = await open();
    for (const [number, words] of subjects.entries()) {
      const found = await index.search(ask("library", words.join(" "), { tags: ["public", "shelf"] }));
      t.equal(ids(found)[0], `doc_${number}:1`, words.join(" "));
      t.same([found.mode, found.degraded], ["lexical", false]);
    }
  });

  await t.test("passages of other handles don't rank a short passage before the right one", async (t) => {
    const right = {
      text: "The workshop repairs bicycles on all days but public holidays, in winter too.",
      heading: "",
    };
    const chunks = [{ text: "Holidays." }, right, { text: "Winter tyres." }, { text: "A workshop." }];
    await writeDocument(redis, { handle: "bicycles", documentId: "doc_1", tags: ["public"], chunks });
    const index = await open();
    const first = async () => {
      const found = await index.search(ask("bicycles", "workshop repairs bicycles holidays", { tags: ["public"] }));
      return ids(found)[0];
    };
    t.equal(await first(), "doc_1:1");
    for (let number = 0; number < 60; number++) {
      const text = "The workshop repairs bicycles all year.";
      await writeDocument(redis, { handle: `bicycles-${number}`, documentId: "doc_1", chunks: [{ text }] });
    }
    t.equal(await first(), "doc_1:1");
  });

  await t.test("while an index is made again every question is answered in full", async (t) => {
    const handle = "rebuilt";
    const documents = Array.from({ length: 300 }, (_, number) => ({
      documentId: `doc_${number}`,
      chunks: [{ text: `Note about subject${number}, with some more words in it.`, vector: [number, 1, 0, 0] }],
    }));
    for (const document of documents) await writeDocument(redis, { handle, ...document });
    const index = await open();
    const answers = async (number: number) => {
      const words = await index.search(ask(handle, `subject${number}`));
      const near = await index.search(ask(handle, `subject${number}`, { vector: embedding(number, 1, 0, 0) }));
      t.same([ids(words), words.degraded], [[`doc_${number}:0`], false]);
      t.same([near.mode, near.degraded, near.hits.length], ["vector", false, 10]);
    };
    await answers(7);
    for (let turn = 0; turn < 3; turn++) {
      await rebuild();
      for (let number = turn; number < 300; number += 30) await answers(number);
    }
    const isServing = async () => (await index.status()).serving === index.kind;
    for (let turn = 0; !(await isServing()) && turn < 1000; turn++) await delay(10);
    t.ok(await isServing());
    await answers(299);
  });

  await t.test("large passages make no slow question", async (t) => {
    const filler = "A lesson has many words that no question asks for, and it goes on and on. ".repeat(800);
    for (let number = 0; number < 60; number++) {
      const text = `Lesson${number} about gardens. ${filler}`;
      await writeDocument(redis, { handle: "lessons", documentId: `doc_${number}`, chunks: [{ text }] });
    }
    const index = await open();
    await index.search(ask("lessons", "gardens"));
    const times: number[] = [];
    for (let number = 0; number < 20; number++) {
      const from = performance.now();
      const found = await index.search(ask("lessons", `lesson${number} gardens`, { limit: 8 }));
      times.push(performance.now() - from);
      t.equal(ids(found)[0], `doc_${number}:0`);
    }
    const [median = 0] = times.sort((one, other) => one - other).slice(10);
    t.ok(median < 60, `${median.toFixed(1)} ms`);
  });
}

/** Further promises of the in-process index. */
async function inProcess(t: Test, redis: Redis): Promise<void> {
  await t.test(
    "a server that can't have the module's index has the one in process, and the log says why",
    async (t) => {
      const reasons = async (client: Redis, cluster: boolean) => {
        const logged: object[] = [];
        const info = (details: object) => void logged.push(details);
        const index = await openIndex(client, { isCluster: cluster }, { info, warn: info });
        t.same(await index.status(), { kind: "in-process", serving: "in-process" });
        return logged;
      };
      t.match(await reasons(redis, true), [{ kind: "in-process", reason: /cluster/ }]);
      if (onCluster) return;
      t.match(await reasons(redis, false), [{ kind: "in-process", reason: /unknown command/ }]);
      const other = redis.duplicate({ db: 3 });
      t.teardown(() => other.disconnect());
      t.match(await reasons(other, false), [{ kind: "in-process", reason: /database/ }]);
    },
  );

  await t.test(
    "a question costs one read if nothing has changed, and otherwise reads the changed documents",
    async (t) => {
      for (let number = 0; number < 20; number++) {
        await writeDocument(redis, {
          handle: "costs",
          documentId: `doc_${number}`,
          chunks: [{ text: `Common word${number}` }, { text: "more" }],
        });
      }
      const index = new MemoryIndex(redis);
      const costs = async (work: () => Promise<unknown>) => {
        const before = await calls(redis);
        await work();
        const after = await calls(redis);
        return ["hget", "hgetall", "hmget"].map((name) => (after.get(name) ?? 0) - (before.get(name) ?? 0));
      };
      const questions = (count: number) =>
        Promise.all(Array.from({ length: count }, () => index.search(ask("costs", "common"))));
      t.same(await costs(() => questions(10)), [10, 1, 40], "ten questions at once make one load");
      t.same(await costs(() => questions(5)), [5, 0, 0]);
      await writeDocument(redis, { handle: "costs", documentId: "doc_7", chunks: [{ text: "Common giraffe" }] });
      t.same(await costs(() => questions(3)), [3, 1, 1]);
      await dropDocument(redis, "costs", "doc_8");
      t.same(await costs(() => questions(1)), [1, 1, 0]);
    },
  );

  await t.test("memory is bounded: other handles go first, then what doesn't fit is left out and said", async (t) => {
    const words = Array.from({ length: 100 }, (_, at) => `word${at}`).join(" ");
    const chunks = Array.from({ length: 50 }, () => ({ text: words, vector: [1, 0, 0, 0] }));
    for (const handle of ["big-1", "big-2", "big-3"]) {
      for (let number = 0; number < 10; number++)
        await writeDocument(redis, { handle, documentId: `doc_${number}`, chunks });
    }
    const whole = new MemoryIndex(redis);
    t.equal((await whole.search(ask("big-1", "word1"))).degraded, false);
    const index = new MemoryIndex(redis, whole.bytes * 1.5);
    for (const handle of ["big-1", "big-2", "big-3", "big-1"]) {
      const found = await index.search(ask(handle, "word1", { limit: 1000 }));
      t.same([found.degraded, found.hits.length], [false, 500]);
      t.ok(index.bytes <= whole.bytes * 1.5);
    }
    const small = new MemoryIndex(redis, whole.bytes / 2);
    const part = await small.search(ask("big-1", "word1", { limit: 1000 }));
    t.ok(part.degraded && part.hits.length > 0 && part.hits.length < 500);
    t.ok(small.bytes < whole.bytes * 0.75);
  });

  await t.test(
    "what a document said before its change is not found, even where its new text has no room",
    async (t) => {
      await writeDocument(redis, {
        handle: "stale",
        documentId: "doc_1",
        tags: ["public"],
        chunks: [{ text: "giraffe" }],
      });
      const index = new MemoryIndex(redis, new Collection().bytes + 100);
      t.equal((await index.search(ask("stale", "giraffe", { tags: ["public"] }))).hits.length, 1);
      await writeDocument(redis, {
        handle: "stale",
        documentId: "doc_1",
        tags: ["internal"],
        chunks: [{ text: "giraffe" }],
      });
      const found = await index.search(ask("stale", "giraffe", { tags: ["public"] }));
      t.same([found.hits, found.degraded], [[], true]);
    },
  );

  await t.test("other work gets its turn while a handle is loaded", async (t) => {
    const text = "Many words of a long text that takes a while. ".repeat(20);
    for (let number = 0; number < 20; number++) {
      await writeDocument(redis, {
        handle: "slow",
        documentId: `doc_${number}`,
        chunks: Array.from({ length: 50 }, () => ({ text })),
      });
    }
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    await new MemoryIndex(redis).search(ask("slow", "word"));
    clearInterval(timer);
    t.ok(turns > 3);
  });

  await t.test("a Redis that is away rejects the question, and the next one finds again", async (t) => {
    const server = await startRedis({ appendonly: true, single: true });
    const client = new Redis(server.url, { maxRetriesPerRequest: 0, retryStrategy: () => 20 });
    client.on("error", () => undefined);
    t.teardown(() => client.disconnect());
    await writeDocument(client, { handle: "away", ...policies });
    const index = new MemoryIndex(client);
    await server.kill();
    await t.rejects(index.search(ask("away", "refund")));
    const again = await startRedis({ appendonly: true, port: server.port, dir: server.dir });
    t.teardown(async () => {
      await again.stop();
      await server.stop();
    });
    await ready(client);
    t.equal((await index.search(ask("away", "refund"))).hits.length, 2);
  });

  await t.test("a handle that was emptied with Redis is read again", async (t) => {
    await writeDocument(redis, { handle: "reset", ...policies });
    const index = new MemoryIndex(redis);
    t.equal((await index.search(ask("reset", "refund"))).hits.length, 2);
    await redis.del(keys.knowledge("reset"));
    t.same(ids(await index.search(ask("reset", "refund"))), []);
    await writeDocument(redis, { handle: "reset", ...runbook });
    t.same(ids(await index.search(ask("reset", "refund"))), ["doc_3:0"]);
  });
}

/** Further promises of the index on a server with the search module. */
async function onRediSearch(t: Test, redis: Redis): Promise<void> {
  await t.test("another database than 0 has the index in process", async (t) => {
    const other = new Redis(searchServer as string, { db: 1 });
    t.teardown(() => other.disconnect());
    t.equal((await openIndex(other, { isCluster: false })).kind, "in-process");
  });

  await t.test("indexes of an earlier version and of another model are dropped, and their chunks stay", async (t) => {
    await redis.call("FT.CREATE", "knowledge-v1", "ON", "HASH", "PREFIX", "1", "chunk:", "SCHEMA", "terms", "TEXT");
    await redis.call("FT.CREATE", "elsewhere", "ON", "HASH", "PREFIX", "1", "other:", "SCHEMA", "terms", "TEXT");
    await writeDocument(redis, { handle: "kept", ...policies });
    const index = await openIndex(redis, { isCluster: false });
    await index.prepareVectors(8);
    await index.prepareVectors(4);
    const names = (await redis.call("FT._LIST")) as string[];
    t.same(names.sort(), ["elsewhere", "knowledge-v3", "knowledge-v3-4"]);
    t.equal((await index.search(ask("kept", "refund"))).hits.length, 2);
    await redis.call("FT.DROPINDEX", "elsewhere");
  });

  await t.test("after a lost connection every question is answered in full", async (t) => {
    await writeDocument(redis, { handle: "lost", ...policies });
    const client = new Redis(searchServer as string);
    t.teardown(() => client.disconnect());
    const index = await openIndex(client, { isCluster: false });
    for (let turn = 0; turn < 5; turn++) {
      await redis.client("KILL", "ID", await client.client("ID"));
      const found = await index.search(ask("lost", "refund"));
      t.same([found.hits.length, found.degraded], [2, false]);
    }
  });
}

/**
 * Twenty documents of fifteen chunks: the second chunk of each holds the four words of its subject once, all others some of the
 * words of several subjects, each three times.
 */
async function writeLibrary(redis: Redis, handle: string): Promise<string[][]> {
  const subjects = Array.from({ length: 20 }, (_, number) =>
    ["alder", "birch", "cedar", "dogwood"].map((tree, at) => `${tree}${(number + at * 3) % 20}`),
  );
  for (const [number, words] of subjects.entries()) {
    const chunks = Array.from({ length: 15 }, (_, part) => {
      if (part === 1) return { text: `A walk under ${words.join(" and ")} along the river to the mill.` };
      const word = subjects[(number * 7 + part) % 20]![part % 4]!;
      return { text: `More about ${word} and ${word}, of which ${word} is said to be the oldest here.` };
    });
    await writeDocument(redis, { handle, documentId: `doc_${number}`, tags: ["public", "shelf"], chunks });
  }
  return subjects;
}

async function calls(redis: Redis): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const server of mastersOf(redis)) {
    const info = await server.info("commandstats");
    for (const [, name = "", count] of info.matchAll(/^cmdstat_(\w+):calls=(\d+)/gm))
      counts.set(name, (counts.get(name) ?? 0) + Number(count));
  }
  return counts;
}

async function ready(redis: Redis): Promise<void> {
  while (redis.status !== "ready") await delay(10);
}
