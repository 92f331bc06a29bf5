import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { Agent, get } from "node:http";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { Sessions } from "../../core/account/sessions.ts";
import { tokenFor } from "../../fixtures/session.ts";
import { createToken } from "../../core/account/tokens.ts";
import { readEnv } from "../../core/platform/env.ts";
import { openRuntime } from "../../core/open.ts";
import type { Runtime } from "../../core/platform/runtime.ts";
import { type RedisServer, startRedis } from "../../fixtures/redis.ts";
import type { Ready } from "./account-process.ts";
import type { Row } from "./relay.ts";

/** Requests in flight, and ms for which each server is asked. */
const inFlight = 32;
const asksFor = 2000;
const rounds = Number(process.env.BENCH_ROUNDS ?? 2);

/** Measures the token check, the session check against the least that Koa can do, and what tokens cost. */
export async function bench(): Promise<Row[]> {
  const redis = await startRedis();
  const runtime = await openRuntime(readEnv({ REDIS_URL: redis.url, LOG_LEVEL: "error" }));
  try {
    return [...(await checks(runtime)), ...(await sessionChecks(redis)), await tokenMemory(runtime)];
  } finally {
    await runtime.close();
    await redis.stop();
  }
}

async function checks(runtime: Runtime): Promise<Row[]> {
  const sessions = new Sessions(runtime.env, runtime.signingKey, { isLive: async () => true });
  const tokens = await Promise.all(
    Array.from({ length: 2000 }, (_, at) => tokenFor(runtime, { userId: `user_${at}` })),
  );
  const first = await timed(tokens, (token) => sessions.check(token));
  const again = await timed(tokens, (token) => sessions.check(token));
  return [
    { name: "JWT check (EdDSA), new token, p50", value: first, unit: "ms", bar: "<= 0.3" },
    { name: "JWT check, seen within 60 s, p50", value: again, unit: "ms" },
  ];
}

/** The median of single runs, one after another; the first tenth warms up. */
async function timed<T>(items: T[], run: (item: T) => Promise<unknown>): Promise<number> {
  const took: number[] = [];
  for (const item of items) {
    const started = performance.now();
    await run(item);
    took.push(performance.now() - started);
  }
  return median(took.slice(took.length / 10));
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}

async function sessionChecks(redis: RedisServer): Promise<Row[]> {
  const children: ChildProcess[] = [];
  try {
    const bare = await start("koa", redis.url, children);
    const service = await start("service", redis.url, children);
    const rates = { bare: 0, service: 0 };
    for (let round = 0; round < rounds + 1; round++) {
      rates.bare = Math.max(rates.bare, await rate(bare));
      rates.service = Math.max(rates.service, await rate(service));
    }
    const baseline = `bare Koa ${Math.round(rates.bare)}/s`;
    return [
      { name: "session check", value: rates.service, unit: "requests/s", baseline },
      {
        name: "session check / bare Koa",
        value: rates.service / rates.bare,
        unit: "",
        bar: ">= 0.25",
        baseline,
      },
    ];
  } finally {
    for (const child of children) child.kill();
  }
}

async function start(role: string, redisUrl: string, children: ChildProcess[]): Promise<Ready> {
  const file = fileURLToPath(new URL("./account-process.ts", import.meta.url));
  const env = { ...process.env, BENCH_REDIS: redisUrl };
  const child = fork(file, [role], { env, execArgv: ["--import", "tsx"] });
  children.push(child);
  const ended = once(child, "exit").then(() => Promise.reject(new Error(`The ${role} server did not start.`)));
  const [ready] = (await Promise.race([once(child, "message"), ended])) as [Ready];
  return ready;
}

/** Answers a second with this many requests in flight over kept connections. */
async function rate({ port, token }: Ready): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: inFlight });
  const headers = { authorization: `Bearer ${token}` };
  const until = performance.now() + asksFor;
  let answers = 0;
  const ask = (): Promise<void> =>
    new Promise((resolve, reject) => {
      get({ port, host: "127.0.0.1", path: "/v2/account/assistant/me", agent, headers }, (response) => {
        if (response.statusCode !== 200) return reject(new Error(`The server answered ${response.statusCode}.`));
        response.resume().once("end", resolve);
      }).once("error", reject);
    });
  const line = async (): Promise<void> => {
    while (performance.now() < until) {
      await ask();
      answers++;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, line));
  agent.destroy();
  return (answers * 1000) / asksFor;
}

/** What 100,000 tokens of 20,000 users take. */
async function tokenMemory(runtime: Runtime): Promise<Row> {
  const before = await usedMemory(runtime);
  for (let batch = 0; batch < 100; batch++) {
    await Promise.all(Array.from({ length: 1000 }, (_, at) => oneToken(runtime, batch * 1000 + at)));
  }
  const megabytes = ((await usedMemory(runtime)) - before) / 1_000_000;
  return { name: "memory of 100,000 tokens", value: megabytes, unit: "MB", bar: "<= 50" };
}

async function oneToken(runtime: Runtime, at: number): Promise<void> {
  const caller = { requestId: "", userId: `user_${String(at % 20_000).padStart(22, "0")}` };
  const input = {
    name: "Strategy agent on my laptop",
    scopes: ["agent.strategy.read" as const, "agent.pages.read" as const],
    expiresInDays: 90,
  };
  await createToken(runtime, input, caller);
}

async function usedMemory({ redis }: Runtime): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1]);
}
