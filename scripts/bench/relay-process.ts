/**
 * The processes of the relay bench: `node --import tsx relay-process.ts model|worker|web|client`. Each sends a message when it is ready;
 * the client runs the cases that it receives. Times are on the machine's monotonic clock, which all processes share.
 */
import { once } from "node:events";
import { Agent, createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import { createResumableStreamContext } from "resumable-stream/ioredis";
import { Relay } from "../../core/engines/relay/relay.ts";
import { createRun } from "../../core/engines/relay/runs.ts";
import { quantile } from "./figures.ts";

/** The client's measurements. */
export interface RelayLoad {
  path: string;
  port: number;
  streams: number;
  /** Chunks per second of each stream. */
  rate: number;
  chunks: number;
  /** One stream after the other instead of all at once. */
  idle?: boolean;
}

/** The results in ms: delay of each chunk from the model's write, and of each stream's first chunk from the request. */
export interface Delays {
  p50: number;
  p99: number;
  firstP50: number;
  count: number;
}

const redisUrl = process.env.BENCH_REDIS ?? "";
const modelPort = Number(process.env.BENCH_MODEL ?? 0);
const queue = "generation";
const prefix = `queue:{${queue}}`;
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
const now = (): number => Number(process.hrtime.bigint()) / 1e6;

/** The options of the service's own connections, except that a busy bench may be slow. */
function connect(name: string): Redis {
  const redis = new Redis(redisUrl, { enableAutoPipelining: true, maxRetriesPerRequest: null, connectionName: name });
  redis.on("error", () => process.exit(1));
  return redis;
}

const roles: Record<string, () => Promise<number>> = {
  async model() {
    return listen((request, response) => void generate(new URL(request.url!, "http://model"), response));
  },

  async worker() {
    const redis = connect("worker");
    const relay = openRelay(redis, "worker");
    const context = resumable("worker");
    const answer = async (data: Job): Promise<void> =>
      data.kind === "relay" ? answerByRelay(relay, data) : answerByPackage(context, data);
    new Worker(queue, (job) => answer(job.data), { connection: redis, prefix, concurrency: 1000 }).on("error", () =>
      process.exit(1),
    );
    return 0;
  },

  async web() {
    const redis = connect("web");
    const relay = openRelay(redis, "web");
    const jobs = new Queue(queue, { connection: redis, prefix });
    const context = resumable("web");
    return listen(async (request, response) => {
      const url = new URL(request.url!, "http://web");
      const id = crypto.randomUUID();
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      const data: Job = { kind: url.pathname.slice(1), id, query: url.search };
      if (data.kind === "relay") await showRelay({ redis, relay, jobs }, data, response);
      else await showPackage(context, jobs, data, response);
    });
  },

  async client() {
    process.on("message", async (load: RelayLoad) => process.send!(await measure(load)));
    return 0;
  },
};

interface Job {
  kind: string;
  id: string;
  query: string;
}

function openRelay(redis: Redis, name: string): Relay {
  return new Relay({ redis, connect: () => connect(name), log: console });
}

/** A model that writes a chunk at a fixed pace. It starts anywhere in the interval, as real models do, or at once when it is idle. */
async function generate(url: URL, response: ServerResponse): Promise<void> {
  const [rate, chunks] = [Number(url.searchParams.get("rate")), Number(url.searchParams.get("chunks"))];
  let left = chunks;
  const write = (): void => {
    response.write(`{"message":{"content":"words "},"done":false,"at":${now().toFixed(3)}}\n`);
    if (--left > 0) return;
    clearInterval(timer);
    response.end();
  };
  let timer: ReturnType<typeof setInterval>;
  const begin = (): void => {
    timer = setInterval(write, 1000 / rate);
    write();
  };
  setTimeout(begin, url.searchParams.has("idle") ? 0 : (1000 / rate) * Math.random());
}

async function answerByRelay(relay: Relay, { id, query }: Job): Promise<void> {
  const run = await relay.claim(id, 1);
  if (typeof run === "string") throw new Error(run);
  await readModel(query, (chunk) => run.write(chunk));
  await run.end();
}

async function showRelay(
  tools: { redis: Redis; relay: Relay; jobs: Queue },
  data: Job,
  response: ServerResponse,
): Promise<void> {
  await createRun(tools.redis, data.id, { question: "?" });
  const chunks = tools.relay.follow(data.id);
  await tools.jobs.add("answer", data, { removeOnComplete: true });
  for await (const { id, chunk } of chunks) {
    if (!response.write(`id: ${id}\ndata: ${chunk}\n\n`)) await once(response, "drain");
  }
  response.end("data: [DONE]\n\n");
}

function resumable(name: string): ReturnType<typeof createResumableStreamContext> {
  const open = (): Redis => new Redis(redisUrl, { connectionName: `${name}-package` });
  return createResumableStreamContext({ waitUntil: null, publisher: open(), subscriber: open() });
}

async function answerByPackage(context: ReturnType<typeof resumable>, { id, query }: Job): Promise<void> {
  const source = (): ReadableStream<string> =>
    new ReadableStream({
      async start(controller) {
        await readModel(query, (chunk) => controller.enqueue(`data: ${chunk}\n\n`));
        controller.close();
      },
    });
  const made = await context.createNewResumableStream(id, source);
  for await (const _ of made as unknown as AsyncIterable<string>);
}

async function showPackage(
  context: ReturnType<typeof resumable>,
  jobs: Queue,
  data: Job,
  response: ServerResponse,
): Promise<void> {
  await jobs.add("answer", data, { removeOnComplete: true });
  let stream = await context.resumeExistingStream(data.id);
  while (stream === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 2));
    stream = await context.resumeExistingStream(data.id);
  }
  // `null` would be a stream that has already ended.
  for await (const text of (stream ?? []) as AsyncIterable<string>) response.write(text);
  response.end();
}

