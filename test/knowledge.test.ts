import t from "tap";
import { taggedDocuments } from "../core/knowledge/face.ts";
import { reindexDocuments } from "../core/knowledge/reindex.ts";
import { keys } from "../core/store/keys.ts";
import { job } from "../core/store/outbox.ts";
import { startModelServer } from "../fixtures/model-server.ts";
import { keyNames } from "../fixtures/redis.ts";
import { eventually, startService } from "../fixtures/service.ts";

const documents = "/v2/handles/acme/knowledge/documents";
const query = "/v2/handles/acme/knowledge/query";
const returns = {
  title: "Returns",
  topic: "service",
  source: "handbook",
  contentType: "text/markdown",
  containerTags: ["public-page-agent", "shop"],
  content:
    "# Returns\n\nParcels can be sent back within thirty days.\n\n## Refunds\n\nThe refund arrives after five working days.",
};

t.test("a document is findable by words when its 202 is sent, and READY once indexed", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const { body } = await owner.post(documents).send(returns).expect(202);
  t.match(body.document, {
    documentId: /^doc_/,
    title: "Returns",
    status: "INDEXING",
    chunkCount: Number,
    containerTags: ["public-page-agent", "shop"],
  });
  t.notOk("content" in body.document);
  const found = await owner.post(query).send({ query: "When does my refund arrive?" }).expect(200);
  t.match(found.body, {
    retrievalMode: "lexical",
    degraded: false,
    results: [{ documentId: body.document.documentId, title: "Returns", source: "handbook" }],
  });
  t.ok(returns.content.includes(found.body.results[0].snippet), "the snippet is an exact piece of the content");
  await service.startWorkers(["knowledge"]);
  const read = await eventually(async () => {
    const { body: one } = await owner.get(`${documents}/${body.document.documentId}`);
    return one.document.status === "READY" && one.document;
  });
  t.match(read, { content: returns.content, chunkCount: body.document.chunkCount });
});

t.test("documents that are long without having chunks are searched instead of read", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const read = async () => (await taggedDocuments(service.runtime, "acme", "shop"))?.documents.length;
  const blank = { ...returns, content: `${returns.content}${" ".repeat(200_000)}\n\nAsk us.` };
  for (let at = 0; at < 22; at++) await owner.post(documents).send(blank).expect(202);
  t.equal(await read(), 22);
  const { documentId } = (await owner.post(documents).send(blank).expect(202)).body.document;
  t.equal(await read(), undefined);
  await owner.post(query).send({ query: "When does my refund arrive?" }).expect(200);
  await owner.delete(`${documents}/${documentId}`).expect(204);
  t.equal(await read(), 22);
});

t.test("quotes and lists are nested up to 100 deep in a document, and the place of the next is named", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const lists = (levels: number) => Array.from({ length: levels }, (_, at) => `${"  ".repeat(at)}- a`).join("\n");
  const deep: [string, object][] = [
    [`# Rules\n\n${">".repeat(100)}> x`, { line: 3, column: 101 }],
    [`${"- ".repeat(100)}- x`, { line: 1, column: 201 }],
    [`${"1. > ".repeat(50)}- x`, { line: 1, column: 251 }],
    [lists(101), { line: 101, column: 201 }],
  ];
  for (const [content, { line, column }] of deep as [string, { line: number; column: number }][]) {
    const { status, body } = await owner.post(documents).send({ ...returns, content });
    t.match({ status, ...body }, { status: 400, code: "invalid_request", errors: [{ path: "/content" }] });
    t.match(body.errors[0].message, `(line ${line}, column ${column})`);
    await owner
      .post(documents)
      .send({ ...returns, contentType: "text/plain", content })
      .expect(202);
  }
  const fine = [
    lists(100),
    ">".repeat(100),
    "- a\n".repeat(500),
    `~~~\n${">".repeat(300)}\n~~~\n`,
    "* * * * *\n\n**a** - b",
  ];
  for (const content of fine)
    await owner
      .post(documents)
      .send({ ...returns, content })
      .expect(202);
  const { documentId } = (await owner.post(documents).send(returns).expect(202)).body.document;
  await owner
    .put(`${documents}/${documentId}`)
    .send({ content: "> ".repeat(50_000) })
    .expect(400);
});

