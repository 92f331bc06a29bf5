import { Buffer } from "node:buffer";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Redis, ReplyError } from "ioredis";
import t, { type Test } from "tap";
import { readRows, readState } from "../core/engines/search/redisearch-commands.ts";
import { RediSearchIndex } from "../core/engines/search/redisearch-index.ts";
import { encodeVector } from "../core/engines/search/stored.ts";
import type { SearchIndex, SearchRequest, SearchResult } from "../core/platform/runtime.ts";
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
  | "words"
  | "nothing"
  | "wrongDimension"
  | "dropped"
  | "missingDrop";
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
const vector = { model: "test", values: Float32Array.of(1, 0, 0, 0) };

const on = ["ON", "HASH", "PREFIX", "1", "chunk:", "STOPWORDS", "0", "SCHEMA"];
const tag = ["TAG", "SEPARATOR", "\u001f", "CASESENSITIVE"];
const filters = ["handle", ...tag, "tags", ...tag, "model", ...tag];
const createWords = [
  "FT.CREATE",
  "knowledge-v3",
  ...on,
  "terms",
  "TEXT",
  "NOSTEM",
  ...filters,
  "termsVersion",
  ...tag,
  "dimensions",
  "NUMERIC",
];
const shape = ["TYPE", "FLOAT32", "DIM", "4", "DISTANCE_METRIC", "COSINE"];
const hnsw = ["VECTOR", "HNSW", "12", ...shape, "M", "16", "EF_CONSTRUCTION", "200", "EF_RUNTIME", "200"];
const createVectors = ["FT.CREATE", "knowledge-v3-4", ...on, ...filters, "vector", ...hnsw];
const scored = ["SCORER", "BM25STD", "WITHSCORES", "NOCONTENT", "LIMIT", "0", "64", "DIALECT", "2"];
const probed = "(@handle:{\\-}=>{$weight:0} @tags:{\\-}=>{$weight:0} @terms:(probe))";
const probe = ["FT.SEARCH", "knowledge-v3", probed, ...scored];
const ofAcme = "@handle:{acme}=>{$weight:0} @tags:{public\\-page\\-agent}=>{$weight:0}";
const asked = `(${ofAcme} @terms:(refund))|(${ofAcme} @terms:(dai))`;
const searchWords = ["FT.SEARCH", "knowledge-v3", asked, ...scored];
const nearest = ["SORTBY", "distance", "ASC", "NOCONTENT", "LIMIT", "0", "64", "DIALECT", "2"];
const filtered = "(@handle:{acme} @tags:{public\\-page\\-agent} @model:{test})=>[KNN 64 @vector $q AS distance]";
const searchNear = [
  "FT.SEARCH",
  "knowledge-v3-4",
  filtered,
  "PARAMS",
  "2",
  "q",
  "AACAPwAAAAAAAAAAAAAAAA==",
  ...nearest,
];
const list = ["FT._LIST"];
const infoWords = ["FT.INFO", "knowledge-v3"];
const infoVectors = ["FT.INFO", "knowledge-v3-4"];
const counted = ["LIMIT", "0", "0", "DIALECT", "2"];
const countOutdated = ["FT.SEARCH", "knowledge-v3", "@handle:{acme} -@termsVersion:{6}", ...counted];
const countAll = ["FT.SEARCH", "knowledge-v3", "@handle:{acme} @dimensions:[1 +inf]", ...counted];
const countFitting = ["FT.SEARCH", "knowledge-v3", "@handle:{acme} @model:{test} @dimensions:[4 4]", ...counted];
/** The time of all indexes, which stands still while a test runs. */
let time = 1;
const stopTime = (t: Test) => t.intercept(performance, "now", { value: () => time });
/** Lets more time pass than the state of an index is remembered. */
function passMoment(): void {
  time += 120;
}

/** A real Redis whose search commands a table answers; a command that isn't in the table fails the test. */
class Double {
  readonly sent: unknown[][] = [];
  readonly redis: Redis;
  private readonly answers = new Map<string, Answer[]>();
  private readonly hooks = new Map<string, () => Promise<void>>();

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

