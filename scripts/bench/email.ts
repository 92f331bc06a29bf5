import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { acceptMessage } from "../../core/email/acceptance.ts";
import { openRuntime } from "../../core/open.ts";
import { readEnv } from "../../core/platform/env.ts";
import type { Runtime } from "../../core/platform/runtime.ts";
import { freePort } from "../../fixtures/ports.ts";
import { startRedis } from "../../fixtures/redis.ts";
import { tokenFor } from "../../fixtures/session.ts";
import { furnish, load, mail } from "./accepting.ts";
import type { DeliveryLog } from "./email-process.ts";
import type { BenchRow } from "./figures.ts";
import { endProcess, messenger, program } from "./programs.ts";

/** Mails of a throughput round, uncounted first ones, connections to the mail server, and rounds, the best of which counts. */
const mails = 2500;
const unmeasured = 500;
const connections = 10;
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
/** Queued mails of the one handle in the fairness run, and mails of the crash loop. */
const backlog = 10_000;
const crashing = 2000;

const paragraph = `<p style="margin:0 0 12px">Hello {{name}}, this is an ordinary paragraph of a mail – with a <a href="https://acme.example/{{name}}">link</a> and äöü in it.</p>\n`;
const html = `<html><body>${paragraph.repeat(Math.ceil(10_000 / paragraph.length))}</body></html>`;

const sending = { html, purpose: mail.purpose };

/** Mail: throughput of one worker next to nodemailer's own pool, the accept route next to bare Koa, fairness, and the crash loop. */
export async function bench(): Promise<BenchRow[]> {
  const redis = await startRedis();
  const children: ChildProcess[] = [];
  const stage = await openStage(redis.url, children);
  try {
    return [
      ...(await throughput(stage)),
      ...(await acceptance(stage)),
      ...(await fairness(stage)),
      ...(await crashes(stage)),
    ];
  } finally {
    await Promise.all(children.map((child) => endProcess(child)));
    await stage.runtime.close();
    await redis.stop();
  }
}

interface Stage {
  children: ChildProcess[];
  redisUrl: string;
  runtime: Runtime;
  sink: ChildProcess;
  smtpPort: number;
  settings: Record<string, string>;
}

async function openStage(redisUrl: string, children: ChildProcess[]): Promise<Stage> {
  const [sink, smtpPort] = await messenger<number>(children, "email-process.ts", {}, ["sink"]);
  const settings = {
    ...{ REDIS_URL: redisUrl, BASE_URL: "http://service.test", LOG_LEVEL: "info", EMAIL_QUOTA_PER_DAY: "100000000" },
    SMTP_URL: `smtp://127.0.0.1:${smtpPort}?maxConnections=${connections}`,
  };
  const runtime = await openRuntime(readEnv({ ...settings, LOG_LEVEL: "silent" }));
  for (const handle of ["big", "small"]) await furnish(runtime, handle, sending);
  return { children, redisUrl, runtime, sink, smtpPort, settings };
}

/** Queues mails to one recipient each. */
async function queue(runtime: Runtime, handle: string, count: number): Promise<void> {
  for (let at = 0; at < count; at += 100) {
    const batch = Array.from({ length: Math.min(100, count - at) }, (_, n) => `${handle}${at + n}@far.example`);
    await Promise.all(batch.map((to) => acceptMessage(runtime, { ...mail, handle, to: [to] })));
  }
}

/** Signed 10 KB mails per second: one worker process and nodemailer's pool, alternately. */
async function throughput(stage: Stage): Promise<BenchRow[]> {
  const best = { worker: 0, pool: 0 };
  for (let round = 0; round < rounds; round++) {
    best.pool = Math.max(best.pool, await poolRate(stage));
    await queue(stage.runtime, "big", mails);
    await begin(stage);
    const worker = await startWorker(stage);
    best.worker = Math.max(best.worker, await rate(stage));
    await endProcess(worker, "SIGTERM");
  }
  const beside = `nodemailer's pool ${Math.round(best.pool)}/s, ${connections} connections each`;
  return [
    { name: "email: signed 10 KB mails, one worker", value: best.worker, unit: "/s", bar: ">= 100", baseline: beside },
    {
      name: "email: the same / nodemailer's pool",
      value: best.worker / best.pool,
      unit: "",
      bar: ">= 0.9",
      baseline: beside,
    },
  ];
}

async function poolRate(stage: Stage): Promise<number> {
  const content = html.replaceAll("{{name}}", "Ann");
  const settings = {
    BENCH_SMTP: String(stage.smtpPort),
    BENCH_HTML: content,
    BENCH_CONNECTIONS: String(connections),
  };
  const [child] = await messenger(stage.children, "email-process.ts", settings, ["pool"]);
  await begin(stage);
  child.send(mails);
  const found = await rate(stage);
  await endProcess(child);
  return found;
}

/** Mails per second that the sink has received, without the first ones. */
async function rate(stage: Stage): Promise<number> {
  const taken = await until(stage, mails);
  const [from, to] = [taken[unmeasured]?.[0] ?? 0, taken[mails - 1]?.[0] ?? 0];
  return ((mails - 1 - unmeasured) * 1000) / (to - from);
}

