import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { Pool } from "undici";
import { createHandle } from "../../core/account/handles.ts";
import { readEnv } from "../../core/env.ts";
import { openRuntime } from "../../core/open.ts";
import type { Runtime } from "../../core/runtime.ts";
import { createWebhook } from "../../core/webhooks/endpoints.ts";
import { eventLasts, webhookEvent } from "../../core/webhooks/events.ts";
import { signedHeaders, signerOf } from "../../core/webhooks/signature.ts";
import { startRedis } from "../../fixtures/redis.ts";
import { startWorkers } from "../../workers/run.ts";
import type { Row } from "./relay.ts";

const endpoints = 4;
const events = 1000;
const inFlight = 32;
const data = { handle: "acme", filler: "x".repeat(800) };

/** How often each side is measured, in turn; the best counts, since other work on the machine only ever makes it slower. */
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);

interface Stage {
  runtime: Runtime;
  receiver: string;
  /** Requests that the receiver has answered. */
  count: number;
  /** Told when an event was caused, at its arrival. */
  seen: (sentAt: number) => void;
}

/**
 * Deliveries a second of the webhooks sender (dispatch, lease, signature, request, log) beside a bare loop of undici's Pool with
 * the same signing, and what one endpoint that hangs does to another's delay.
 */
export async function bench(): Promise<Row[]> {
  const redis = await startRedis();
  const stage = await furnish(redis.url);
  const workers = await startWorkers(stage.runtime, ["webhooks"]);
  let [bare, ours] = [0, 0];
  for (let round = 0; round < rounds; round++) {
    bare = Math.max(bare, await bareLoop(stage));
    ours = Math.max(ours, await deliveries(stage));
  }
  const baseline = `${Math.round(ours)}/s, bare loop ${Math.round(bare)}/s`;
  const throughput = { name: "webhook deliveries / bare Pool", value: ours / bare, unit: "", bar: ">= 0.25", baseline };
  const late = await besideHanging(stage);
  // What hangs would keep the workers for 15 s; the process ends with its last row.
  void workers;
  await redis.kill();
  return [throughput, late];
}

async function furnish(redisUrl: string): Promise<Stage> {
  const runtime = await openRuntime(readEnv({ LOG_LEVEL: "silent", REDIS_URL: redisUrl }));
  await createHandle(runtime, { handle: "acme", account: "acct", owner: "user", assistant: false });
  await createHandle(runtime, { handle: "quick", account: "acct", owner: "user", assistant: false });
  const stage: Stage = { runtime, receiver: "", count: 0, seen: () => undefined };
  stage.receiver = await listening((request, response) => {
    let body = "";
    request.on("data", (part) => {
      body += part;
    });
    request.on("end", () => {
      stage.count += 1;
      response.writeHead(204).end();
      stage.seen(JSON.parse(body).data.sentAt);
    });
  });
  for (let one = 0; one < endpoints; one++)
    await createWebhook(runtime, { handle: "acme", url: `${stage.receiver}/${one}` });
  return stage;
}

/** What an endpoint that never answers, with 50 events waiting, does to the delay of another of the same handle. */
async function besideHanging(stage: Stage): Promise<Row> {
  const { runtime } = stage;
  await createWebhook(runtime, { handle: "quick", url: `${stage.receiver}/quick` });
  await delays(stage);
  const alone = await delays(stage);
  await createWebhook(runtime, { handle: "quick", url: await listening((request) => void request.resume()) });
  for (let one = 0; one < 50; one++) await cause(runtime, "quick", {});
  const beside = await delays(stage);
  const baseline = `p50/p99 ${alone.p50}/${alone.p99} ms alone, ${beside.p50}/${beside.p99} ms beside`;
  return {
    name: "webhook p99 beside a hanging endpoint",
    value: beside.p99 / alone.p99,
    unit: "x",
    bar: "<= 1.1",
    baseline,
  };
}

async function listening(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Requests a second of the bare loop. */
async function bareLoop({ receiver }: Stage): Promise<number> {
  const pool = new Pool(receiver, { connections: inFlight });
  const body = JSON.stringify({ type: "t", timestamp: "t", data });
  const signers = [signerOf("whsec_c2VjcmV0c2VjcmV0c2VjcmV0")];
  let left = endpoints * events;
  const started = performance.now();
  const lane = async () => {
    while (left-- > 0) {
      const headers = signedHeaders(signers, { eventId: `evt_${left}`, body });
      const answer = await pool.request({ path: "/", method: "POST", headers, body });
      await answer.body.dump();
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  const took = performance.now() - started;
  await pool.close();
  return (endpoints * events * 1000) / took;
}

/** Deliveries a second from cause to receiver, events written as those who cause them do. */
async function deliveries(stage: Stage): Promise<number> {
  const until = stage.count + endpoints * events;
  const started = performance.now();
  for (let sent = 0; sent < events; sent += 50)
    await Promise.all(Array.from({ length: 50 }, () => cause(stage.runtime, "acme", data)));
  while (stage.count < until) await new Promise((resolve) => setTimeout(resolve, 5));
  return (endpoints * events * 1000) / (performance.now() - started);
}

async function cause(from: Runtime, handle: string, what: object): Promise<void> {
  const event = webhookEvent(from, handle, {
    type: "scheduling.booking.created",
    data: { ...what, sentAt: Date.now() },
  });
  await from.queues.commit(handle, [event.job], (step) => void step.set(event.key, event.content, "PX", eventLasts));
}

/** Delay from cause to receiver in ms, at 50 events a second. */
async function delays(stage: Stage): Promise<{ p50: number; p99: number }> {
  const all: number[] = [];
  stage.seen = (sentAt) => all.push(Date.now() - sentAt);
  for (let sent = 0; sent < 200; sent++) {
    await cause(stage.runtime, "quick", {});
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  while (all.length < 200) await new Promise((resolve) => setTimeout(resolve, 10));
  all.sort((one, other) => one - other);
  return { p50: all[100] as number, p99: all[197] as number };
}