  /** Runs something between a command and its answer. */
  before(command: string[], hook: () => Promise<void>): void {
    this.hooks.set(JSON.stringify(command), hook);
  }

  private async answer(t: Test, command: unknown[]): Promise<unknown> {
    this.sent.push(command);
    await this.hooks.get(JSON.stringify(command))?.();
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

/** The answers were recorded with other key names, and with fields that are no longer asked for; their form stays. */
function adapted(
  { reply, error }: { reply?: unknown; error?: string },
  more: { total?: number; warning?: string } = {},
): Answer {
  if (error !== undefined) return { error };
  const renamed = JSON.parse(JSON.stringify(reply).replaceAll('"knowledge:', '"chunk:')) as unknown[];
  if (more.warning) renamed[renamed.indexOf("warning") + 1] = [more.warning];
  if (more.total !== undefined) renamed[Math.max(0, renamed.indexOf("total_results") + 1)] = more.total;
  return { reply: renamed };
}

/** The same without fields, as NOCONTENT answers: a list of keys and scores, or rows without attributes. */
function withoutFields({ reply }: Answer): Answer {
  const bare = (reply as unknown[]).filter((value) => !(Array.isArray(value) && isFields(value)));
  return { reply: bare.map((value) => (Array.isArray(value) ? value.map(bareRow) : value)) };
}

function isFields(value: unknown[]): boolean {
  return value.includes("title") && value.includes("text");
}

function bareRow(row: unknown): unknown {
  if (!Array.isArray(row) || row[0] !== "id") return row;
  const at = row.indexOf("extra_attributes");
  return at < 0 ? row : row.toSpliced(at, 2);
}

/** The reply of `FT.INFO` with another value. */
function changed(info: Answer, from: string, to: string): Answer {
  const text = JSON.stringify(info.reply);
  if (!text.includes(from)) throw new Error(`The recording lacks ${from}`);
  return { reply: JSON.parse(text.replace(from, to)) };
}

const elsewhere: SearchResult = { hits: [], mode: "lexical", degraded: false };
const fallback: SearchIndex = {
  kind: "in-process",
  fallbacks: new Map(),
  search: async () => ({ ...elsewhere, hits: [{ passage: { id: "in-process" } as never, score: 1 }] }),
  status: async () => ({ kind: "in-process", serving: "in-process" }),
  prepareVectors: async () => undefined,
  close: async () => undefined,
};
const ids = ({ hits }: SearchResult): string[] => hits.map(({ passage }) => passage.id);
const summary = (result: SearchResult): unknown[] => [result.mode, result.degraded, ...ids(result)];
const inProcess = ["lexical", false, "in-process"];

const server = await startRedis({ single: true });
const redis = new Redis(server.url);
t.teardown(async () => {
  redis.disconnect();
  await server.stop();
});
await writeDocument(redis, acme);

/** A connection of its own, to be lost. */
async function connected(t: Test): Promise<Redis> {
  const client = new Redis(server.url);
  t.teardown(() => client.disconnect());
  await client.ping();
  return client;
}

for (const protocol of ["RESP2", "RESP3"] as const) {
  const real = recordings[protocol];
  const ok = adapted(real.created);
  const nothing = adapted(real.nothing);
  const info = adapted(real.info);
  const building = changed(info, '"indexing",0', '"indexing",1');
  const outOfMemory = changed(info, '"background indexing status","OK"', '"background indexing status","OOM failure"');
  const ofOthers = changed(info, '"chunk:"', '"other:"');
  const words = withoutFields(adapted(real.words));
  const open = (t: Test) => {
    const double = new Double(t, redis).on(infoWords, info).on(infoVectors, info).on(countOutdated, nothing);
    const logged: [string, object][] = [];
    const write = (details: object, event: string) => void logged.push([event, details]);
    stopTime(t);
    const index = new RediSearchIndex(double.redis, fallback, { info: write, warn: write });
    t.teardown(() => index.close());
    return { double, index, logged };
  };

  t.test(`${protocol}: replies are read`, async (t) => {
    const near = readRows(real.near.reply, { scores: false });
    t.same(
      [near.total, near.partial, near.rows.map(({ item }) => item)],
      [2, false, ["knowledge:{acme}:doc_1:0", "knowledge:{acme}:doc_1:1"]],
    );
    t.same(
      readRows(words.reply, { scores: true }).rows.map(({ score }) => score),
      [4.06252495654226, 1.436433096887903],
    );
    t.same(readRows(real.nothing.reply, { scores: true }), { total: 0, rows: [], partial: false });
    const states = [info, building, outOfMemory, ofOthers].map(({ reply }) => readState(reply, "chunk:"));
    t.same(states, ["complete", "building", "partial", "foreign"]);
  });

  t.test(`${protocol}: the index of words is made once`, async (t) => {
    const empty = open(t);
    empty.double.on(list, adapted(real.emptyList)).on(infoWords, adapted(real.missingInfo)).on(createWords, ok);
    empty.double.on(probe, nothing);
    t.equal(await empty.index.prepare(), undefined);
    t.same(empty.double.sent, [list, infoWords, createWords, probe]);
    const made = open(t);
    made.double.on(list, { reply: ["knowledge-v3"] }).on(probe, nothing);
    t.equal(await made.index.prepare(), undefined);
    t.same(made.double.sent, [list, infoWords, probe]);
    const raced = open(t);
    raced.double.on(list, adapted(real.emptyList)).on(infoWords, adapted(real.missingInfo)).on(probe, nothing);
    raced.double.on(createWords, adapted(real.exists));
    t.equal(await raced.index.prepare(), undefined, "another process was faster");
  });

  t.test(`${protocol}: indexes of earlier versions are dropped, those of others are left alone`, async (t) => {
    const { double, index, logged } = open(t);
    const names = [
      "knowledge",
      "knowledge-v1",
      "knowledge-v1-384",
      "knowledge-v2",
      "knowledge-v3",
      "knowledge-v3-384",
      "knowledge-v4",
      "knowledge-base",
    ];
    double.on(list, { reply: names }).on(probe, nothing);
    double.on(["FT.INFO", "knowledge-v1"], ofOthers);
    for (const name of ["knowledge-v1-384", "knowledge-v2"])
      double.on(["FT.INFO", name], info).on(["FT.DROPINDEX", name], adapted(real.dropped));
    t.equal(await index.prepare(), undefined);
    t.same(logged, [
      ["knowledge.index.dropped", { index: "knowledge-v1-384" }],
      ["knowledge.index.dropped", { index: "knowledge-v2" }],
    ]);
    double.on(["FT.DROPINDEX", "knowledge-v1-384"], adapted(real.missingDrop));
    t.equal(await index.prepare(), undefined, "another process was faster");
  });

  t.test(`${protocol}: a server that can't be used isn't, one that is away rejects`, async (t) => {
    const forbidden = { error: "NOPERM User default has no permissions to run the 'ft.info' command" };
    const refusals: [command: string[], answer: Answer, reason: RegExp][] = [
      [list, { error: "ERR unknown command 'FT._LIST', with args beginning with: " }, /unknown command/],
      [createWords, { error: "Invalid field type for field `terms`" }, /Invalid field type/],
      [createWords, { error: "Cannot create index on db != 0" }, /db != 0/],
      [createWords, { error: "OOM command not allowed when used memory > 'maxmemory'." }, /OOM/],
      [infoWords, forbidden, /NOPERM/],
      [infoWords, ofOthers, /other keys/],
      [probe, { error: "Syntax error at offset 9 near acme" }, /Syntax error/],
    ];
    for (const [command, answer, reason] of refusals) {
      const { double, index } = open(t);
      double.on(list, adapted(real.emptyList)).on(infoWords, adapted(real.missingInfo)).on(createWords, ok);
      double.on(probe, nothing).on(command, answer);
      t.match(await index.prepare(), reason);
    }
    for (const error of ["LOADING Redis is loading the dataset in memory", new Error("Connection is closed.")]) {
      const { double, index } = open(t);
      double.on(list, { error });
      await t.rejects(index.prepare(), /LOADING|closed/);
    }
  });

  t.test(`${protocol}: each term is queried with weightless filters, and passages come from Redis`, async (t) => {
    const { double, index } = open(t);
    double.on(searchWords, words);
    const found = await index.search(question);
    t.same(summary(found), ["lexical", false, "doc_1:0", "doc_1:1"]);
    t.match(found.hits[0], {
      passage: { documentId: "doc_1", title: "Refund policy", text: acme.chunks[0]!.text, tags: acme.tags },
    });
    t.ok(found.hits[0]!.score > found.hits[1]!.score);
    t.same(double.sent, [infoWords, countOutdated, searchWords]);
    t.same(ids(await index.search({ ...question, limit: 1 })), ["doc_1:0"]);
    t.equal(index.fallbacks.size, 0);
  });

  t.test(`${protocol}: a word counts as often as the question says it, in each language of the texts`, async (t) => {
    const { double, index } = open(t);
    const twice = `(${ofAcme} @terms:(refund)=>{$weight:2})|(${ofAcme} @terms:(dai))`;
    double.on(searchWords.with(2, twice), words);
    t.same(ids(await index.search({ ...question, text: "refund refunds days" })), ["doc_1:0", "doc_1:1"]);
    const handle = `mixed-${protocol.toLowerCase()}`;
    for (const [documentId, text] of [
      ["doc_1", "The price of the houses and of the car"],
      ["doc_2", "Die Preise der Häuser und des Autos"],
    ])
      await writeDocument(redis, { handle, documentId: documentId!, chunks: [{ text: text! }] });
    const of = `@handle:{mixed\\-${protocol.toLowerCase()}}`;
    const both = ["hauser", "haus"].map((term) => `(${of}=>{$weight:0} @terms:(${term}))`).join("|");
    double.on(countOutdated.with(2, `${of} -@termsVersion:{6}`), nothing).on(searchWords.with(2, both), nothing);
    t.same(summary(await index.search({ handle, text: "die Häuser", tags: [], limit: 5 })), ["lexical", false]);
  });

  t.test(
    `${protocol}: a handle with terms of an earlier version is answered in process until they are new`,
    async (t) => {
      const { double, index } = open(t);
      double.on(countOutdated, adapted(real.nothing, { total: 1 }), nothing).on(searchWords, words);
      t.same(summary(await index.search(question)), inProcess);
      t.same([...index.fallbacks], [["outdated", 1]]);
      t.same(ids(await index.search(question)), ["doc_1:0", "doc_1:1"]);
    },
  );

  t.test(`${protocol}: the state of an index is remembered for a moment, and not over a reconnection`, async (t) => {
    const client = await connected(t);
    const double = new Double(t, client).on(infoWords, info).on(countOutdated, nothing).on(searchWords, words);
    stopTime(t);
    const index = new RediSearchIndex(double.redis, fallback);
    t.teardown(() => index.close());
    await Promise.all([index.search(question), index.search(question), index.search(question)]);
    const sent = double.sent.map(([command]) => command);
    t.equal(sent.filter((command) => command === "FT.INFO").length, 1, "questions that come together ask once");
    passMoment();
    double.on(infoWords, building);
    t.same(summary(await index.search(question)), inProcess, "made again by somebody meanwhile");
    passMoment();
    double.on(infoWords, info);
    t.same(summary(await index.search(question)), ["lexical", false, "doc_1:0", "doc_1:1"]);
    double.on(infoWords, building);
    client.disconnect(true);
    await once(client, "ready");
    t.same(summary(await index.search(question)), inProcess, "a restarted server reads the chunks again");
  });

  t.test(`${protocol}: a question during which the connection was lost is answered in process`, async (t) => {
    const client = await connected(t);
    const double = new Double(t, client).on(infoWords, info).on(countOutdated, nothing).on(searchWords, words);
    double.before(searchWords, async () => {
      client.disconnect(true);
      await once(client, "ready");
    });
    stopTime(t);
    const index = new RediSearchIndex(double.redis, fallback);
    t.teardown(() => index.close());
    t.same(summary(await index.search(question)), inProcess);
    t.same([...index.fallbacks], [["reconnected", 1]]);
  });

  t.test(`${protocol}: vectors are queried with the same filters and fused with the words`, async (t) => {
    const { double, index } = open(t);
    double.on(searchNear, adapted(real.near)).on(searchWords, nothing);
    t.same(summary(await index.search({ ...question, vector })), ["vector", false, "doc_1:0", "doc_1:1"]);
    t.same(summary(await index.search({ ...question, text: "", vector })), ["vector", false, "doc_1:0", "doc_1:1"]);
    const ofModel = filtered.replace("@model:{test}", "@model:{all\\-minilm\\:l6}");
    double.on([...searchNear.slice(0, 2), ofModel, ...searchNear.slice(3)], adapted(real.near));
    t.equal((await index.search({ ...question, vector: { ...vector, model: "all-minilm:l6" } })).mode, "vector");
  });

  t.test(`${protocol}: while the server fills an index, the in-process one answers as a whole`, async (t) => {
    const { double, index, logged } = open(t);
    double.on(infoWords, building, info).on(searchWords, words).on(searchNear, adapted(real.near));
    t.same(await index.status(), { kind: "redisearch", serving: "in-process", reason: "building" });
    t.same(summary(await index.search(question)), inProcess);
    t.same(logged, [["knowledge.index.fallback", { reason: "building", count: 1 }]]);
    passMoment();
    t.same(ids(await index.search(question)), ["doc_1:0", "doc_1:1"]);
    t.same(await index.status(), { kind: "redisearch", serving: "redisearch" });
    double.on(infoVectors, building);
    t.same(summary(await index.search({ ...question, vector })), inProcess, "vectors alone are not left out");
    t.same(await index.status(), { kind: "redisearch", serving: "in-process", reason: "building" });
    t.same([...index.fallbacks], [["building", 2]]);
  });

  t.test(`${protocol}: a missing index is made again, and the in-process one answers meanwhile`, async (t) => {
    const { double, index } = open(t);
    double.on(infoWords, adapted(real.missingInfo), building, info).on(createWords, ok).on(searchWords, words);
    t.same(summary(await index.search(question)), inProcess);
    passMoment();
    t.same(summary(await index.search(question)), inProcess);
    passMoment();
    t.same(summary(await index.search(question)), ["lexical", false, "doc_1:0", "doc_1:1"]);
    t.same(double.sent, [infoWords, createWords, infoWords, infoWords, countOutdated, searchWords]);
    double.on(searchWords, adapted(real.missingSearch));
    t.same(summary(await index.search(question)), inProcess, "dropped a moment ago");
    double.on(infoWords, building);
    t.same(summary(await index.search(question)), inProcess);
    t.same(
      [...index.fallbacks],
      [
        ["building", 3],
        ["missing", 1],
      ],
    );
    const vectors = open(t);
    vectors.double.on(infoVectors, adapted(real.missingInfo)).on(createVectors, ok).on(searchWords, words);
    t.same(summary(await vectors.index.search({ ...question, vector })), inProcess);
    t.ok(vectors.double.sent.some(([name, index]) => name === "FT.CREATE" && index === "knowledge-v3-4"));
  });

  t.test(`${protocol}: an index that lacks passages for want of memory isn't used`, async (t) => {
    const { double, index } = open(t);
    double.on(infoWords, outOfMemory);
    t.same(summary(await index.search(question)), inProcess);
    t.same([...index.fallbacks], [["partial", 1]]);
  });

  t.test(
    `${protocol}: what the server refuses is answered in process, degraded, and logged without words`,
    async (t) => {
      const { double, index, logged } = open(t);
      double.on(searchWords, { error: "Syntax error at offset 9 near refund" });
      for (let turn = 0; turn < 3; turn++)
        t.same(summary(await index.search(question)), ["lexical", true, "in-process"]);
      t.same(logged, [["knowledge.index.fallback", { reason: "refused", error: "Syntax error", count: 1 }]]);
      t.same([...index.fallbacks], [["refused", 3]]);
      const near = open(t);
      near.double.on(searchWords, words).on(searchNear, adapted(real.wrongDimension));
      t.same(summary(await near.index.search({ ...question, vector })), ["lexical", true, "in-process"]);
    },
  );

  t.test(`${protocol}: no vectors at all are no failure, only vectors of another model are`, async (t) => {
    const { double, index } = open(t);
    double.on(searchWords, words).on(searchNear, nothing);
    double.on(countAll, nothing).on(countFitting, nothing);
    t.same(summary(await index.search({ ...question, vector })), ["lexical", false, "doc_1:0", "doc_1:1"]);
    double.on(countAll, adapted(real.nothing, { total: 3 }));
    t.same(summary(await index.search({ ...question, vector })), ["lexical", true, "doc_1:0", "doc_1:1"]);
  });

  t.test(`${protocol}: before the first vector its index is made and those of other models go`, async (t) => {
    const { double, index, logged } = open(t);
    const others = ["knowledge-v3", "knowledge-v3-384", "knowledge-v3-8"];
    double.on(list, { reply: others }).on(createVectors, ok);
    double.on(["FT.INFO", "knowledge-v3-384"], info).on(["FT.INFO", "knowledge-v3-8"], ofOthers);
    double.on(["FT.DROPINDEX", "knowledge-v3-384"], adapted(real.dropped));
    await index.prepareVectors(4);
    t.same(logged, [
      ["knowledge.index.created", { index: "knowledge-v3-4" }],
      ["knowledge.index.dropped", { index: "knowledge-v3-384" }],
    ]);
    const made = open(t);
    made.double.on(list, { reply: ["knowledge-v3", "knowledge-v3-4"] });
    await made.index.prepareVectors(4);
    t.same(made.double.sent, [list]);
    const refused = open(t);
    refused.double.on(list, { error: "NOPERM this user has no permissions" });
    await refused.index.prepareVectors(4);
    t.match(refused.logged, [["knowledge.index.create_failed", { index: "knowledge-v3-4" }]]);
  });

  t.test(`${protocol}: a connection that fails rejects`, async (t) => {
    const { double, index } = open(t);
    double.on(searchWords, { error: new Error("Connection is closed.") });
    await t.rejects(index.search(question), /closed/);
  });

  t.test(`${protocol}: a passage that is gone or has lost a tag since the search is left out`, async (t) => {
    const { double, index } = open(t);
    double.on(searchWords.with(2, asked.replaceAll("public\\-page\\-agent", "lost")), words);
    t.same(ids(await index.search({ ...question, tags: ["lost"] })), []);
    double.on(searchWords, { reply: JSON.parse(JSON.stringify(words.reply).replace("doc_1:0", "doc_7:0")) });
    t.same(ids(await index.search(question)), ["doc_1:1"]);
  });
}

t.test("a server that stopped early says so, and the in-process index answers in full", async (t) => {
  const { info, nothing } = recordings.RESP3;
  const double = new Double(t, redis).on(infoWords, adapted(info)).on(countOutdated, adapted(nothing));
  const early = adapted(recordings.RESP3.words, { warning: "Timeout limit was reached" });
  stopTime(t);
  const index = new RediSearchIndex(double.on(searchWords, withoutFields(early)).redis, fallback);
  t.same(summary(await index.search(question)), inProcess);
  t.same([...index.fallbacks], [["partial", 1]]);
});

t.test("a query's vector is sent as 32-bit floats", async (t) => {
  t.equal(readable(encodeVector(Float32Array.of(0, 1, 0, 0, 0).subarray(1))), "AACAPwAAAAAAAAAAAAAAAA==");
});
