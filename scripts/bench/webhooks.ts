import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { Pool } from "undici";
import { createHandle } from "../../core/account/handles.ts";
import { openRuntime } from "../../core/open.ts";
import { readEnv } from "../../core/platform/env.ts";
import type { Runtime } from "../../core/platform/runtime.ts";
import { createWebhook, deleteWebhook } from "../../core/webhooks/endpoints.ts";
import { eventJob } from "../../core/webhooks/events.ts";
import { signedHeaders } from "../../core/webhooks/signature.ts";
import { startRedis } from "../../fixtures/redis.ts";
import { startWorkers } from "../../workers/run.ts";
import { type BenchRow, quantile } from "./figures.ts";
import { endProcess, program } from "./programs.ts";

const endpoints = 4;
const events = 1000;
const inFlight = 32;
/** Measured events, and ms between two. */
const measured = 3000;
const causedEvery = 20;
/** Events that wait for the hanging endpoint, and ms of hanging before the measurement, which then includes its timeouts. */
const hanging = 50;
const hangsBefore = 8000;
const data = { handle: "acme", filler: "x".repeat(800) };

/** Rounds of each side, alternately; the best one counts, since other work on the machine only slows it down. */
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);

interface Stage {
  runtime: Runtime;
  receiver: string;
  /** Requests that the receiver has answered. */
  count: number;
}

/**
 * Deliveries per second of the webhooks sender (dispatch, lease, signature, request, log) next to a bare loop of undici's Pool with the
 * same signing, and the effect of a hanging endpoint on another one's delay.
 */
export async function bench(): Promise<BenchRow[]> {
  const redis = await startRedis();
  const stage = await furnish(redis.url);
  const workers = await startWorkers(stage.runtime, ["webhooks"]);
  let [bare, ours] = [0, 0];
  for (let round = 0; round < rounds; round++) {
    bare = Math.max(bare, await bareLoop(stage));
    ours = Math.max(ours, await deliveries(stage));
  }
  await workers.close();
  await stage.runtime.close();
  await redis.stop();
  const baseline = `${Math.round(ours)}/s, bare loop ${Math.round(bare)}/s`;
  const throughput = { name: "webhook deliveries / bare Pool", value: ours / bare, unit: "", bar: ">= 0.25", baseline };
  return [throughput, await besideHanging()];
}

async function furnish(redisUrl: string): Promise<Stage> {
  const runtime = await openRuntime(readEnv({ LOG_LEVEL: "silent", REDIS_URL: redisUrl }));
  await createHandle(runtime, { handle: "acme", account: "acct", owner: "user", assistant: false });
  const stage: Stage = { runtime, receiver: "", count: 0 };
  stage.receiver = addressOf(await receiving(() => stage.count++));
  for (let one = 0; one < endpoints; one++)
    await createWebhook(runtime, { handle: "acme", url: `${stage.receiver}/${one}` });
  return stage;
}

/** Answers every delivery and reports it. */
function receiving(take: (path: string, data: { sentAt: number }) => void): Promise<Server> {
  return serving((request, response) => {
    let body = "";
    request.on("data", (part) => {
      body += part;
    });
    request.on("end", () => {
      response.writeHead(204).end();
      take(request.url ?? "", JSON.parse(body).data);
    });
  });
}

/** A separate installation: Redis, a worker process, and an endpoint at this path of the receiver. */
interface Twin {
  path: string;
  runtime: Runtime;
  delays: number[];
  end(): Promise<void>;
}

/**
 * The effect of a hanging endpoint with waiting events on the delay of another endpoint of the same handle. Two installations that differ
 * only in that endpoint get each event at the same time, so that other load affects both.
 */