/** Reads the model's lines as the service's worker does: one chunk per line. */
async function readModel(query: string, take: (chunk: string) => void): Promise<void> {
  const response = await request(modelPort, `/${query}`);
  await lines(response, (line) => {
    const { message, at } = JSON.parse(line) as { message: { content: string }; at: number };
    take(JSON.stringify({ type: "text-delta", id: "t", delta: message.content, at }));
  });
}

async function measure(load: RelayLoad): Promise<Delays> {
  const delays: number[] = [];
  const firsts: number[] = [];
  const since = now() + (load.idle ? 0 : 1000);
  const one = async (): Promise<void> => {
    const asked = now();
    let first = true;
    await lines(await request(load.port, target(load)), (line) => {
      const at = Number(/"at":([\d.]+)/.exec(line)?.[1]);
      if (!at) return;
      const read = now();
      if (first) firsts.push(read - asked);
      else if (at > since) delays.push(read - at);
      first = false;
    });
  };
  if (load.idle) for (let index = 0; index < load.streams; index++) await one();
  else await Promise.all(Array.from({ length: load.streams }, one));
  return {
    p50: quantile(delays, 0.5),
    p99: quantile(delays, 0.99),
    firstP50: quantile(firsts, 0.5),
    count: delays.length + firsts.length,
  };
}

function target({ path, rate, chunks, idle }: RelayLoad): string {
  return `${path}?rate=${rate}&chunks=${chunks}${idle ? "&idle=1" : ""}`;
}

function request(port: number, path: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => get({ host: "127.0.0.1", port, path, agent }, resolve).on("error", reject));
}

function lines(response: IncomingMessage, take: (line: string) => void): Promise<void> {
  let rest = "";
  response.setEncoding("utf8");
  response.on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop()!;
    for (const part of parts) if (part !== "") take(part);
  });
  return new Promise((resolve, reject) => response.on("end", resolve).on("error", reject));
}

async function listen(handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<number> {
  const server = createServer(handle).listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

// Other files import only types from this file and start no process.
if (process.send) process.send(await roles[process.argv[2]!]!());
