import process from "node:process";
import { Redis } from "ioredis";
import { MemoryIndex } from "../../core/engines/search/memory-index.ts";
import { openIndex } from "../../core/engines/search/search.ts";
import type { SearchIndex, SearchRequest } from "../../core/platform/runtime.ts";
import { type ChunkedDocument, writeDocument } from "../../fixtures/chunks.ts";
import { startRedis } from "../../fixtures/redis.ts";
import { type BenchRow, quantile } from "./figures.ts";

const documentCount = 500;
const chunksADocument = 20;
const wordsAChunk = 120;
const dimensions = 384;
const vocabulary = 30_000;
/** Number of clusters of the vectors, as embeddings of texts form them. */
const clusters = 200;
const questionCount = 400;
/** The best round counts, since other work on the machine only slows rounds down. */
const rounds = 3;
const handle = "bench";
/** Nearly half of English text. */
const glue =
  "the of and to in a is that it for as was with be by on not he this are or his from at which but have an had they you were".split(
    " ",
  );

/** Measures retrieval over 10,000 chunks of 120 words with 384 dimensions, in process, and on RediSearch if it is available. */
export async function bench(): Promise<BenchRow[]> {
  const server = await startRedis();
  const redis = new Redis(server.url);
  try {
    const stage = makeStage();
    await fill(redis, stage);
    const rows = await inProcess(redis, stage);
    return [...rows, ...(await onRediSearch(stage))];
  } finally {
    redis.disconnect();
    await server.stop();
  }
}

type Kind = "words" | "vectors" | "both";

interface Stage {
  documents: ChunkedDocument[];
  questions: { text: string; vector: Float32Array; nearest: Set<string> }[];
}

async function inProcess(redis: Redis, stage: Stage): Promise<BenchRow[]> {
  const held = await memory();
  const index = new MemoryIndex(redis);
  const load = await timed(() => index.search(request(stage.questions[0]!, "words")));
  const grown = (await memory()) - held;
  const rows = await rankings(index, stage, { words: 0.5, both: 4 });
  const changes = await changed(index, redis, stage);
  return [
    ...rows,
    { name: "knowledge in process, first question reads 10,000 chunks", value: load / 1000, unit: "s" },
    { name: "knowledge in process, question after a change of 20 chunks, p50", value: changes, unit: "ms" },
    { name: "knowledge in process, memory by its own count", value: index.bytes / 2 ** 20, unit: "MB" },
    { name: "knowledge in process, memory by the process's count", value: grown / 2 ** 20, unit: "MB" },
  ];
}

/** Empties a server with the search module first. */
async function onRediSearch(stage: Stage): Promise<BenchRow[]> {
  const url = process.env.TEST_REDISEARCH_URL;
  if (!url) return [];
  const redis = new Redis(url);
  await redis.flushall();
  const index = await openIndex(redis, { isCluster: false });
  await fill(redis, stage);
  while ((await index.search(request(stage.questions[0]!, "vectors"))).mode !== "vector") await settle();
  const rows = await rankings(index, stage, { both: 6 });
  redis.disconnect();
  return rows;
}

async function rankings(
  index: SearchIndex,
  stage: Stage,
  bars: { words?: number; both?: number },
): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const kind of ["words", "vectors", "both"] as const) {
    const best = await bestRound(index, stage, kind);
    const bar = kind === "words" ? bars.words : bars.both;
    const name = `knowledge ${index.kind}, 10,000 chunks, ${kind}`;
    rows.push({
      name: `${name}, p50`,
      value: best.p50,
      unit: "ms",
      ...(bar === undefined ? {} : { bar: `<= ${bar}` }),
    });
    rows.push({ name: `${name}, p95`, value: best.p95, unit: "ms" });
  }
  rows.push({
    name: `knowledge ${index.kind}, recall@10 against exact`,
    value: await recall(index, stage),
    unit: "",
    bar: ">= 0.99",
  });
  return rows;
}

