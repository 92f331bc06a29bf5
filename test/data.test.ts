import type { Redis } from "ioredis";
import t from "tap";
import { eraseHandle } from "../core/operations/erasure.ts";
import { makeSending } from "../fixtures/email.ts";
import { dataPage, type KeyRow, keyTable } from "../fixtures/key-table.ts";
import { live, openTown } from "../fixtures/mixed-life.ts";
import { keyNames, startRedis } from "../fixtures/redis.ts";
import { eventually } from "../fixtures/service.ts";
import { sourceText } from "../fixtures/sources.ts";

/** The value of a key, as text. */
async function content(redis: Redis, key: string): Promise<string> {
  const read: Record<string, () => Promise<unknown>> = {
    string: () => redis.get(key),
    hash: () => redis.hgetall(key),
    set: () => redis.smembers(key),
    zset: () => redis.zrange(key, 0, "-1"),
    list: () => redis.lrange(key, 0, -1),
    stream: () => redis.xrange(key, "-", "+"),
  };
  return JSON.stringify(await read[await redis.type(key)]?.());
}

/** The runs of answers, which go by themselves within ten minutes. */
const goesSoon = /^run(-[a-z]+)?:/;

t.test("docs/data.md is the table of keys", async (t) => {
  t.equal(sourceText("docs/data.md"), dataPage(), "`npm run -s docs` rewrites it");
});

t.test("every key that a handle's life leaves is in the table, of its type, and goes when it says", async (t) => {
  const server = await startRedis();
  t.teardown(() => server.stop());
  const town = await openTown(t, server);
  const { redis } = town.service.runtime;
  await live(town, "lively-owl");
  const table = keyTable();
  const seen = new Set<KeyRow>();
  for (const key of await keyNames(redis, "*")) {
    const row = table.find(({ matches }) => matches.test(key));
    t.ok(row, `${key} is in the table`);
    if (row === undefined) continue;
    seen.add(row);
    const type = await redis.type(key);
    if (type !== "none" && row.type !== "prefix") t.equal(type, row.type === "counter" ? "string" : row.type, key);
    const left = await redis.pttl(key);
    if (row.expires !== undefined && left !== -2)
      t.ok(left > 0 && left <= row.expires, `${key} lives ${row.lifetime}: ${left} ms`);
  }
  t.ok(seen.size > 60, `the life was a full one: ${seen.size} of ${table.length} rows`);
});

t.test("erasing a handle leaves no key, no job and no word of it", async (t) => {
  const server = await startRedis();
  t.teardown(() => server.stop());
  const town = await openTown(t, server);
  const { runtime } = town.service;
  const { redis } = runtime;
  const kept = await live(town, "lively-owl");
  const gone = await live(town, "quiet-fox");
  // Its account, its owner and their domain, which stay, are named after it in this test.
  const words = [
    /(?<!acct_|user_)quiet-fox(?!\.example)/,
    ...[gone.leadId, gone.bookingUid].map((id) => new RegExp(id)),
  ];
  await eraseHandle(runtime, "quiet-fox");
  t.same(await keyNames(redis, "*{quiet-fox}*"), []);
  for (const key of (await keyNames(redis, "*")).filter((name) => !goesSoon.test(name))) {
    const held = `${key} ${await content(redis, key)}`;
    t.notOk(
      words.some((word) => word.test(held)),
      `${key} says nothing of it`,
    );
  }
  const { status, text: page } = await town.service.visitor.get("/p/lively-owl/index");
  t.equal(status, 200);
  t.equal(page, kept.page, "another handle is as it was");
});

t.test("a handle that is created again has no data of the erased one", async (t) => {
  const server = await startRedis();
  t.teardown(() => server.stop());
  const { service, mails } = await openTown(t, server);
  for (const word of ["earlier", "later"]) {
    const { owner, send } = await makeSending(service, "acme", word);
    const page = { pageSlug: "index", title: "Home", status: "PUBLISHED", content: `<p>${word}</p>` };
    await owner.post("/v2/handles/acme/pages").send(page).expect(201);
    t.match((await service.visitor.get("/p/acme/index").expect(200)).text, `<p>${word}</p>`);
    const document = { title: "Colours", content: `The sign is painted ${word === "earlier" ? "red" : "blue"}.` };
    const tagged = { ...document, containerTags: ["public-page-agent"] };
    const made = (await owner.post("/v2/handles/acme/knowledge/documents").send(tagged).expect(202)).body.document;
    const read = `/v2/handles/acme/knowledge/documents/${made.documentId}`;
    await eventually(async () => (await owner.get(read)).body.document?.status === "READY");
    const asked = { question: "Which colour is the sign painted?" };
    const answer = (await service.visitor.post("/v2/public/pages/acme/index/agentic-question").send(asked)).body;
    t.match(answer.answerMarkdown, word === "earlier" ? "red" : "blue");
    await send([`${word}@visitor.test`]);
    const mail = await eventually(() => mails.find(({ to }) => to[0] === `${word}@visitor.test`));
    t.equal(mail.headers.subject, `${word} Ann`);
    await eraseHandle(service.runtime, "acme");
  }
});