t.test("a document must carry all requested tags", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  await owner.post(documents).send(returns).expect(202);
  await owner
    .post(documents)
    .send({
      title: "Refund rules for staff",
      content: "A refund above 100 EUR needs a manager.",
      containerTags: ["internal"],
    })
    .expect(202);
  const titles = async (containerTags?: string[]) =>
    (await owner.post(query).send({ query: "refund", containerTags }).expect(200)).body.results
      .map(({ title }: { title: string }) => title)
      .sort();
  t.same(await titles(), ["Refund rules for staff", "Returns"]);
  t.same(await titles(["shop"]), ["Returns"]);
  t.same(await titles(["shop", "public-page-agent"]), ["Returns"]);
  t.same(await titles(["shop", "internal"]), []);
  t.equal((await owner.post(query).send({ query: "refund", limit: 1 }).expect(200)).body.results.length, 1);
  for (const body of [{}, { query: "" }, { query: "x", limit: 0 }, { query: 5 }, { query: "x", tags: [] }])
    t.match((await owner.post(query).send(body).expect(400)).body, { code: "invalid_request" });
});

t.test("a document with many passages leaves room for the others that match", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const sections = Array.from(
    { length: 60 },
    (_, at) => `## Warranty ${at}\n\nThe warranty of part ${at} lasts ${at} months.`,
  );
  const add = (title: string, content: string) =>
    owner
      .post(documents)
      .send({ ...returns, title, content })
      .expect(202);
  await add("Warranty handbook", sections.join("\n\n"));
  const searched = t.capture(service.runtime.index, "search", service.runtime.index.search);
  await owner.post(query).send({ query: "warranty" }).expect(200);
  t.equal(searched().length, 1, "no further search once every document of the handle is found");
  for (const title of ["Bikes", "Tents", "Stoves"])
    await add(title, "What we sell is checked twice before it is sent, and its warranty is that of its maker.");
  const titles = async (limit: number) => {
    const { body } = await owner.post(query).send({ query: "warranty", limit }).expect(200);
    return body.results.map((one: { title: string }) => one.title);
  };
  t.same(await titles(1), ["Warranty handbook"]);
  t.same((await titles(4)).sort(), ["Bikes", "Stoves", "Tents", "Warranty handbook"]);
  t.equal((await titles(2)).length, 2);
});

t.test("spaces at the ends of a tag don't count", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const { body } = await owner.post(documents).send({ ...returns, containerTags: [" lead", "trail ", "lead"] });
  t.same(body.document.containerTags, ["lead", "trail"]);
  for (const containerTags of [["lead"], [" trail"], ["lead ", "trail"]])
    t.equal((await owner.post(query).send({ query: "refund", containerTags }).expect(200)).body.results.length, 1);
  const { documentId } = body.document;
  const changed = await owner.put(`${documents}/${documentId}`).send({ containerTags: ["\u00a0other\u3000"] });
  t.same(changed.body.document.containerTags, ["other"]);
});

t.test("a snippet is an exact piece of the document, from where it speaks of the question", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const filler = "Nothing of interest is said here, and it is said at length. ".repeat(6);
  const texts: [content: string, question: string, snippet: RegExp][] = [
    [
      `${filler}Bicycles are repaired on Mondays. Bring a lock.\n\n${filler}`,
      "repairing a bicycle",
      /^Bicycles are .* lock\.$/,
    ],
    [
      `${filler}\n\n- The harbour tour leaves at nine\n- The castle tour leaves at ten`,
      "castle tour",
      /^The castle tour leaves at ten$/,
    ],
    [
      `${filler}Dr. Smith treats tendons by laser, e.g. after a fall. ${filler}`,
      "tendon laser",
      /^Dr\. Smith treats tendons by laser, e\.g\. after a fall\. /,
    ],
    [
      `${filler}Die Öffnungszeiten der Bücherei hängen an der Tür. ${filler}`,
      "offnungszeiten bucherei",
      /^Die Öffnungszeiten/,
    ],
    [`${filler}Die Fußballer üben im Park. ${filler}`, "fußballer", /^Die Fußballer/],
    [`${filler}Тихий район лежит у реки. ${filler}`, "район", /^Тихий район/],
    [`${"長い文章です。".repeat(30)}返品は十四日以内に承ります。`, "返品できますか", /^返品は十四日以内に承ります。$/],
    [`${"kangaroos-without-an-end".repeat(40)} kangaroo`, "kangaroo", /^kangaroos-without-an-endkangaroos-/],
    [
      `| plan | price |\n|---|---|\n| small | 12 EUR |\n| walrus | 40 EUR |`,
      "price of the walrus plan",
      /walrus \| 40 EUR/,
    ],
  ];
  for (const [at, [content]] of texts.entries())
    await owner
      .post(documents)
      .send({ title: `Note ${at}`, content, contentType: "text/markdown" })
      .expect(202);
  for (const [content, question, expected] of texts) {
    const { body } = await owner.post(query).send({ query: question }).expect(200);
    const { snippet } = body.results[0];
    t.match(snippet, expected, question);
    t.ok(content.includes(snippet), question);
    t.ok(snippet.length <= 240, question);
  }
});

