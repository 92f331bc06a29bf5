import { readdirSync, readFileSync } from "node:fs";
import { Redis } from "ioredis";
import type { Member } from "./member.ts";
import type { ChaosTown } from "./town.ts";

/** One sample of an installation: figures by name, memory in MB. */
export type Sample = Record<string, number>;

/** Ms from which a key counts as permanent; keys with shorter lives vary with the load. */
const keptFrom = 3_600_000;

/** Memory, live heap and open handles of each process, and memory, connections and keys of Redis. */
export async function measure(town: ChaosTown): Promise<Sample> {
  const sample: Sample = {};
  for (const member of [...town.webs, ...town.workers]) Object.assign(sample, await ofProcess(member));
  return { ...sample, ...(await ofRedis(town.redis.url)) };
}

/** What the process still uses after a garbage collection; from Linux's /proc, resident memory, and open files, sockets and pipes. */
async function ofProcess(member: Member): Promise<Sample> {
  const { name, pid = 0 } = member;
  const live = (await member.liveHeap()) / 1_048_576;
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const kilobytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]);
  return {
    [`${name} MB`]: kilobytes / 1024,
    [`${name} live`]: live,
    [`${name} handles`]: readdirSync(`/proc/${pid}/fd`).length,
  };
}

async function ofRedis(url: string): Promise<Sample> {
  const redis = new Redis(url);
  const info = await redis.info();
  const figure = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1]);
  const { kept, passing } = await countKeys(redis);
  redis.disconnect();
  return {
    "Redis MB": figure("used_memory") / 1_048_576,
    "Redis connections": figure("connected_clients"),
    "kept keys": kept,
    "passing keys": passing,
  };
}

/** Permanent keys are records; the others expire, and those of finished jobs are trimmed by age and number. */
async function countKeys(redis: Redis): Promise<{ kept: number; passing: number }> {
  let kept = 0;
  let passing = 0;
  for await (const batch of redis.scanStream({ count: 1000 }) as AsyncIterable<string[]>) {
    const lives = await Promise.all(batch.map((key) => redis.pttl(key)));
    for (const [at, key] of batch.entries()) {
      const life = lives[at] as number;
      if (key.startsWith("queue:") || (life >= 0 && life < keptFrom)) passing++;
      else kept++;
    }
  }
  return { kept, passing };
}
