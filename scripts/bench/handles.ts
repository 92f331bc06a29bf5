import process from "node:process";
import { Redis } from "ioredis";
import { MAX_BYTES, MemoryIndex } from "../../core/engines/search/memory-index.ts";
import { writeDocument } from "../../fixtures/chunks.ts";
import { startRedis } from "../../fixtures/redis.ts";
import { type BenchRow, quantile } from "./figures.ts";

const handles = 1000;
const chunks = 100;
const dimensions = 384;
/** Handles of a later round: fewer than fit in one process. */
const asked = 50;

/** A thousand handles with a hundred chunks each in one process: the cost of the first question of each, and of a later one. */
export async function bench(): Promise<BenchRow[]> {
  const server = await startRedis();
  const redis = new Redis(server.url);
  try {
    for (let at = 0; at < handles; at++) await writeDocument(redis, documentOf(at));
    return await measure(new MemoryIndex(redis));
  } finally {
    redis.disconnect();
    await server.stop();
  }
}

async function measure(index: MemoryIndex): Promise<BenchRow[]> {
  const from = process.memoryUsage().rss;
  const first = await ask(index, 0, handles);
  const { bytes } = index;
  const grown = process.memoryUsage().rss - from;
  // The handles that were asked last are cached; the first ones were evicted.
  const held = await ask(index, handles - asked, handles);
  const evicted = await ask(index, 0, asked);
  const what = `${handles} handles of ${chunks} chunks in one process`;
  const counted = `${(grown / 2 ** 20).toFixed(0)} MB by the process's count`;
  return [
    {
      name: `${what}, memory`,
      value: bytes / 2 ** 20,
      unit: "MB",
      bar: `<= ${MAX_BYTES / 2 ** 20}`,
      baseline: counted,
    },
    { name: `${what}, first question, p50`, value: quantile(first, 0.5), unit: "ms" },
    { name: `${what}, first question, p99`, value: quantile(first, 0.99), unit: "ms" },
    { name: `${what}, question to a handle that is held, p50`, value: quantile(held, 0.5), unit: "ms" },
    { name: `${what}, question to a handle that was evicted, p50`, value: quantile(evicted, 0.5), unit: "ms" },
  ];
}

/** Ms of one question to each of these handles, in order of time taken. */
async function ask(index: MemoryIndex, first: number, end: number): Promise<number[]> {
  const times: number[] = [];
  for (let at = first; at < end; at++) {
    const from = performance.now();
    const request = {
      handle: `h${at}`,
      tags: ["public"],
      limit: 10,
      text: textOf(at, 7),
      vector: { model: "test", values: vectorOf(at, 7) },
    };
    const { hits } = await index.search(request);
    if (hits.length === 0) throw new Error(`Nothing was found at h${at}.`);
    times.push(performance.now() - from);
  }
  return times.sort((one, other) => one - other);
}

function documentOf(at: number): Parameters<typeof writeDocument>[1] {
  const of = Array.from({ length: chunks }, (_, chunk) => ({
    heading: `Part ${chunk}`,
    text: Array.from({ length: 10 }, (_, line) => textOf(at, chunk * 10 + line)).join(" "),
    vector: vectorOf(at, chunk),
  }));
  return { handle: `h${at}`, documentId: "doc_1", title: `Document ${at}`, tags: ["public"], chunks: of };
}

/** Twelve words of a vocabulary of some thousand, different for each place. */
function textOf(handle: number, place: number): string {
  return Array.from(
    { length: 12 },
    (_, at) => `w${((handle * 7919 + place * 104729 + at * 1299709) % 5003).toString(36)}`,
  ).join(" ");
}

function vectorOf(handle: number, chunk: number): Float32Array {
  const vector = Float32Array.from({ length: dimensions }, (_, at) => Math.sin(handle * 31 + chunk * 17 + at * 7));
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}