t.test("the snippets of large lesson cards cost no more than those of other passages", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const body = { title: "Gardens", summary: "s", text: "A garden needs water and light. ".repeat(1800) };
  const content = `\`\`\`productivity_lesson_card\n${JSON.stringify(body)}\n\`\`\``;
  for (let number = 0; number < 20; number++)
    await owner
      .post(documents)
      .send({ title: `Card ${number}`, content, contentType: "text/markdown" })
      .expect(202);
  const asked = () => owner.post(query).send({ query: "garden water and light", limit: 20 }).expect(200);
  t.equal((await asked()).body.results.length, 20);
  const from = performance.now();
  for (let turn = 0; turn < 5; turn++) await asked();
  const each = (performance.now() - from) / 5;
  t.ok(each < 400, `${each.toFixed(0)} ms`);
});

t.test("a changed document is found by its new words alone, a deleted one not at all", async (t) => {
  const service = await startService(t, { workers: true });
  const owner = await service.handle("acme");
  const { documentId } = (await owner.post(documents).send(returns).expect(202)).body.document;
  const hits = async (text: string) => (await owner.post(query).send({ query: text }).expect(200)).body.results.length;
  t.equal(await hits("parcels"), 1);
  const changed = await owner.put(`${documents}/${documentId}`).send({ content: "Vouchers never expire." }).expect(200);
  t.match(changed.body.document, { documentId, title: "Returns", containerTags: returns.containerTags });
  t.equal(await hits("parcels"), 0);
  t.equal(await hits("vouchers"), 1);
  await owner.delete(`${documents}/${documentId}`).expect(204);
  t.equal(await hits("vouchers"), 0);
  t.match((await owner.get(`${documents}/${documentId}`).expect(404)).body, { code: "document_not_found" });
  t.match((await owner.put(`${documents}/${documentId}`).send({ title: "x" }).expect(404)).body, {
    code: "document_not_found",
  });
  t.match((await owner.delete(`${documents}/${documentId}`).expect(404)).body, { code: "document_not_found" });
  t.equal((await keyNames(service.runtime.redis, "chunk:*")).length, 0);
});

t.test("changes of one document at the same time all count, and none brings a deleted document back", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  for (let round = 0; round < 10; round++) {
    const { documentId } = (await owner.post(documents).send(returns).expect(202)).body.document;
    const address = `${documents}/${documentId}`;
    const changes = [{ title: "Vouchers" }, { topic: "shop" }, { source: "site" }, { containerTags: ["a"] }];
    await Promise.all(changes.map((change) => owner.put(address).send(change).expect(200)));
    t.match((await owner.get(address).expect(200)).body.document, Object.assign({}, ...changes), `round ${round}`);
    const [, ...others] = await Promise.all([
      owner.delete(address).expect(204),
      ...changes.map((change) => owner.put(address).send(change)),
    ]);
    t.ok(others.every(({ status }) => status === 200 || status === 404));
    await owner.get(address).expect(404);
  }
  t.same((await owner.get(documents).expect(200)).body.documents, []);
  t.equal((await keyNames(service.runtime.redis, "chunk:*")).length, 0);
});

t.test("bad documents are refused by field and leave nothing", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const bad: [object, string][] = [
    [{ content: "x" }, "/title"],
    [{ title: "x" }, "/content"],
    [{ title: "x", content: "  " }, "/content"],
    [{ title: "x", content: "x", contentType: "text/html" }, "/contentType"],
    [{ title: "x", content: "x", containerTags: "y" }, "/containerTags"],
    [{ title: "x", content: "x", more: 1 }, "/more"],
    [{ title: "x", content: "x".repeat(204_801) }, "/content"],
    [{ title: "x", content: "ä".repeat(110_000) }, "/content"],
  ];
  for (const [body, path] of bad)
    t.match(
      (await owner.post(documents).send(body).expect(400)).body,
      { code: "invalid_request", errors: [{ path }] },
      path,
    );
  t.same((await owner.get(documents).expect(200)).body, { documents: [], nextCursor: null });
  t.equal((await keyNames(service.runtime.redis, "chunk:*")).length, 0);
});

