import type { ChildProcess } from "node:child_process";
import process from "node:process";
import { createCampaign } from "../../core/campaigns/campaigns.ts";
import { fireRules } from "../../core/campaigns/rule-sends.ts";
import { createRule } from "../../core/campaigns/rules.ts";
import { openRuntime } from "../../core/open.ts";
import { readEnv } from "../../core/platform/env.ts";
import type { Runtime } from "../../core/platform/runtime.ts";
import { keys } from "../../core/store/keys.ts";
import { pipelined } from "../../core/store/redis.ts";
import { freePort } from "../../fixtures/ports.ts";
import { startRedis } from "../../fixtures/redis.ts";
import { tokenFor } from "../../fixtures/session.ts";
import { furnish, load, mail } from "./accepting.ts";
import { type BenchRow, quantile } from "./figures.ts";
import { endProcess, program } from "./programs.ts";

/** Sends of the burst, ms within which all are due, and ms from their scheduling to the first one. */
const sends = 10_000;
const minute = 60_000;
const lead = 15_000;
/** Delayed sends whose memory is measured, and jobs during which the accept route is measured. */
const far = 10_000;
const crowd = 1_000_000;
/** Ms of one round of requests, and pairs of rounds. */
const asks = 1000;
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
/** The delay of the rule, in minutes and ms. */
const delayMinutes = 15;
const delay = delayMinutes * 60_000;

/** Delayed sends of rules: the delay of a burst, the memory of a waiting send, and the effect of a million on the accept route. */
export async function bench(): Promise<BenchRow[]> {
  const children: ChildProcess[] = [];
  const stops: (() => Promise<void>)[] = [];
  try {
    return [
      ...(await burst({ children, stops }, { name: "in one minute", spreadMs: minute })),
      ...(await burst({ children, stops }, { name: "at one instant", spreadMs: 0 })).slice(0, 1),
      ...(await crowded(children, stops)),
    ];
  } finally {
    for (const child of children) await endProcess(child, "SIGKILL");
    for (const stop of stops.reverse()) await stop();
  }
}

interface Stage {
  runtime: Runtime;
  settings: Record<string, string>;
}

async function openStage(stops: (() => Promise<void>)[]): Promise<Stage> {
  const redis = await startRedis();
  stops.push(() => redis.stop());
  const settings = { REDIS_URL: redis.url, SMTP_URL: "smtp://127.0.0.1:1", EMAIL_QUOTA_PER_DAY: "100000000" };
  const runtime = await openRuntime(readEnv({ ...settings, LOG_LEVEL: "silent" }));
  stops.push(() => runtime.close());
  await furnish(runtime, "acme", { html: "<p>Hello {{name}}</p>", purpose: "PRODUCT_NOTIFICATION" });
  await furnish(runtime, "small", { html: "<p>Hello {{name}}</p>", purpose: mail.purpose });
  await createCampaign(runtime, { handle: "acme", campaignId: "cmp_main", name: "Main" });
  // Created in the past, so that recent triggers are younger than the rule.
  const earlier = { ...runtime, now: () => Date.now() - 2 * delay };
  await createRule(earlier, {
    ...{ handle: "acme", campaignId: "cmp_main", trigger: "LEAD_CAPTURED_DELAYED", delayMinutes },
    ...{ templateId: mail.templateId, senderId: mail.senderId, variableMappings: { name: "email" }, enabled: true },
  });
  return { runtime, settings };
}

/** 10,000 sends that are due together: the delay of each until it is in the mail queue. One worker does it. */
async function burst(
  { children, stops }: { children: ChildProcess[]; stops: (() => Promise<void>)[] },
  { name, spreadMs }: { name: string; spreadMs: number },
): Promise<BenchRow[]> {
  const { runtime, settings } = await openStage(stops);
  const leads = await makeLeads(runtime, sends + far);
  const outside = { ...runtime, sendsAheadMs: 0 };
  const farRoom = await room(runtime, far, () => schedule(outside, leads.slice(sends), soon));
  const first = Date.now() + lead;
  const due = new Map(leads.slice(0, sends).map((leadId, at) => [leadId, first + Math.floor((at * spreadMs) / sends)]));
  await schedule(runtime, [...due.keys()], (id) => due.get(id) as number);
  const scheduled = Date.now();
  const worker = await program(children, "dist/workers/main.js", { ...settings, WORKER_QUEUES: "campaigns" });
  const late = await lateness(runtime, due);
  await endProcess(worker);
  const baseline = `p50 ${quantile(late, 0.5)} ms, slowest ${quantile(late, 1)} ms; first due ${first - scheduled} ms after the last was scheduled`;
  return [
    {
      name: `rules: lateness p99 of 10,000 sends due ${name}`,
      value: quantile(late, 0.99),
      unit: "ms",
      ...(spreadMs > 0 ? { bar: "<= 5000" } : {}),
      baseline,
    },
    { name: "rules: Redis for a send that waits outside the queue", value: farRoom, unit: "bytes", bar: "<= 1024" },
  ];
}

const soon = (): number => Date.now() + delay;

async function makeLeads({ redis }: Runtime, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, at) => `lead_${String(at).padStart(22, "0")}`);
  for (let from = 0; from < count; from += 1000)
    await pipelined(redis, (pipeline) => {
      for (const leadId of ids.slice(from, from + 1000)) {
        const value = { leadId, status: "ACCEPTED", email: `${leadId}@far.example`, fields: {}, captures: {} };
        pipeline.hset(keys.lead("acme", leadId), { version: 1, json: JSON.stringify(value) });
      }
    });
  return ids;
}