async function begin({ sink }: Stage): Promise<void> {
  sink.send("begin");
  await once(sink, "message");
}

async function until({ sink }: Stage, count: number, ms = 120_000): Promise<DeliveryLog> {
  const late = Date.now() + ms;
  for (;;) {
    sink.send("count");
    const [found] = (await once(sink, "message")) as [number];
    if (found >= count) break;
    if (Date.now() > late) throw new Error(`${found} of ${count} mails arrived.`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  sink.send("all");
  return ((await once(sink, "message")) as [DeliveryLog])[0];
}

async function startWorker({ children, settings }: Stage): Promise<ChildProcess> {
  return program(children, "dist/workers/main.js", { ...settings, WORKER_QUEUES: "email" });
}

/** Requests per second of the accept route, and of a bare Koa handler that writes the same. */
async function acceptance(stage: Stage): Promise<BenchRow[]> {
  const { children, runtime, settings } = stage;
  const port = await freePort();
  const web = { ...settings, PORT: String(port), BASE_URL: `http://127.0.0.1:${port}` };
  const server = await program(children, "dist/api/server.js", web);
  const token = await tokenFor(
    { ...runtime, env: { ...runtime.env, BASE_URL: web.BASE_URL } },
    { userId: "user_1", seconds: 3600 },
  );
  const [bare, barePort] = await messenger<number>(children, "email-process.ts", { BENCH_REDIS: stage.redisUrl }, [
    "koa",
  ]);
  const best = { web: 0, bare: 0 };
  const path = "/v2/handles/small/email/messages";
  for (let round = 0; round <= rounds; round++) {
    best.bare = Math.max(best.bare, await load(barePort, "/", { token }));
    best.web = Math.max(best.web, await load(port, path, { token }));
  }
  await Promise.all([endProcess(server), endProcess(bare)]);
  await cleared(stage);
  const baseline = `${Math.round(best.web)}/s, bare Koa ${Math.round(best.bare)}/s`;
  return [
    {
      name: "email: accept route / bare Koa writing the same",
      value: best.web / best.bare,
      unit: "",
      bar: ">= 0.25",
      baseline,
    },
  ];
}

/** Removes what the requests have queued, so that it is not sent in the next case. */
async function cleared({ runtime }: Stage): Promise<void> {
  await runtime.redis.flushdb();
  for (const handle of ["big", "small"]) await furnish(runtime, handle, sending);
}

/** Ms from accepting one mail of a handle until it is sent, while another handle has 10,000 queued. */
async function fairness(stage: Stage): Promise<BenchRow[]> {
  await queue(stage.runtime, "big", backlog);
  await begin(stage);
  const worker = await startWorker(stage);
  await until(stage, 200);
  const waits: number[] = [];
  for (let round = 0; round < 10; round++) {
    const begun = Date.now();
    const to = `small${round}@far.example`;
    await acceptMessage(stage.runtime, { ...mail, handle: "small", to: [to] });
    for (let arrived: number | undefined; arrived === undefined; ) {
      const taken = await until(stage, 1);
      arrived = taken.find(([, recipient]) => recipient === to)?.[0];
      if (arrived !== undefined) waits.push(arrived - begun);
    }
  }
  await endProcess(worker, "SIGKILL");
  await cleared(stage);
  return [
    {
      name: "email: another handle's mail beside 10,000 queued, slowest of 10",
      value: Math.max(...waits),
      unit: "ms",
      bar: "<= 2000",
    },
  ];
}

/** Kills the worker repeatedly while it sends. */
async function crashes(stage: Stage): Promise<BenchRow[]> {
  await queue(stage.runtime, "big", crashing);
  await begin(stage);
  let kills = 0;
  const arrived = async () => new Set((await until(stage, 0)).map(([, to]) => to)).size;
  for (let seen = 0; seen < crashing * 0.9; seen = await arrived()) {
    const worker = await startWorker(stage);
    await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 500));
    await endProcess(worker, "SIGKILL");
    kills++;
  }
  const last = await startWorker(stage);
  const late = Date.now() + 60_000;
  while ((await arrived()) < crashing && Date.now() < late) await new Promise((resolve) => setTimeout(resolve, 200));
  await endProcess(last, "SIGTERM");
  const taken = await until(stage, 1);
  const ids = new Map<string, Set<string>>();
  for (const [, to, id] of taken) ids.set(to, (ids.get(to) ?? new Set()).add(id));
  const copies = taken.length - ids.size;
  const baseline = `${kills} times kill -9 over ${crashing} mails, ${connections} under way`;
  return [
    { name: "email: mails lost by kill -9", value: crashing - ids.size, unit: "", bar: "<= 0", baseline },
    { name: "email: copies by kill -9", value: copies, unit: "", bar: `<= ${kills * connections}`, baseline },
    {
      name: "email: copies with another Message-ID",
      value: [...ids.values()].filter((one) => one.size > 1).length,
      unit: "",
      bar: "<= 0",
      baseline,
    },
  ];
}
