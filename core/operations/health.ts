import { queueNames } from "../../schemas/jobs.ts";
import { DIRTY_SHARDS, keys } from "../store/keys.ts";
import { ifPermitted, isRedisUnwritable, mastersOf } from "../store/redis.ts";
import type { IndexStatus, Runtime } from "../platform/runtime.ts";

/** What `/readyz` answers. */
export interface Readiness {
  status: "ready" | "not_ready" | "stopping";
  redis: "ok" | "unreachable" | "not_writable";
  queues: "ok" | "unreachable";
  /** Queues that no living worker serves. */
  queuesWithoutWorker: string[];
  /** Which index answers questions; absent while Redis is away. */
  knowledgeIndex?: IndexStatus;
}

/** Seconds for which a worker's sign of life counts. */
export const HEARTBEAT_TTL_SECONDS = 30;

/** Whether Redis can be reached and written, which queues have no worker, and whether this process was told to go. */
export async function readiness(runtime: Runtime): Promise<Readiness> {
  try {
    const beats = await Promise.all(queueNames.map((queue) => runtime.redis.exists(keys.heartbeat(queue))));
    await runtime.redis.set(keys.probe, "1", "EX", 60);
    return {
      status: runtime.shutdownController.signal.aborted ? "stopping" : "ready",
      redis: "ok",
      queues: "ok",
      queuesWithoutWorker: queueNames.filter((_, at) => beats[at] === 0),
      knowledgeIndex: await runtime.index.status(),
    };
  } catch (error) {
    const redis = isRedisUnwritable(error) ? "not_writable" : "unreachable";
    return { status: "not_ready", redis, queues: "unreachable", queuesWithoutWorker: [...queueNames] };
  }
}

/** Says that this worker serves its queues; called every 10 s. */
export async function heartbeat({ redis }: Runtime, queues: readonly string[]): Promise<void> {
  await Promise.all(queues.map((queue) => redis.set(keys.heartbeat(queue), "1", "EX", HEARTBEAT_TTL_SECONDS)));
}

/** What operators watch of Redis and of what is under way. */
export interface Stats {
  /** For each server of Redis, or the master that Sentinels name: bytes in use, and bytes allowed, 0 where there is no limit. */
  memory: { server: string; used: number; limit: number }[];
  /** Seconds since the oldest change whose jobs may still wait in an outbox; 0 where there is none. */
  outboxAge: number;
  /** Whether a living worker serves a queue. */
  served: { queue: string; living: boolean }[];
}

/** Reads them; rejects where Redis is away. */
export async function stats({ redis }: Pick<Runtime, "redis">): Promise<Stats> {
  const shards = Array.from({ length: DIRTY_SHARDS }, (_, shard) =>
    redis.zrange(keys.dirty(shard), 0, "0", "WITHSCORES"),
  );
  const [memory, marks, beats] = await Promise.all([
    Promise.all(mastersOf(redis).map(memoryOf)),
    Promise.all(shards),
    Promise.all(queueNames.map((queue) => redis.exists(keys.heartbeat(queue)))),
  ]);
  const now = Date.now();
  return {
    memory,
    outboxAge: Math.max(0, ...marks.map(([, at]) => (at === undefined ? 0 : (now - Number(at)) / 1000))),
    served: queueNames.map((queue, at) => ({ queue, living: beats[at] === 1 })),
  };
}

async function memoryOf(server: Runtime["redis"]): Promise<Stats["memory"][number]> {
  const info = (await ifPermitted(server.info("memory"))) ?? "";
  const bytes = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1] ?? 0);
  const { name, host, port } = server.options;
  return { server: name ?? `${host}:${port}`, used: bytes("used_memory"), limit: bytes("maxmemory") };
}
