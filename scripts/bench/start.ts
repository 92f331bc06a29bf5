import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { freePort } from "../../fixtures/ports.ts";
import { startRedis } from "../../fixtures/redis.ts";
import { type BenchRow, quantile } from "./figures.ts";
import { endProcess, program } from "./programs.ts";

/** Starts of each process; the median counts. */
const rounds = 5;
/** Ms after which an unused process counts as idle. */
const SETTLE_MS = 4000;

/** Time from the start of a process of dist/ until it is ready, and its memory then. */
export async function bench(): Promise<BenchRow[]> {
  const redis = await startRedis();
  try {
    const web = await started(redis.url, "dist/api/server.js");
    const worker = await started(redis.url, "dist/workers/main.js");
    return [...rows("web", web), ...rows("worker", worker)];
  } finally {
    await redis.stop();
  }
}

interface Start {
  ms: number;
  megabytes: number;
}

function rows(name: string, { ms, megabytes }: Start): BenchRow[] {
  return [
    { name: `${name}, start to ready`, value: ms, unit: "ms", bar: "<= 1500" },
    { name: `${name}, resident when idle`, value: megabytes, unit: "MB", bar: "<= 150" },
  ];
}

async function started(redisUrl: string, path: string): Promise<Start> {
  const times: number[] = [];
  let megabytes = 0;
  for (let round = 1; round <= rounds; round++) {
    const port = String(await freePort());
    const begun = performance.now();
    const child = await program([], path, { REDIS_URL: redisUrl, PORT: port });
    times.push(performance.now() - begun);
    if (round === rounds) megabytes = await idleMemory(child);
    await endProcess(child);
  }
  return { ms: quantile(times, 0.5), megabytes };
}

async function idleMemory(child: ChildProcess): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}