async function besideHanging(): Promise<BenchRow> {
  const twins: Twin[] = [];
  const receiver = await receiving((path, { sentAt }) =>
    twins.find((twin) => twin.path === path)?.delays.push(performance.timeOrigin + performance.now() - sentAt),
  );
  for (const path of ["/alone", "/beside"]) twins.push(await openTwin(`${addressOf(receiver)}${path}`));
  const [alone, beside] = twins as [Twin, Twin];
  const server = await serving((request) => void request.resume());
  const { webhook } = await createWebhook(beside.runtime, { handle: "quick", url: addressOf(server) });
  for (let one = 0; one < hanging; one++) await causeBoth(twins, one);
  await new Promise((resolve) => setTimeout(resolve, hangsBefore));
  for (const twin of twins) twin.delays.length = 0;
  for (let one = 0; one < measured; one++) {
    await causeBoth(twins, one);
    await new Promise((resolve) => setTimeout(resolve, causedEvery));
  }
  while (twins.some(({ delays }) => delays.length < measured)) await new Promise((resolve) => setTimeout(resolve, 10));
  await deleteWebhook(beside.runtime, { handle: "quick", webhookId: webhook.webhookId });
  for (const one of [server, receiver]) one.close().closeAllConnections();
  for (const twin of twins) await twin.end();
  const [one, other] = [spread(alone.delays), spread(beside.delays)];
  const baseline = `p50/p99 ${one.p50}/${one.p99} ms alone, ${other.p50}/${other.p99} ms beside, ${measured} events each`;
  return {
    name: "webhook p99 beside a hanging endpoint",
    value: other.p99 / one.p99,
    unit: "x",
    bar: "<= 1.1",
    baseline,
  };
}

async function openTwin(url: string): Promise<Twin> {
  const redis = await startRedis();
  const runtime = await openRuntime(readEnv({ LOG_LEVEL: "silent", REDIS_URL: redis.url }));
  await createHandle(runtime, { handle: "quick", account: "acct", owner: "user", assistant: false });
  await createWebhook(runtime, { handle: "quick", url });
  const worker = await program([], "dist/workers/main.js", { REDIS_URL: redis.url, WORKER_QUEUES: "webhooks" });
  return {
    path: new URL(url).pathname,
    runtime,
    delays: [],
    async end() {
      await runtime.close();
      // The hanging requests would delay the exit by 15 s.
      await endProcess(worker, "SIGKILL");
      await redis.stop();
    },
  };
}

/** Each one comes first equally often. */
async function causeBoth(twins: Twin[], turn: number): Promise<void> {
  const inTurn = turn % 2 === 0 ? twins : twins.toReversed();
  await Promise.all(inTurn.map(({ runtime }) => cause(runtime, "quick", {})));
}

async function serving(answer: RequestListener): Promise<Server> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

function addressOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Requests per second of the bare loop. */
async function bareLoop({ receiver }: Stage): Promise<number> {
  const pool = new Pool(receiver, { connections: inFlight });
  const body = JSON.stringify({ type: "t", timestamp: "t", data });
  const signers = [{ secret: "whsec_c2VjcmV0c2VjcmV0c2VjcmV0", until: Number.POSITIVE_INFINITY }];
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

/** Deliveries per second from cause to receiver; events are written as in the service. */
async function deliveries(stage: Stage): Promise<number> {
  const until = stage.count + endpoints * events;
  const started = performance.now();
  for (let sent = 0; sent < events; sent += 50)
    await Promise.all(Array.from({ length: 50 }, () => cause(stage.runtime, "acme", data)));
  while (stage.count < until) await new Promise((resolve) => setTimeout(resolve, 5));
  return (endpoints * events * 1000) / (performance.now() - started);
}

async function cause(from: Runtime, handle: string, what: object): Promise<void> {
  const { event, ...dispatch } = eventJob(from, handle, {
    type: "scheduling.booking.created",
    data: { ...what, sentAt: performance.timeOrigin + performance.now() },
  });
  await from.queues.commit(
    handle,
    [dispatch],
    (step) => void step.set(event.key, event.content, "PX", event.retentionMs),
  );
}

function spread(delays: number[]): { p50: number; p99: number } {
  const at = (share: number): number => Math.round(quantile(delays, share) * 10) / 10;
  return { p50: at(0.5), p99: at(0.99) };
}
