import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { leadsCsv } from "../../api/leads-csv.ts";
import { createHandle } from "../../core/account/handles.ts";
import { exportLeads } from "../../core/leads/leads.ts";
import { openRuntime } from "../../core/open.ts";
import { readEnv } from "../../core/platform/env.ts";
import type { Runtime } from "../../core/platform/runtime.ts";
import { keys } from "../../core/store/keys.ts";
import { pipelined } from "../../core/store/redis.ts";
import { freePort, startRedis } from "../../fixtures/redis.ts";
import type { RelayRow } from "./relay.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Concurrent submissions, ms of one round, rounds (the best counts), and leads of the export. */
const inFlight = 32;
const RUN_MS = 2500;
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
const exported = 100_000;

/** Lead submissions next to bare Koa that writes the same hash, whether all are stored, and the memory of a large export. */
export async function bench(): Promise<RelayRow[]> {
  const redis = await startRedis({ appendonly: true });
  const children: ChildProcess[] = [];
  try {
    const env = readEnv({ REDIS_URL: redis.url, LOG_LEVEL: "silent" });
    const runtime = await openRuntime(env);
    for (const handle of ["acme", "large"])
      await createHandle(runtime, { handle, account: "acct_acme", owner: "user_1", assistant: true });
    const rows = [...(await submissions(children, redis.url, runtime)), await exportMemory(runtime)];
    await runtime.close();
    return rows;
  } finally {
    for (const child of children) await end(child);
    await redis.stop();
  }
}

async function submissions(children: ChildProcess[], redisUrl: string, runtime: Runtime): Promise<RelayRow[]> {
  const [web, bare] = [await freePort(), await freePort()];
  const open = { PUBLIC_PAGE_AGENT_ENABLED: "1", PUBLIC_LEADS_RATE: "1000000", PUBLIC_LEADS_BURST: "1000000" };
  await start(children, "dist/api/server.js", { REDIS_URL: redisUrl, PORT: String(web), ...open });
  await start(children, "scripts/bench/bare-lead.ts", { REDIS_URL: redisUrl, BENCH_PORT: String(bare) });
  const best = { web: 0, bare: 0 };
  let accepted = 0;
  for (let round = 0; round <= rounds; round++) {
    const one = await load(bare, "/leads");
    const other = await load(web, "/v2/public/handles/acme/leads");
    accepted += other.answers;
    if (round === 0) continue;
    best.bare = Math.max(best.bare, one.perSecond);
    best.web = Math.max(best.web, other.perSecond);
  }
  const kept = await runtime.redis.zcard(keys.leads("acme"));
  const baseline = `${Math.round(best.web)}/s, bare Koa ${Math.round(best.bare)}/s`;
  return [
    { name: "lead submissions / bare Koa", value: best.web / best.bare, unit: "", bar: ">= 0.3", baseline },
    {
      name: "accepted leads that are not there",
      value: accepted - kept,
      unit: "",
      bar: "<= 0",
      baseline: `${accepted} accepted`,
    },
  ];
}

let person = 0;

async function load(port: number, path: string): Promise<{ answers: number; perSecond: number }> {
  const agent = new Agent({ keepAlive: true, maxSockets: inFlight });
  const begun = performance.now();
  let answers = 0;
  const ask = async (): Promise<void> => {
    while (performance.now() - begun < RUN_MS) {
      const body = JSON.stringify({
        email: `person${person++}@example.com`,
        name: "Ada Lovelace",
        company: "Engines",
        message: "Please call me back.",
      });
      if ((await post(agent, { port, path, body })) === 202) answers++;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, ask));
  agent.destroy();
  return { answers, perSecond: (answers * 1000) / (performance.now() - begun) };
}

function post(agent: Agent, to: { port: number; path: string; body: string }): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "content-length": to.body.length };
    const asked = request(
      { agent, host: "127.0.0.1", port: to.port, path: to.path, method: "POST", headers },
      (answer) => {
        answer.resume().once("end", () => resolve(answer.statusCode ?? 0));
      },
    );
    asked.once("error", reject).end(to.body);
  });
}

/** Memory after a garbage collection. */
function liveBytes(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Live memory that the last 80,000 leads of a CSV of 100,000 add to that of the first 20,000. */
async function exportMemory(runtime: Runtime): Promise<RelayRow> {
  for (let from = 0; from < exported; from += 1000) await fill(runtime, from);
  const { body } = leadsCsv(exportLeads(runtime, { handle: "large" }));
  const seen: number[] = [];
  let bytes = 0;
  for await (const part of body as AsyncIterable<string>) {
    bytes += part.length;
    seen.push(liveBytes());
  }
  const early = Math.max(...seen.slice(0, seen.length / 5));
  const value = (Math.max(...seen) - early) / 1e6;
  const baseline = `${(bytes / 1e6).toFixed(1)} MB of CSV`;
  return {
    name: "export of 100,000 leads, live memory after the first fifth",
    value,
    unit: "MB",
    bar: "<= 16",
    baseline,
  };
}

async function fill({ redis }: Runtime, from: number): Promise<void> {
  await pipelined(redis, (pipeline) => {
    for (let at = from; at < from + 1000; at++) {
      const lead = {
        leadId: `lead_${at}`,
        status: "ACCEPTED",
        email: `p${at}@example.com`,
        name: "Ada Lovelace",
        message: "x".repeat(200),
        fields: { size: "M" },
        captures: {},
      };
      pipeline
        .hset(keys.lead("large", lead.leadId), { version: 1, json: JSON.stringify(lead) })
        .zadd(keys.leads("large"), at, lead.leadId);
    }
  });
}

async function start(children: ChildProcess[], file: string, env: Record<string, string>): Promise<void> {
  const loader = file.endsWith(".ts") ? ["--import", "tsx"] : [];
  const child = spawn(process.execPath, [...loader, file], {
    cwd: root,
    env: { PATH: process.env.PATH ?? "", LOG_LEVEL: "info", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  let said = "";
  for await (const part of child.stdout as AsyncIterable<Buffer>) {
    said += part;
    if (said.includes(".ready")) break;
  }
  child.stdout?.resume();
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.table(await bench());