/** Delivers the trigger of each lead so that its send is due at this instant. */
async function schedule(runtime: Runtime, leads: string[], due: (leadId: string) => number): Promise<void> {
  const common = { handle: "acme", campaignId: "cmp_main", trigger: "LEAD_CAPTURED" as const };
  for (let from = 0; from < leads.length; from += 50)
    await Promise.all(
      leads
        .slice(from, from + 50)
        .map((leadId) => fireRules(runtime, { ...common, leadId, triggerId: leadId, at: due(leadId) - delay })),
    );
}

/** Bytes of Redis per send, once `count` sends are scheduled and their outbox is empty. */
async function room(runtime: Runtime, count: number, work: () => Promise<void>): Promise<number> {
  const before = await usedMemory(runtime);
  await work();
  while ((await runtime.redis.exists(keys.outbox("acme"))) > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  return ((await usedMemory(runtime)) - before) / count;
}

async function usedMemory({ redis }: Runtime): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1]);
}

/** Ms from each send's time to the acceptance of its message; each was accepted once. */
async function lateness({ redis }: Runtime, due: Map<string, number>): Promise<number[]> {
  const last = Math.max(...due.values()) + 2 * minute;
  while ((await redis.zcard(keys.messages("acme"))) < due.size) {
    if (Date.now() > last) throw new Error(`${await redis.zcard(keys.messages("acme"))} of ${due.size} were sent.`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  const found = await redis.zrange(keys.messages("acme"), "0", "-1", "WITHSCORES");
  const ids = found.filter((_, at) => at % 2 === 0);
  const rows = (await pipelined(redis, (pipeline) => {
    for (const id of ids) pipeline.hget(keys.message("acme", id), "json");
  })) as string[];
  const leads = rows.map((json) => (JSON.parse(json) as { recipients: string[] }).recipients[0]?.split("@")[0] ?? "");
  if (new Set(leads).size !== due.size || leads.length !== due.size) throw new Error("A send was lost or doubled.");
  return leads.map((leadId, at) => Number(found[at * 2 + 1]) - (due.get(leadId) as number));
}

/** Two services, one with a million waiting sends. Their accept routes are measured alternately, and the best round of each counts. */
async function crowded(children: ChildProcess[], stops: (() => Promise<void>)[]): Promise<BenchRow[]> {
  const [calm, full] = [await openStage(stops), await openStage(stops)];
  const bytes = await fill(full.runtime);
  // Some of them with leads: the table of 2^20 keys must not resize during the measurement.
  await makeLeads(full.runtime, 100_000);
  const [calmly, fully] = [await serve(children, calm), await serve(children, full)];
  await calmly();
  await fully();
  const best = { calm: 0, full: 0 };
  for (let pair = 0; pair < 5 * rounds; pair++) {
    best.calm = Math.max(best.calm, await calmly());
    best.full = Math.max(best.full, await fully());
  }
  return [
    { name: "rules: Redis for a send that waits as a job, of a million", value: bytes, unit: "bytes", bar: "<= 1024" },
    {
      name: "rules: accept route beside a million waiting sends / without them",
      value: best.full / best.calm,
      unit: "",
      bar: ">= 0.9",
      baseline: `${Math.round(best.full)}/s, without them ${Math.round(best.calm)}/s`,
    },
  ];
}

async function serve(children: ChildProcess[], { runtime, settings }: Stage): Promise<() => Promise<number>> {
  const port = await freePort();
  const BASE_URL = `http://127.0.0.1:${port}`;
  await program(children, "dist/api/server.js", { ...settings, PORT: String(port), BASE_URL });
  const token = await tokenFor({ ...runtime, env: { ...runtime.env, BASE_URL } }, { userId: "user_1", seconds: 3600 });
  return () => load(port, "/v2/handles/small/email/messages", { token, ms: asks });
}

/** Copies one real waiting send in place, each copy with its own ids. Returns the bytes per send. */
async function fill(runtime: Runtime): Promise<number> {
  const { redis, queues } = runtime;
  const [leadId = ""] = await makeLeads(runtime, 1);
  await room(runtime, 1, () => schedule(runtime, [leadId], soon));
  const queue = queues.queue("campaigns");
  const [{ id = "", data } = { data: {} }] = await queue.getDelayed();
  const { ruleId = "" } = data;
  const names = [
    queue.toKey(id),
    queue.toKey("delayed"),
    keys.ruleSends("acme", ruleId),
    keys.ruleCounts("acme", ruleId),
  ];
  const before = await usedMemory(runtime);
  for (let from = 1; from <= crowd; from += 20_000)
    await redis.eval(copies, names.length, ...names, leadId, from, 20_000);
  return ((await usedMemory(runtime)) - before) / crowd;
}

const copies = `
  local fields, count = redis.call('HGETALL', KEYS[1]), tonumber(ARGV[3])
  local score = tonumber(redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2])
  for at = tonumber(ARGV[2]), tonumber(ARGV[2]) + count - 1 do
    local lead = 'lead_' .. string.format('%022d', at)
    local copy = {}
    for place = 1, #fields do copy[place] = string.gsub(fields[place], ARGV[1], lead) end
    local id = string.format('%012d', at)
    redis.call('HSET', string.sub(KEYS[1], 1, -13) .. id, unpack(copy))
    redis.call('ZADD', KEYS[2], score + at * 4096, id)
    redis.call('HSET', KEYS[3], lead, 'waiting')
  end
  redis.call('HINCRBY', KEYS[4], 'waiting', count)`;