t.test("the job rebuilds lost chunks, and removes those of a lost document", async (t) => {
  const service = await startService(t, { workers: ["knowledge"] });
  const owner = await service.handle("acme");
  const { redis, queues } = service.runtime;
  const { documentId } = (await owner.post(documents).send(returns).expect(202)).body.document;
  await eventually(async () => (await owner.get(`${documents}/${documentId}`)).body.document.status === "READY");
  const chunks = await keyNames(redis, "chunk:*");
  await redis.del(...chunks);
  await queues.later(job("knowledge.index", "again-1", { handle: "acme", documentId }));
  await eventually(async () => (await keyNames(redis, "chunk:*")).length === chunks.length);
  await redis.del(`document:{acme}:${documentId}`);
  await queues.later(job("knowledge.index", "again-2", { handle: "acme", documentId }));
  await eventually(async () => (await keyNames(redis, "chunk:*")).length === 0);
  t.same((await owner.get(documents).expect(200)).body.documents, []);
  t.equal(await redis.zcard(keys.documents("acme")), 0);
});

t.test("documents are indexed again on demand, with terms of this version and vectors of this model", async (t) => {
  const model = await startModelServer();
  t.teardown(() => model.close());
  const service = await startService(t, {
    workers: ["knowledge"],
    env: { OLLAMA_HOST: model.url, EMBEDDING_MODEL_ID: "scripted:embed" },
  });
  const { redis } = service.runtime;
  for (const handle of ["acme", "globex"]) {
    const owner = await service.handle(handle);
    await owner.post(`/v2/handles/${handle}/knowledge/documents`).send(returns).expect(202);
  }
  const chunks = await eventually(async () => {
    const names = await keyNames(redis, "chunk:*");
    const models = await Promise.all(names.map((name) => redis.hget(name, "model")));
    return names.length > 0 && models.every((one) => one === "scripted:embed") && names;
  });
  const age = () => Promise.all(chunks.map((name) => redis.hset(name, { termsVersion: "1", model: "earlier" })));
  const renewed = async (handle: string) => {
    const own = chunks.filter((name) => name.includes(`{${handle}}`));
    const rows = await Promise.all(own.map((name) => redis.hmget(name, "termsVersion", "model")));
    return rows.every(([version, by]) => version !== "1" && by === "scripted:embed");
  };
  await age();
  t.equal(await reindexDocuments(service.runtime, "acme"), 1);
  await eventually(() => renewed("acme"));
  t.notOk(await renewed("globex"));
  t.equal(await reindexDocuments(service.runtime), 2);
  await eventually(() => renewed("globex"));
});

t.test("a hundred documents of one handle delay the one of another by a few", async (t) => {
  const service = await startService(t);
  const [big, small] = [await service.handle("big"), await service.handle("small")];
  const add = async (owner: typeof big, handle: string) =>
    (await owner.post(`/v2/handles/${handle}/knowledge/documents`).send(returns).expect(202)).body.document.documentId;
  for (let at = 0; at < 100; at++) await add(big, "big");
  const one = await add(small, "small");
  const queue = service.runtime.queues.queue("knowledge");
  const waiting = () => queue.getJobs(["waiting", "prioritized"], 0, -1, true);
  await eventually(async () => (await waiting()).length === 101);
  const next: string[] = (await waiting()).map(({ data }) => data.documentId);
  t.ok(next.slice(0, 3).includes(one), `it is the ${next.indexOf(one) + 1}th`);
  const { documents: listed } = (await small.get("/v2/handles/small/knowledge/documents")).body;
  t.match(listed, [{ status: "INDEXING" }]);
});

t.test("an embedding model that is away leaves documents findable by words, and says so of queries", async (t) => {
  const model = await startModelServer();
  const service = await startService(t, {
    workers: ["knowledge"],
    env: { OLLAMA_HOST: model.url, EMBEDDING_MODEL_ID: "scripted:embed" },
  });
  const owner = await service.handle("acme");
  const { documentId } = (await owner.post(documents).send(returns).expect(202)).body.document;
  await eventually(async () => (await owner.get(`${documents}/${documentId}`)).body.document.status === "READY");
  t.match((await owner.post(query).send({ query: "refund" }).expect(200)).body, {
    retrievalMode: "vector",
    degraded: false,
  });
  model.script.failure = "hang";
  const asked = performance.now();
  t.match((await owner.post(query).send({ query: "refund" }).expect(200)).body, {
    retrievalMode: "lexical",
    degraded: true,
    results: [{ documentId }],
  });
  t.ok(performance.now() - asked < 10_000, "a silent one delays a query by three seconds");
  await model.close();
  t.match((await owner.post(query).send({ query: "refund" }).expect(200)).body, {
    retrievalMode: "lexical",
    degraded: true,
    results: [{ documentId }],
  });
});
