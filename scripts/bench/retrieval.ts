import type { ChildProcess } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { createHandle } from "../../core/account/handles.ts";
import { createDocument } from "../../core/knowledge/documents.ts";
import { queryKnowledge } from "../../core/knowledge/query.ts";
import { openRuntime } from "../../core/open.ts";
import { readEnv } from "../../core/platform/env.ts";
import type { Runtime } from "../../core/platform/runtime.ts";
import { freePort } from "../../fixtures/ports.ts";
import { startRedis } from "../../fixtures/redis.ts";
import { tokenFor } from "../../fixtures/session.ts";
import { type BenchRow, quantile } from "./figures.ts";
import { endProcess, program } from "./programs.ts";

import { libraries } from "./search-libraries.mjs";

/** A file of RETRIEVAL_SETS: documents, questions, and for each question's id the documents that answer it. */
interface JudgedSet {
  name: string;
  documents: { id: string; title: string; text: string }[];
  queries: { id: string; text: string }[];
  judgements: Record<string, string[]>;
}

/** Means over the questions of a set (Järvelin and Kekäläinen 2002; Voorhees 1999). */
interface Quality {
  ndcg: number;
  mrr: number;
  first: number;
}

const folder = process.env.RETRIEVAL_SETS ?? fileURLToPath(new URL("../../fixtures/retrieval", import.meta.url));
const DEPTH = 10;
/** The limit of `knowledge/query`. */
const MAX_QUERY_LENGTH = 2000;
const TIMED_DOCUMENTS = 1400;
const TIMED_QUESTIONS = 300;
/** Documents to submit at once. */
const BATCH = 50;

/**
 * How well `knowledge/query` ranks on judged sets, next to three libraries, and how long it takes over 1,400 documents. The sets are the
 * JSON files of the folder RETRIEVAL_SETS, else a small one of ours in five languages.
 */
export async function bench(): Promise<BenchRow[]> {
  const redis = await startRedis();
  const env = readEnv({ ...redis.env, LOG_LEVEL: "silent", BASE_URL: "http://127.0.0.1" });
  const runtime = await openRuntime(env);
  try {
    const sets = readSets();
    const qualities: Quality[] = [];
    for (const set of sets) qualities.push(await qualityOf(runtime, set));
    const rows = (await Promise.all(sets.map((set, at) => setRows(set, qualities[at]!)))).flat();
    const mrr = qualities.reduce((sum, quality) => sum + quality.mrr, 0) / sets.length;
    const mean = { name: `retrieval, mean MRR@${DEPTH}`, value: mrr, unit: "", bar: ">= 0.65" };
    return [...rows, mean, ...(await timed({ runtime, redisUrl: redis.url }, sets))];
  } finally {
    await runtime.close();
    await redis.stop();
  }
}

function readSets(): JudgedSet[] {
  const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
  const sets = files.map((name) => ({
    name: name.slice(0, -5),
    ...JSON.parse(readFileSync(join(folder, name), "utf8")),
  }));
  return sets.filter(({ queries, judgements }) => Array.isArray(queries) && judgements) as JudgedSet[];
}

