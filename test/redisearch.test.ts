import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { Redis, ReplyError } from "ioredis";
import t, { type Test } from "tap";
import { RediSearchIndex } from "../core/engines/search/redisearch-index.ts";
import { readInfo, readRows } from "../core/engines/search/redisearch-replies.ts";
import type { SearchIndex, SearchRequest, SearchResult } from "../core/platform/runtime.ts";
import { encodeVector } from "../core/engines/search/stored.ts";
import { writeDocument } from "../fixtures/chunks.ts";
import { startRedis } from "../fixtures/redis.ts";

type Name =
  | "list"
  | "emptyList"
  | "created"
  | "exists"
  | "info"
  | "missingInfo"
  | "missingSearch"
  | "near"
  | "nearWithFields"
  | "words"
  | "nothing"
  | "wrongDimension";
type Recording = Record<Name, { command: unknown[]; reply?: unknown; error?: string }>;
type Answer = { reply?: unknown; error?: Error | string };

const recordings = JSON.parse(
  readFileSync(new URL("../fixtures/redisearch/replies.json", import.meta.url), "utf8"),
) as Record<"RESP2" | "RESP3", Recording>;

const acme = {
  handle: "acme",
  documentId: "doc_1",
  title: "Refund policy",
  tags: ["public-page-agent", "policy"],
  chunks: [
    { text: "Refunds are paid within 14 days of the return." },
    { text: "Shipping costs are not refunded unless the item was faulty." },
  ],
};
const question: SearchRequest = { handle: "acme", text: "refund days", tags: ["public-page-agent"], limit: 5 };
const vector = Float32Array.of(1, 0, 0, 0);

const create = [
  "FT.CREATE",
  "knowledge",
  "ON",
  "HASH",
  "PREFIX",
  "1",
  "chunk:",
  "STOPWORDS",
  "0",
  "SCHEMA",
  "terms",
  "TEXT",
  "NOSTEM",
];
const filters = [
  "handle",
  "TAG",
  "CASESENSITIVE",
  "tags",
  "TAG",
  "SEPARATOR",
  "\u001f",
  "CASESENSITIVE",
  "model",
  "TAG",
  "CASESENSITIVE",
];
const createWords = [...create, ...filters, "dimensions", "NUMERIC"];
const hnsw = [
  "VECTOR",
  "HNSW",
  "12",
  "TYPE",
  "FLOAT32",
  "DIM",
  "4",
  "DISTANCE_METRIC",
  "COSINE",
  "M",
  "16",
  "EF_CONSTRUCTION",
  "200",
  "EF_RUNTIME",
  "200",
];
const createVectors = [
  "FT.CREATE",
  "knowledge-4",
  "ON",
  "HASH",
  "PREFIX",
  "1",
  "chunk:",
  "STOPWORDS",
  "0",
  "SCHEMA",
  ...filters,
  "vector",
  ...hnsw,
];
const scored = ["SCORER", "BM25STD", "WITHSCORES", "RETURN", "1", "terms", "LIMIT", "0", "64", "DIALECT", "2"];
const probe = ["FT.SEARCH", "knowledge", "@handle:{\\-} @tags:{\\-} @terms:(probe)", ...scored];
const searchWords = [
  "FT.SEARCH",
  "knowledge",
  "@handle:{acme} @tags:{public\\-page\\-agent} @terms:(refund|dai)",
  ...scored,
];
const nearest = ["SORTBY", "distance", "ASC", "NOCONTENT", "LIMIT", "0", "64", "DIALECT", "2"];
const filtered = "(@handle:{acme} @tags:{public\\-page\\-agent})=>[KNN 64 @vector $q AS distance]";
const searchNear = ["FT.SEARCH", "knowledge-4", filtered, "PARAMS", "2", "q", "AACAPwAAAAAAAAAAAAAAAA==", ...nearest];
const infoWords = ["FT.INFO", "knowledge"];
const infoVectors = ["FT.INFO", "knowledge-4"];
const countAll = ["FT.SEARCH", "knowledge", "@handle:{acme} @dimensions:[1 +inf]", "LIMIT", "0", "0", "DIALECT", "2"];
const countFitting = ["FT.SEARCH", "knowledge", "@handle:{acme} @dimensions:[4 4]", "LIMIT", "0", "0", "DIALECT", "2"];

