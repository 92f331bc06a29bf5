import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { freePort, startRedis } from "../../fixtures/redis.ts";
import type { RelayRow } from "./relay.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Starts of each process; the median counts. */
const rounds = 5;
/** Ms after which an unused process counts as idle. */
const SETTLE_MS = 4000;

/** Time from the start of a process of dist/ until it is ready, and its memory then. */
export async function bench(): Promise<RelayRow[]> {
  const redis = await startRedis();
  try {
    const web = await started(redis.url, "dist/api/server.js", "web.ready");
    const worker = await started(redis.url, "dist/workers/main.js", "worker.ready");
    return [...rows("web", web), ...rows("worker", worker)];
  } finally {
    await redis.stop();
  }
}

interface Start {
  ms: number;
  megabytes: number;
}

function rows(name: string, { ms, megabytes }: Start): RelayRow[] {
  return [
    { name: `${name}, start to ready`, value: ms, unit: "ms", bar: "<= 1500" },
    { name: `${name}, resident when idle`, value: megabytes, unit: "MB", bar: "<= 150" },
  ];
}

async function started(redisUrl: string, program: string, ready: string): Promise<Start> {
  const times: number[] = [];
  let megabytes = 0;
  for (let round = 1; round <= rounds; round++) {
    const begun = performance.now();
    const env = { ...process.env, REDIS_URL: redisUrl, PORT: String(await freePort()) };
    const child = spawn(process.execPath, [program], { cwd: root, env, stdio: ["ignore", "pipe", "inherit"] });
    await says(child, ready);
    times.push(performance.now() - begun);
    if (round === rounds) megabytes = await idleMemory(child);
    child.kill();
    await once(child, "exit");
  }
  return { ms: times.sort((one, other) => one - other)[Math.floor(rounds / 2)] as number, megabytes };
}

function says(child: ChildProcess, words: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.stdout?.on("data", (said) => String(said).includes(words) && resolve());
    child.once("exit", (code) => reject(new Error(`It ended with ${code} before it was ready.`)));
  });
}

async function idleMemory(child: ChildProcess): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}
