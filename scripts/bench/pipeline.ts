import type { ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { createHandle } from "../../core/account/handles.ts";
import { openRuntime } from "../../core/open.ts";
import { readEnv } from "../../core/platform/env.ts";
import { type ModelServer, type OddDelta, startModelServer } from "../../fixtures/model-server.ts";
import { publishPage } from "../../fixtures/pages.ts";
import { freePort } from "../../fixtures/ports.ts";
import { startRedis } from "../../fixtures/redis.ts";
import { type BenchRow, quantile } from "./figures.ts";
import { endProcess, program } from "./programs.ts";

const streams = 200;
const sentences = 12;
/** Ms between two words of a model, in the mean: streams don't keep step with each other. */
const pace = 80;
/** Sentences of each stream that are not counted: the questions themselves, which all come within a second, delay them. */
const unmeasured = 4;
const facts = Array.from({ length: sentences }, (_, at) => `Hall ${at + 3} of the house seats ${(at + 1) * 37} people`);

/**
 * Streams through everything that a visitor's answer passes: model, worker, grounding, relay, web process, reader. Measures the
 * time from the model's last word of a sentence to the reader of that sentence; the baseline reads the model directly.
 */
export async function bench(): Promise<BenchRow[]> {
  const children: ChildProcess[] = [];
  const redis = await startRedis();
  const told = new Map<string, number>();
  const model = await startModelServer({ deltas: (prompt) => words(askerIn(prompt), told) });
  try {
    const direct = await readAll((asker) => askModel(model, asker), told, true);
    const url = await openService(children, { REDIS_URL: redis.url, OLLAMA_HOST: model.url });
    // Only warm processes are measured.
    await readAll((asker) => askService(url, asker), told, false);
    const whole = await readAll((asker) => askService(url, asker), told, false);
    return rows(direct, whole);
  } finally {
    for (const child of children) await endProcess(child);
    await model.close();
    await redis.stop();
  }
}

/** Publishes a page and starts a web process and a worker. Returns the address of the web process. */
async function openService(children: ChildProcess[], redis: Record<string, string>): Promise<string> {
  const port = String(await freePort());
  const BASE_URL = `http://127.0.0.1:${port}`;
  const agent = { PUBLIC_PAGE_AGENT_ENABLED: "1", PUBLIC_PAGE_AGENT_MODEL_ID: "scripted:chat" };
  const limits = { GENERATION_CONCURRENCY: "256", PUBLIC_PAGE_AGENT_RATE: "10000", PUBLIC_PAGE_AGENT_BURST: "10000" };
  const settings = { ...redis, ...agent, ...limits, BASE_URL, PORT: port };
  const runtime = await openRuntime(readEnv({ ...settings, LOG_LEVEL: "silent" }));
  await createHandle(runtime, { handle: "acme", account: "acct_acme", owner: "user_acme", assistant: true });
  const page = { handle: "acme", pageSlug: "halls", title: "Halls" };
  await publishPage(runtime, { ...page, content: `<h1>Halls</h1><p>${facts.join(". ")}.</p>` });
  await runtime.close();
  await program(children, "dist/api/server.js", settings);
  await program(children, "dist/workers/main.js", { ...settings, WORKER_QUEUES: "generation" });
  return BASE_URL;
}

/** The words of an answer at the model's pace. Notes when the last word of each sentence was written. */
function* words(asker: string, told: Map<string, number>): Generator<OddDelta> {
  yield 1 + Math.random() * 10 * pace;
  for (const [at, fact] of facts.entries())
    for (const word of `${fact}. [1]\n`.split(/(?<= )/)) {
      if (word.endsWith("\n")) told.set(`${asker}:${at}`, performance.now());
      yield { content: word };
      yield 1 + Math.random() * 2 * pace;
    }
}

function askerIn(prompt: string): string {
  return /visitor (\d+)/.exec(prompt)?.[1] ?? "";
}

function questionOf(asker: number): string {
  return `How many people does each hall seat, asks visitor ${asker}?`;
}

function askModel({ url }: ModelServer, asker: number): Promise<Response> {
  const messages = [{ role: "user", content: questionOf(asker) }];
  const body = JSON.stringify({ model: "scripted:chat", messages, options: { num_ctx: 2048 } });
  return fetch(`${url}/api/chat`, { method: "POST", body });
}

function askService(url: string, asker: number): Promise<Response> {
  const messages = [{ id: "1", role: "user", parts: [{ type: "text", text: questionOf(asker) }] }];
  return fetch(`${url}/v2/public/pages/acme/halls/agentic-chat`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ messages }),
  });
}

/** Ms from each sentence's last word at the model to its reader. */
async function readAll(
  ask: (asker: number) => Promise<Response>,
  told: Map<string, number>,
  isDirect: boolean,
): Promise<number[]> {
  told.clear();
  const delays = await Promise.all(
    Array.from({ length: streams }, async (_, asker) => {
      await sleep(asker * 5);
      return readOne(await ask(asker), isDirect, (at) => told.get(`${asker}:${at}`) as number);
    }),
  );
  return delays.flat();
}

async function readOne(answer: Response, isDirect: boolean, told: (sentence: number) => number): Promise<number[]> {
  const delays: number[] = [];
  let text = "";
  let rest = "";
  let seen = 0;
  const decoder = new TextDecoder();
  for await (const bytes of answer.body as ReadableStream<Uint8Array>) {
    const piece = decoder.decode(bytes, { stream: true });
    const whole = (rest + piece).lastIndexOf("\n") + 1;
    text += contentOf((rest + piece).slice(0, whole));
    rest = (rest + piece).slice(whole);
    // The model's number of the passage is not shown by the service.
    for (; new RegExp(`\\b${(seen + 1) * 37} people\\.${isDirect ? " \\[1" : ""}`).test(text); seen++)
      if (seen >= unmeasured) delays.push(performance.now() - told(seen));
  }
  if (seen !== sentences) throw new Error(`${seen} of ${sentences} sentences arrived: ${text.slice(-300)}`);
  return delays;
}

/** The text of the deltas in some lines of a stream, of the model's own lines or of the service's events. */
function contentOf(lines: string): string {
  return [...lines.matchAll(/"(?:content|delta)":("(?:[^"\\]|\\.)*")/g)].map(([, json]) => JSON.parse(json!)).join("");
}

function rows(direct: number[], whole: number[]): BenchRow[] {
  return (
    [
      ["p50", 0.5, "<= 10"],
      ["p99", 0.99, "<= 60"],
    ] as const
  ).map(([name, share, bar]) => ({
    name: `answers of ${streams} streams, a sentence from model to reader, added ${name}`,
    value: quantile(whole, share) - quantile(direct, share),
    unit: "ms",
    bar,
    baseline: `direct ${quantile(direct, share).toFixed(1)}, through the service ${quantile(whole, share).toFixed(1)}`,
  }));
}