/** A real Redis whose search commands a table answers; a command that isn't in the table fails the test. */
class Double {
  readonly sent: unknown[][] = [];
  readonly redis: Redis;
  private readonly answers = new Map<string, Answer[]>();

  constructor(t: Test, redis: Redis) {
    const call = (...parts: (string | Uint8Array)[]) => this.answer(t, parts.map(readable));
    this.redis = new Proxy(redis, {
      get: (target, name) => (name === "call" ? call : bound(target, name)),
    });
  }

  /** Answers a command with these in turn, the last one again and again. */
  on(command: string[], ...answers: Answer[]): this {
    this.answers.set(JSON.stringify(command), answers);
    return this;
  }

  private async answer(t: Test, command: unknown[]): Promise<unknown> {
    this.sent.push(command);
    const answers = this.answers.get(JSON.stringify(command));
    const answer = answers && (answers.length > 1 ? answers.shift() : answers[0]);
    if (!answer) t.fail(`unexpected ${JSON.stringify(command)}`);
    if (typeof answer?.error === "string") throw new ReplyError(answer.error);
    if (answer?.error) throw answer.error;
    return structuredClone(answer?.reply);
  }
}

const readable = (part: string | Uint8Array): string =>
  typeof part === "string" ? part : Buffer.from(part).toString("base64");
const bound = (target: object, name: string | symbol): unknown => {
  const value = Reflect.get(target, name);
  return typeof value === "function" ? value.bind(target) : value;
};

/** The answers were recorded with other key and field names; their form stays. */
function adapted(
  { reply, error }: { reply?: unknown; error?: string },
  more: { total?: number; warning?: string } = {},
): Answer {
  if (error !== undefined) return { error };
  const renamed = JSON.parse(
    JSON.stringify(reply).replaceAll('"knowledge:{acme}', '"chunk:{acme}').replaceAll('"text"', '"terms"'),
  ) as unknown[];
  if (more.warning) renamed[renamed.indexOf("warning") + 1] = [more.warning];
  if (more.total !== undefined) renamed[Math.max(0, renamed.indexOf("total_results") + 1)] = more.total;
  return { reply: renamed };
}

const elsewhere: SearchResult = { hits: [], mode: "lexical", degraded: false };
const fallback: SearchIndex = {
  kind: "in-process",
  search: async () => ({ ...elsewhere, hits: [{ passage: { id: "in-process" } as never, score: 1 }] }),
  close: async () => undefined,
};
const ids = ({ hits }: SearchResult): string[] => hits.map(({ passage }) => passage.id);
const summary = (result: SearchResult): unknown[] => [result.mode, result.degraded, ...ids(result)];

const server = await startRedis({ single: true });
const redis = new Redis(server.url);
t.teardown(async () => {
  redis.disconnect();
  await server.stop();
});
await writeDocument(redis, acme);

