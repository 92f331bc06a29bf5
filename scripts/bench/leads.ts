import type { ChildProcess } from "node:child_process";
import process from "node:process";
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
import { freePort } from "../../fixtures/ports.ts";
import { startRedis } from "../../fixtures/redis.ts";
import type { BenchRow } from "./figures.ts";
import { load } from "./loads.ts";
import { endProcess, program } from "./programs.ts";

/** Ms of one round, rounds (the best counts), and leads of the export. */
const RUN_MS = 2500;
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
const exported = 100_000;

/** Lead submissions next to bare Koa that writes the same hash, whether all are stored, and the memory of a large export. */
export async function bench(): Promise<BenchRow[]> {
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
    for (const child of children) await endProcess(child, "SIGKILL");
    await redis.stop();
  }
}

async function submissions(children: ChildProcess[], redisUrl: string, runtime: Runtime): Promise<BenchRow[]> {
  const [web, bare] = [await freePort(), await freePort()];
  const open = { PUBLIC_PAGE_AGENT_ENABLED: "1", PUBLIC_LEADS_RATE: "1000000", PUBLIC_LEADS_BURST: "1000000" };
  await program(children, "dist/api/server.js", { REDIS_URL: redisUrl, PORT: String(web), ...open });
  await program(children, "scripts/bench/bare-lead.ts", { REDIS_URL: redisUrl, BENCH_PORT: String(bare) });
  const best = { web: 0, bare: 0 };
  let accepted = 0;
  for (let round = 0; round <= rounds; round++) {
    const one = await load(bare, { path: () => "/leads", body: someone, ms: RUN_MS });
    const other = await load(web, { path: () => "/v2/public/handles/acme/leads", body: someone, ms: RUN_MS });
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

function someone(): string {
  const message = "Please call me back.";
  return JSON.stringify({ email: `person${person++}@example.com`, name: "Ada Lovelace", company: "Engines", message });
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
async function exportMemory(runtime: Runtime): Promise<BenchRow> {
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
