import { Buffer } from "node:buffer";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import process from "node:process";
import { quantile } from "./figures.ts";

/** Concurrent requests, each of which is followed by the next as soon as it has a response. */
const LANES = 32;
const RUN_MS = Number(process.env.BENCH_MS ?? 2000);
/** Most connections of a paced load, as a router keeps them: on a small machine opening hundreds more would measure the client. */
const MAX_CONNECTIONS = 64;

/** A load of requests. */
export interface Load {
  path: () => string;
  /** Bodies to post; without them the requests are GETs. */
  body?: () => string;
  headers?: Record<string, string>;
  lanes?: number;
  /** Requests per second, whether or not responses keep up; default unlimited. */
  perSecond?: number;
  /** Ms of the round. */
  ms?: number;
}

/** Sends requests by Node's client. Returns the number of responses, responses per second, and times in ms; any error ends it. */
export async function load(
  port: number,
  { path, body, headers = {}, lanes = LANES, perSecond, ms = RUN_MS }: Load,
): Promise<{ answers: number; perSecond: number; p50: number; p99: number }> {
  const agent = new Agent({ keepAlive: true, maxSockets: perSecond ? MAX_CONNECTIONS : lanes });
  const taken: number[] = [];
  const begun = performance.now();
  const one = async (): Promise<void> => {
    const asked = performance.now();
    await send(agent, { port, path: path(), body: body?.(), headers });
    taken.push(performance.now() - asked);
  };
  const lane = async (): Promise<void> => {
    while (performance.now() - begun < ms) await one();
  };
  if (perSecond === undefined) await Promise.all(Array.from({ length: lanes }, lane));
  else await paced(one, { perSecond, ms });
  const seconds = (performance.now() - begun) / 1000;
  agent.destroy();
  return {
    answers: taken.length,
    perSecond: taken.length / seconds,
    p50: quantile(taken, 0.5),
    p99: quantile(taken, 0.99),
  };
}

/** Responses per second over plain sockets: a minimal client leaves the machine to the server. `text` is one request. */
export async function flood(port: number, text: () => string, ms = RUN_MS): Promise<number> {
  let answers = 0;
  const sockets = Array.from({ length: LANES }, () => connect({ port, host: "127.0.0.1", noDelay: true }));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  const begun = performance.now();
  for (const socket of sockets) {
    let missing = 0;
    socket.on("data", (bytes) => {
      missing = missing === 0 ? lengthOf(bytes) - bytes.length : missing - bytes.length;
      if (missing > 0) return;
      answers++;
      socket.write(text());
    });
    socket.write(text());
  }
  await new Promise((resolve) => setTimeout(resolve, ms));
  for (const socket of sockets) socket.destroy();
  return (answers * 1000) / (performance.now() - begun);
}

/** The text of a request. */
export function requestText(head: string, headers: Record<string, string>, body = ""): string {
  const length = body === "" ? {} : { "content-length": String(Buffer.byteLength(body)) };
  const lines = Object.entries({ host: "127.0.0.1", ...headers, ...length }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  return `${[`${head} HTTP/1.1`, ...lines].join("\r\n")}\r\n\r\n${body}`;
}

async function paced(one: () => Promise<void>, { perSecond, ms }: { perSecond: number; ms: number }): Promise<void> {
  const begun = performance.now();
  const all: Promise<void>[] = [];
  while (performance.now() - begun < ms) {
    const due = Math.floor(((performance.now() - begun) / 1000) * perSecond);
    while (all.length < due) all.push(one());
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(all);
}

function send(
  agent: Agent,
  to: { port: number; path: string; body: string | undefined; headers: Record<string, string> },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const { body, port, path } = to;
    const method = body === undefined ? "GET" : "POST";
    const headers = {
      ...to.headers,
      ...(body === undefined
        ? {}
        : { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) }),
    };
    const asked = request({ agent, host: "127.0.0.1", port, path, method, headers }, (answer) => {
      const status = answer.statusCode ?? 0;
      answer.resume().once("end", () => (status < 400 ? resolve() : reject(new Error(`${path} answered ${status}`))));
    });
    asked.once("error", reject).end(body);
  });
}

/** Bytes of a response, computed from its first packet. */
function lengthOf(first: Buffer): number {
  const end = first.indexOf("\r\n\r\n") + 4;
  const head = first.toString("latin1", 0, end);
  const [, length] = /^content-length: (\d+)$/im.exec(head) ?? [];
  if (!/^HTTP\/1\.1 20[02]/.test(head) || length === undefined)
    throw new Error(`An answer that was not expected: ${head}`);
  return end + Number(length);
}
