import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";
import process from "node:process";
import { createHandle } from "../../core/account/handles.ts";
import { readEnv } from "../../core/platform/env.ts";
import { openRuntime } from "../../core/open.ts";
import { createPage } from "../../core/pages/pages.ts";
import { startModelServer } from "../../fixtures/model-server.ts";
import { startRedis } from "../../fixtures/redis.ts";

/** One measured figure beside its bar. */
interface Figure {
  name: string;
  value: number;
  unit: string;
  bar: string;
  baseline?: string;
}

const asks = 200;
const reply = "A cargo bike costs 39 EUR a day. It is insured.";

/** Ms that the service adds before the first words of a model's answer, when idle; web and worker are processes of their own. */
export async function bench(): Promise<Figure[]> {
  const redis = await startRedis();
  const model = await startModelServer({ reply: () => reply });
  const port = await freePort();
  const env = {
    REDIS_URL: redis.url,
    PORT: String(port),
    BASE_URL: `http://127.0.0.1:${port}`,
    LOG_LEVEL: "silent",
    PUBLIC_PAGE_AGENT_ENABLED: "1",
    PUBLIC_PAGE_AGENT_RATE: "100000",
    PUBLIC_PAGE_AGENT_BURST: "100000",
    OLLAMA_HOST: model.url,
    PUBLIC_PAGE_AGENT_MODEL_ID: "scripted:chat",
  };
  await furnish(env);
  const children = ["dist/api/server.js", "dist/workers/main.js"].map((file) =>
    spawn(process.execPath, [file], { env: { ...process.env, ...env }, stdio: "inherit" }),
  );
  try {
    await ready(env.BASE_URL);
    const chat = `${env.BASE_URL}/v2/public/pages/acme/bikes/agentic-chat`;
    const question = {
      messages: [{ id: "1", role: "user", parts: [{ type: "text", text: "How much is a cargo bike?" }] }],
    };
    const request = {
      model: "scripted:chat",
      messages: [{ role: "user", content: "x" }],
      options: { num_ctx: 8192 },
      stream: true,
    };
    for (let warm = 0; warm < 30; warm++) await firstWords(chat, question, "text-delta");
    const direct: number[] = [];
    const through: number[] = [];
    for (let turn = 0; turn < asks; turn++) {
      direct.push(await firstWords(`${model.url}/api/chat`, request, "message"));
      through.push(await firstWords(chat, question, "text-delta"));
    }
    return figures(direct, through);
  } finally {
    await Promise.all(children.map(end));
    await model.close();
    await redis.stop();
  }
}

function figures(direct: number[], through: number[]): Figure[] {
  const at = (list: number[], share: number): number =>
    [...list].sort((one, other) => one - other)[Math.floor(list.length * share)] as number;
  return [0.5, 0.99].map((share) => ({
    name: `first words, idle, added p${share * 100}`,
    value: Number((at(through, share) - at(direct, share)).toFixed(2)),
    unit: "ms",
    bar: share === 0.5 ? "<= 15" : "",
    baseline: `direct ${at(direct, share).toFixed(2)} ms`,
  }));
}

async function firstWords(url: string, body: object, mark: string): Promise<number> {
  const started = performance.now();
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  let seen = "";
  let took = 0;
  for await (const part of answer.body as unknown as AsyncIterable<Uint8Array>) {
    seen += new TextDecoder().decode(part);
    if (took === 0 && seen.includes(mark)) took = performance.now() - started;
  }
  if (took === 0) throw new Error(`No words in ${seen.slice(0, 500)}`);
  return took;
}

async function furnish(env: Record<string, string>): Promise<void> {
  const runtime = await openRuntime(readEnv(env));
  await createHandle(runtime, { handle: "acme", account: "acct_acme", owner: "user_acme", assistant: true });
  const content =
    "<h1>Bikes</h1><h2>Prices</h2><p>A city bike costs 14 EUR a day. A cargo bike costs 39 EUR a day.</p>";
  await createPage(runtime, {
    handle: "acme",
    pageSlug: "bikes",
    title: "Bikes",
    content,
    status: "PUBLISHED",
    accessMode: "PUBLIC",
    template: "html_render",
    description: "",
    teaser: "",
  });
  await runtime.close();
}

async function ready(base: string): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const answer = await fetch(`${base}/readyz`).catch(() => undefined);
    if (answer?.ok && ((await answer.json()) as { queuesWithoutWorker: string[] }).queuesWithoutWorker.length === 0)
      return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("The service did not become ready.");
}

function end(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    child.kill("SIGTERM");
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}

if (import.meta.url === `file://${process.argv[1]}`) console.table(await bench());
