import t from "tap";
import { keys } from "../core/store/keys.ts";
import { type Service, startService } from "../fixtures/service.ts";

const base = "/v2/handles/acme/agent/strategy";

/** Strategy documents: group, title, content. */
const documents: [string[], string, string][] = [
  [
    ["strategy", "worked_examples"],
    "Three plans",
    "A pricing page with three plans raised trials by a third. The middle plan was marked.",
  ],
  [
    ["strategy", "worked_examples"],
    "Short forms",
    "A signup form with two fields doubled signups. Pricing was shown after signup.",
  ],
  [["strategy", "failed_examples"], "Hidden price", "A pricing page without any price lost half of its visitors."],
  [
    ["strategy", "app_structure_examples"],
    "Pricing section",
    "Put the pricing section after the proof, before the questions.",
  ],
  [["worked_examples"], "No strategy", "A pricing page that is no strategy document."],
  [["strategy"], "No group", "A pricing thought without a group."],
];

async function startWithDocuments(
  t: Parameters<typeof startService>[0],
  env: Record<string, string> = {},
): Promise<Service> {
  const service = await startService(t, { env });
  const owner = await service.handle("acme");
  for (const [containerTags, title, content] of documents)
    await owner.post("/v2/handles/acme/knowledge/documents").send({ title, content, containerTags }).expect(202);
  return service;
}

t.test(
  "a query finds the documents of each group, with counts and summaries, and can be read again for 24 h",
  async (t) => {
    const service = await startWithDocuments(t);
    const creator = await service.as("user_creator");
    await service.grant("acme", "user_creator", "CREATOR");
    const { body } = await creator.post(`${base}/retrieve`).send({ query: "pricing page" }).expect(200);
    t.same(Object.keys(body), [
      "contextId",
      "status",
      "query",
      "worked_examples",
      "failed_examples",
      "app_structure_examples",
    ]);
    t.match(body, { contextId: /^ctx_/, status: "complete", query: "pricing page" });
    t.equal(body.worked_examples.matchCount, body.worked_examples.items.length);
    t.match(body.worked_examples.items[0], {
      title: "Three plans",
      documentId: /^doc_/,
      summary: /pricing page with three plans/i,
    });
    t.match(body.failed_examples, { matchCount: 1, items: [{ title: "Hidden price" }] });
    t.match(body.app_structure_examples, { matchCount: 1, items: [{ title: "Pricing section" }] });
    const titles = JSON.stringify(body);
    t.notMatch(titles, /No strategy|No group/);
    t.ok(body.worked_examples.items.every(({ score }: { score: unknown }) => typeof score === "number"));
    t.same((await creator.get(`${base}/context/${body.contextId}`).expect(200)).body, body);
    const left = await service.runtime.redis.ttl(keys.strategyContext("acme", body.contextId));
    t.ok(left > 86_300 && left <= 86_400);
    const other = await service.handle("other");
    t.match((await other.get(`/v2/handles/other/agent/strategy/context/${body.contextId}`).expect(404)).body, {
      code: "context_not_found",
    });
    t.match((await creator.get(`${base}/context/ctx_unknown`).expect(404)).body, { code: "context_not_found" });
  },
);

t.test("the limit is for each group; the counts are of all that match", async (t) => {
  const service = await startWithDocuments(t);
  const owner = await service.as("user_acme");
  const ask = (body: object) => owner.post(`${base}/retrieve`).send(body);
  const { body } = await ask({ query: "pricing signup", limit: 1 }).expect(200);
  t.equal(body.worked_examples.items.length, 1);
  t.equal(body.worked_examples.matchCount, 2);
  await ask({ query: "pricing", limit: 1000 }).expect(200);
  for (const wrong of [
    {},
    { query: "" },
    { query: "  " },
    { query: "x", limit: 0 },
    { query: "x", limit: 1.5 },
    { query: "x".repeat(2001) },
    { query: "x", more: 1 },
  ])
    t.match((await ask(wrong)).body, { status: 400, code: "invalid_request" });
  const empty = (await ask({ query: "zebra" }).expect(200)).body;
  t.match(empty, { status: "complete", worked_examples: { matchCount: 0, items: [] } });
});

t.test("if a part of retrieval fails, the answer is partial and contains the other results", async (t) => {
  const service = await startWithDocuments(t);
  const { index } = service.runtime;
  const owner = await service.as("user_acme");
  const search = index.search.bind(index);
  index.search = async (request) => {
    if (request.tags.includes("failed_examples")) throw new Error("This shard is away.");
    return search(request);
  };
  const { body } = await owner.post(`${base}/retrieve`).send({ query: "pricing page" }).expect(200);
  t.match(body, {
    status: "partial",
    failed_examples: { matchCount: 0, items: [] },
    app_structure_examples: { matchCount: 1 },
  });
  t.equal((await owner.get(`${base}/context/${body.contextId}`).expect(200)).body.status, "partial");
  index.search = async (request) => ({ ...(await search(request)), degraded: true });
  t.match((await owner.post(`${base}/retrieve`).send({ query: "pricing page" }).expect(200)).body, {
    status: "partial",
    failed_examples: { matchCount: 1 },
  });
  index.search = async () => {
    throw new Error("All shards are away.");
  };
  t.match((await owner.post(`${base}/retrieve`).send({ query: "pricing page" }).expect(503)).body, {
    code: "service_unavailable",
  });
});

t.test("without its embedding model retrieval uses words and is partial", async (t) => {
  const service = await startWithDocuments(t, { OLLAMA_HOST: "http://127.0.0.1:1", EMBEDDING_MODEL_ID: "none" });
  const owner = await service.as("user_acme");
  const { body } = await owner.post(`${base}/retrieve`).send({ query: "pricing page" }).expect(200);
  t.match(body, { status: "partial", failed_examples: { matchCount: 1 } });
});