for (const protocol of ["RESP2", "RESP3"] as const) {
  const real = recordings[protocol];
  const ok = adapted(real.created);
  const nothing = adapted(real.nothing);
  const info = adapted(real.info);
  const open = (t: Test) => {
    const double = new Double(t, redis).on(infoWords, info).on(infoVectors, info);
    return { double, index: new RediSearchIndex(double.redis, fallback) };
  };

  t.test(`${protocol}: replies are read`, async (t) => {
    const near = readRows(real.nearWithFields.reply, { scores: false, fields: true });
    t.same([near.total, near.partial, near.rows.length], [3, false, 3]);
    t.equal(near.rows[1]?.key, "knowledge:{acme}:doc_1:1");
    t.same(Object.fromEntries(near.rows[1]!.fields), {
      distance: "0.00611627101898",
      title: "Refund policy",
      text: "Shipping costs are not refunded unless the item was faulty.",
    });
    t.same(
      readRows(real.near.reply, { scores: false, fields: false }).rows.map(({ key }) => key),
      ["knowledge:{acme}:doc_1:0", "knowledge:{acme}:doc_1:1"],
    );
    const words = readRows(real.words.reply, { scores: true, fields: true });
    t.same(
      words.rows.map(({ score }) => score),
      [4.06252495654226, 1.436433096887903],
    );
    t.same(readRows(real.nothing.reply, { scores: true, fields: true }), { total: 0, rows: [], partial: false });
    t.equal(readInfo(real.info.reply, "percent_indexed"), "1");
  });

  t.test(`${protocol}: the index of words is made once`, async (t) => {
    const empty = open(t);
    empty.double.on(["FT._LIST"], adapted(real.emptyList)).on(createWords, ok).on(probe, nothing);
    t.equal(await empty.index.prepare(), true);
    t.same(empty.double.sent, [["FT._LIST"], createWords, probe]);
    const made = open(t);
    made.double.on(["FT._LIST"], { reply: real.list.reply }).on(probe, nothing);
    t.equal(await made.index.prepare(), true);
    const raced = open(t);
    raced.double.on(["FT._LIST"], adapted(real.emptyList)).on(createWords, adapted(real.exists)).on(probe, nothing);
    t.equal(await raced.index.prepare(), true, "another process was faster");
  });

  t.test(
    `${protocol}: a server that lacks the module or a part of it isn't used, one that is away rejects`,
    async (t) => {
      const plain = open(t);
      plain.double.on(["FT._LIST"], { error: "ERR unknown command 'FT._LIST', with args beginning with: " });
      t.equal(await plain.index.prepare(), false);
      const other = open(t);
      other.double
        .on(["FT._LIST"], adapted(real.emptyList))
        .on(createWords, { error: "Invalid field type for field `terms`" });
      t.equal(await other.index.prepare(), false);
      const loading = open(t);
      loading.double.on(["FT._LIST"], { error: "LOADING Redis is loading the dataset in memory" });
      await t.rejects(loading.index.prepare(), /LOADING/);
      const away = open(t);
      away.double.on(["FT._LIST"], { error: new Error("Connection is closed.") });
      await t.rejects(away.index.prepare(), /closed/);
    },
  );

  t.test(`${protocol}: words are asked for with the filters, and passages come from Redis`, async (t) => {
    const { double, index } = open(t);
    double.on(searchWords, adapted(real.words));
    const found = await index.search(question);
    t.same(summary(found), ["lexical", false, "doc_1:0", "doc_1:1"]);
    t.match(found.hits[0], {
      passage: { documentId: "doc_1", title: "Refund policy", text: acme.chunks[0]!.text, tags: acme.tags },
    });
    t.ok(found.hits[0]!.score > found.hits[1]!.score);
    t.same(double.sent, [infoWords, searchWords]);
    await index.search(question);
    t.same(double.sent.slice(2), [searchWords], "the state of a complete index isn't asked again");
    t.same(ids(await index.search({ ...question, limit: 1 })), ["doc_1:0"]);
  });

  t.test(`${protocol}: vectors are asked for under the same filters and fused with the words`, async (t) => {
    const { double, index } = open(t);
    double.on(searchNear, adapted(real.near)).on(searchWords, nothing);
    t.same(summary(await index.search({ ...question, vector })), ["vector", false, "doc_1:0", "doc_1:1"]);
    t.same(summary(await index.search({ ...question, text: "", vector })), ["vector", false, "doc_1:0", "doc_1:1"]);
    const ofModel = filtered.replace("})=>", "} @model:{all\\-minilm\\:l6})=>");
    double.on([...searchNear.slice(0, 2), ofModel, ...searchNear.slice(3)], adapted(real.near));
    t.equal((await index.search({ ...question, vector, model: "all-minilm:l6" })).mode, "vector");
  });

  t.test(`${protocol}: an index that the server is still filling isn't used for words`, async (t) => {
    const { double, index } = open(t);
    const half = {
      reply: JSON.parse(JSON.stringify(info.reply).replace('"percent_indexed","1"', '"percent_indexed","0.5"')),
    };
    double.on(infoWords, half, info).on(searchWords, adapted(real.words));
    t.same(summary(await index.search(question)), ["lexical", false, "in-process"]);
    t.same(ids(await index.search(question)), ["doc_1:0", "doc_1:1"]);
    const vectors = open(t);
    vectors.double.on(infoVectors, half).on(searchWords, adapted(real.words));
    t.same(summary(await vectors.index.search({ ...question, vector })), ["lexical", true, "doc_1:0", "doc_1:1"]);
  });

  t.test(`${protocol}: a missing index is made anew, and the answer meanwhile is degraded`, async (t) => {
    const { double, index } = open(t);
    double.on(searchWords, adapted(real.words), adapted(real.missingSearch), adapted(real.words)).on(createWords, ok);
    await index.search(question);
    t.same(summary(await index.search(question)), ["lexical", true, "in-process"]);
    double.on(infoWords, adapted(real.missingInfo), info);
    t.same(summary(await index.search(question)), ["lexical", false, "doc_1:0", "doc_1:1"]);
    t.same(double.sent.slice(-4), [infoWords, createWords, infoWords, searchWords]);
    const vectors = open(t);
    vectors.double
      .on(infoVectors, adapted(real.missingInfo), info)
      .on(createVectors, ok)
      .on(searchNear, adapted(real.near))
      .on(searchWords, nothing);
    t.equal((await vectors.index.search({ ...question, vector })).mode, "vector");
  });

  t.test(`${protocol}: refused vectors leave the words, degraded`, async (t) => {
    const { double, index } = open(t);
    double.on(searchWords, adapted(real.words)).on(searchNear, adapted(real.wrongDimension));
    double.on(countAll, adapted(real.nothing)).on(countFitting, adapted(real.nothing));
    t.same(summary(await index.search({ ...question, vector })), ["lexical", true, "doc_1:0", "doc_1:1"]);
  });

  t.test(`${protocol}: no vectors at all are no failure, only vectors of another model are`, async (t) => {
    const { double, index } = open(t);
    double.on(searchWords, adapted(real.words)).on(searchNear, nothing);
    double.on(countAll, nothing).on(countFitting, nothing);
    t.same(summary(await index.search({ ...question, vector })), ["lexical", false, "doc_1:0", "doc_1:1"]);
    double.on(countAll, adapted(real.nothing, { total: 3 }));
    t.same(summary(await index.search({ ...question, vector })), ["lexical", true, "doc_1:0", "doc_1:1"]);
  });

  t.test(`${protocol}: a connection that fails rejects`, async (t) => {
    const { double, index } = open(t);
    double.on(searchWords, { error: new Error("Connection is closed.") });
    await t.rejects(index.search(question), /closed/);
  });

  t.test(`${protocol}: a passage that is gone or has lost a tag since the search is left out`, async (t) => {
    const { double, index } = open(t);
    double.on(searchWords.with(2, "@handle:{acme} @tags:{lost} @terms:(refund|dai)"), adapted(real.words));
    t.same(ids(await index.search({ ...question, tags: ["lost"] })), []);
    double.on(searchWords, {
      reply: JSON.parse(JSON.stringify(adapted(real.words).reply).replace("doc_1:0", "doc_7:0")),
    });
    t.same(ids(await index.search(question)), ["doc_1:1"]);
  });
}

t.test("a server that stopped early says so, and so does the answer", async (t) => {
  const double = new Double(t, redis).on(infoWords, adapted(recordings.RESP3.info));
  double.on(searchWords, adapted(recordings.RESP3.words, { warning: "Timeout limit was reached" }));
  const found = await new RediSearchIndex(double.redis, fallback).search(question);
  t.same(summary(found), ["lexical", true, "doc_1:0", "doc_1:1"]);
});

t.test("a query's vector is sent as 32-bit floats", async (t) => {
  t.equal(readable(encodeVector(Float32Array.of(0, 1, 0, 0, 0).subarray(1))), "AACAPwAAAAAAAAAAAAAAAA==");
});
