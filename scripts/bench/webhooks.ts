import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { Pool } from "undici";
import { createHandle } from "../../core/account/handles.ts";
import { readEnv } from "../../core/env.ts";
import { openRuntime } from "../../core/open.ts";
import type { Runtime } from "../../core/runtime.ts";
import { createWebhook, deleteWebhook } from "../../core/webhooks/endpoints.ts";
import { eventLasts, webhookEvent } from "../../core/webhooks/events.ts";
import { signedHeaders, signerOf } from "../../core/webhooks/signature.ts";
import { startRedis } from "../../fixtures/redis.ts";
import { startWorkers } from "../../workers/run.ts";
import type { Row } from "./relay.ts";

const endpoints = 4;
const events = 1000;
const inFlight = 32;
/** Events whose delay is measured in one go, and ms between two. */
const measured = 500;
const causedEvery = 20;
/** Ms for which an endpoint hangs before the delay of another is measured, so that its first time-outs fall into the measuring. */
const hangsBefore = 8000;
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
  const receiver = await serving((request, response) => {
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
  stage.receiver = addressOf(receiver);
  for (let one = 0; one < endpoints; one++)
    await createWebhook(runtime, { handle: "acme", url: `${stage.receiver}/${one}` });
  return stage;
}

/**
 * What an endpoint that never answers, with 50 events waiting, does to the delay of another of the same handle: with it and without
 * it in turn, so that what else happens on the machine meets both.
 */
async function besideHanging(stage: Stage): Promise<Row> {
  await createWebhook(stage.runtime, { handle: "quick", url: `${stage.receiver}/quick` });
  await delays(stage);
  const [alone, beside]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    alone.push(...(await delays(stage)));
    const end = await hang(stage);
    beside.push(...(await delays(stage)));
    await end();
  }
  const [one, other] = [spread(alone), spread(beside)];
  const baseline = `p50/p99 ${one.p50}/${one.p99} ms alone, ${other.p50}/${other.p99} ms beside, ${alone.length} events each`;
  return {
    name: "webhook p99 beside a hanging endpoint",
    value: other.p99 / one.p99,
    unit: "x",
    bar: "<= 1.1",
    baseline,
  };
}

/** Gives the handle an endpoint that hangs, for a while already; the way to end that. */
async function hang({ runtime }: Stage): Promise<() => Promise<void>> {
  const server = await serving((request) => void request.resume());
  const { webhook } = await createWebhook(runtime, { handle: "quick", url: addressOf(server) });
  for (let one = 0; one < 50; one++) await cause(runtime, "quick", {});
  await new Promise((resolve) => setTimeout(resolve, hangsBefore));
  return async () => {
    await deleteWebhook(runtime, { handle: "quick", webhookId: webhook.webhookId });
    server.close();
    server.closeAllConnections();
  };
}

async function serving(answer: RequestListener): Promise<Server> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

function addressOf(server: Server): string {
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
    data: { ...what, sentAt: performance.timeOrigin + performance.now() },
  });
  await from.queues.commit(handle, [event.job], (step) => void step.set(event.key, event.content, "PX", eventLasts));
}

/** Delays from cause to receiver in ms, at 50 events a second. */
async function delays(stage: Stage): Promise<number[]> {
  const all: number[] = [];
  stage.seen = (sentAt) => all.push(performance.timeOrigin + performance.now() - sentAt);
  for (let sent = 0; sent < measured; sent++) {
    await cause(stage.runtime, "quick", {});
    await new Promise((resolve) => setTimeout(resolve, causedEvery));
  }
  while (all.length < measured) await new Promise((resolve) => setTimeout(resolve, 10));
  stage.seen = () => undefined;
  return all;
}

function spread(all: number[]): { p50: number; p99: number } {
  const sorted = all.toSorted((one, other) => one - other);
  const at = (share: number): number => Math.round((sorted[Math.floor(sorted.length * share)] as number) * 10) / 10;
  return { p50: at(0.5), p99: at(0.99) };
}