async function bestRound(index: SearchIndex, stage: Stage, kind: Kind): Promise<{ p50: number; p95: number }> {
  const best = { p50: Number.POSITIVE_INFINITY, p95: Number.POSITIVE_INFINITY };
  for (let round = 0; round < rounds; round++) {
    const times: number[] = [];
    for (const question of stage.questions) times.push(await timed(() => index.search(request(question, kind))));
    best.p50 = Math.min(best.p50, quantile(times, 0.5));
    best.p95 = Math.min(best.p95, quantile(times, 0.95));
  }
  return best;
}

async function recall(index: SearchIndex, stage: Stage): Promise<number> {
  let found = 0;
  for (const question of stage.questions) {
    const { hits } = await index.search(request(question, "vectors"));
    found += hits.filter(({ passage }) => question.nearest.has(passage.id)).length;
  }
  return found / stage.questions.length / 10;
}

async function changed(index: SearchIndex, redis: Redis, stage: Stage): Promise<number> {
  const times: number[] = [];
  for (const document of stage.documents.slice(0, 20)) {
    await writeDocument(redis, document);
    times.push(await timed(() => index.search(request(stage.questions[0]!, "words"))));
  }
  return quantile(times, 0.5);
}

function request({ text, vector }: Stage["questions"][number], kind: Kind): SearchRequest {
  return {
    handle,
    tags: ["public"],
    limit: 10,
    text: kind === "vectors" ? "" : text,
    ...(kind === "words" ? {} : { vector: { model: "test", values: vector } }),
  };
}

function makeStage(): Stage {
  const random = randomNumbers(7);
  const centers = Array.from({ length: clusters }, () => direction(random));
  const documents = Array.from({ length: documentCount }, (_, number) => ({
    handle,
    documentId: `doc_${number}`,
    title: words(random, 6),
    tags: ["public"],
    chunks: Array.from({ length: chunksADocument }, () => ({
      heading: words(random, 3),
      text: text(random, wordsAChunk),
      vector: near(random, centers),
    })),
  }));
  const chunks = documents.flatMap(({ chunks, documentId }) =>
    chunks.map(({ vector }, part) => ({ id: `${documentId}:${part}`, vector })),
  );
  const questions = Array.from({ length: questionCount }, () => {
    const vector = near(random, centers);
    return { text: words(random, 6), vector, nearest: exact(chunks, vector) };
  });
  return { documents, questions };
}

function exact(chunks: { id: string; vector: Float32Array }[], query: Float32Array): Set<string> {
  const scored = chunks.map(({ id, vector }) => {
    let product = 0;
    for (let at = 0; at < dimensions; at++) product += vector[at]! * query[at]!;
    return { id, score: product };
  });
  scored.sort((one, other) => other.score - one.score);
  return new Set(scored.slice(0, 10).map(({ id }) => id));
}

async function fill(redis: Redis, { documents }: Stage): Promise<void> {
  for (const document of documents) await writeDocument(redis, document);
}

/** Numbers from 0 to 1, the same in every run (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Words with the frequencies of natural text: the n-th about 1 / n. */
function words(random: () => number, count: number): string {
  return Array.from({ length: count }, () => `w${Math.floor(vocabulary ** random()).toString(36)}x`).join(" ");
}

function text(random: () => number, count: number): string {
  return Array.from({ length: count }, () =>
    random() < 0.45 ? glue[Math.floor(random() * glue.length)]! : words(random, 1),
  ).join(" ");
}

function direction(random: () => number): Float32Array {
  return unit(Float32Array.from({ length: dimensions }, () => random() + random() + random() - 1.5));
}

function near(random: () => number, centers: Float32Array[]): Float32Array {
  const center = centers[Math.floor(random() * centers.length)]!;
  const noise = direction(random);
  return unit(center.map((value, at) => value + 0.8 * noise[at]!));
}

function unit(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

/** Exact if the process runs with `--expose-gc`. */
async function memory(): Promise<number> {
  for (let turn = 0; turn < 4; turn++) {
    (globalThis as { gc?: () => void }).gc?.();
    await settle();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50));