async function qualityOf(runtime: Runtime, set: JudgedSet): Promise<Quality> {
  const handle = `set-${set.name.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  const ids = await furnish(runtime, handle, set.documents);
  return measured(set, async (query) => {
    const { results } = await queryKnowledge(runtime, { handle, query, limit: DEPTH, containerTags: [] });
    return results.map(({ documentId }) => ids.get(documentId)!);
  });
}

/** Creates a handle with documents; returns their ids in the set by the service's ids. */
async function furnish(
  runtime: Runtime,
  handle: string,
  documents: JudgedSet["documents"],
): Promise<Map<string, string>> {
  await createHandle(runtime, { handle, account: "acct_bench", owner: "user_1", assistant: true });
  const ids = new Map<string, string>();
  for (let at = 0; at < documents.length; at += BATCH) {
    const some = documents.slice(at, at + BATCH);
    await Promise.all(some.map(async (one) => ids.set(await accept(runtime, handle, one), one.id)));
  }
  return ids;
}

async function accept(
  runtime: Runtime,
  handle: string,
  { title, text }: JudgedSet["documents"][number],
): Promise<string> {
  const fields = { topic: "", source: "", contentType: "text/plain", containerTags: [] } as const;
  const named = { title: title.replace(/\s+/g, " ").slice(0, 300).trim() || "Untitled", content: text.trim() || title };
  const { document } = await createDocument(runtime, { handle, ...fields, containerTags: [], ...named });
  return document.documentId;
}

async function measured(
  { queries, judgements }: JudgedSet,
  search: (question: string) => Promise<string[]> | string[],
): Promise<Quality> {
  const sum = { ndcg: 0, mrr: 0, first: 0 };
  const judged = queries.filter(({ id }) => (judgements[id]?.length ?? 0) > 0);
  for (const { id, text } of judged) {
    const relevant = new Set(judgements[id]!.map(String));
    const hits = (await search(text)).slice(0, DEPTH).map((hit) => relevant.has(String(hit)));
    const first = hits.indexOf(true);
    sum.ndcg += gain(hits) / gain(Array.from({ length: Math.min(DEPTH, relevant.size) }, () => true));
    sum.mrr += first < 0 ? 0 : 1 / (first + 1);
    sum.first += first === 0 ? 1 : 0;
  }
  const mean = (value: number): number => value / judged.length;
  return { ndcg: mean(sum.ndcg), mrr: mean(sum.mrr), first: mean(sum.first) };
}

/** Discounted cumulative gain of relevant and irrelevant hits. */
function gain(hits: readonly boolean[]): number {
  return hits.reduce((sum, isRelevant, at) => sum + (isRelevant ? 1 / Math.log2(at + 2) : 0), 0);
}

async function setRows(set: JudgedSet, { ndcg, mrr, first }: Quality): Promise<BenchRow[]> {
  const others = await Promise.all(
    Object.entries(libraries).map(async ([name, open]) => ({ name, ...(await measured(set, open(set.documents))) })),
  );
  const beside = (of: keyof Quality): string => others.map((one) => `${one.name} ${one[of].toFixed(3)}`).join(", ");
  const best = Math.max(...others.map((one) => one.ndcg));
  const rank = `retrieval, ${set.name}`;
  return [
    { name: `${rank}, nDCG@${DEPTH}`, value: ndcg, unit: "", bar: `>= ${best.toFixed(3)}`, baseline: beside("ndcg") },
    { name: `${rank}, MRR@${DEPTH}`, value: mrr, unit: "", baseline: beside("mrr") },
    { name: `${rank}, P@1`, value: first, unit: "", baseline: beside("first") },
  ];
}

/** `POST …/knowledge/query` over HTTP, to a web process as an installation runs it, one question after another, once the code is warm. */
async function timed(
  { runtime, redisUrl }: { runtime: Runtime; redisUrl: string },
  sets: JudgedSet[],
): Promise<BenchRow[]> {
  const largest = sets.reduce((one, other) => (other.documents.length > one.documents.length ? other : one));
  const documents = Array.from(
    { length: TIMED_DOCUMENTS },
    (_, at) => largest.documents[at % largest.documents.length]!,
  );
  await furnish(runtime, "timed", documents);
  const web: ChildProcess[] = [];
  try {
    return await timesOf(await askerOf(runtime, redisUrl, web, largest));
  } finally {
    await Promise.all(web.map((child) => endProcess(child)));
  }
}

/** Asks the web process for the answer to the query at a place: the ms that it took. */
async function askerOf(
  runtime: Runtime,
  redisUrl: string,
  web: ChildProcess[],
  { queries }: JudgedSet,
): Promise<(at: number, limit: number) => Promise<number>> {
  const port = await freePort();
  const { BASE_URL } = runtime.env;
  await program(web, "dist/api/server.js", { REDIS_URL: redisUrl, BASE_URL, PORT: String(port) });
  const url = `http://127.0.0.1:${port}/v2/handles/timed/knowledge/query`;
  const token = await tokenFor(runtime, { userId: "user_1", seconds: 3600 });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return async (at, limit) => {
    const { text } = queries[at % queries.length]!;
    const body = JSON.stringify({ query: text.slice(0, MAX_QUERY_LENGTH), limit });
    const from = performance.now();
    const answer = await fetch(url, { method: "POST", headers, body });
    await answer.arrayBuffer();
    if (answer.status !== 200) throw new Error(`The query answered ${answer.status}`);
    return performance.now() - from;
  };
}

async function timesOf(ask: (at: number, limit: number) => Promise<number>): Promise<BenchRow[]> {
  for (let at = 0; at < TIMED_QUESTIONS; at++) await ask(at, 10);
  const rows: BenchRow[] = [];
  for (const { limit, bar } of [
    { limit: 10, bar: "<= 3" },
    { limit: 50, bar: "<= 6" },
  ]) {
    const times: number[] = [];
    for (let at = 0; at < TIMED_QUESTIONS; at++) times.push(await ask(at, limit));
    const p50 = quantile(times, 0.5);
    rows.push({ name: `knowledge/query, 1,400 documents, limit ${limit}, p50`, value: p50, unit: "ms", bar });
  }
  return rows;
}
