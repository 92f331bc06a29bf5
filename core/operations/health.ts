import { queueNames } from "../../schemas/jobs.ts";
import type { IndexStatus, Runtime } from "../platform/runtime.ts";
import { keys, OUTBOX_SHARDS } from "../store/keys.ts";
import { ifPermitted, isRedisUnwritable, mastersOf } from "../store/redis.ts";

/** The response of `/readyz`. */
export interface Readiness {
  status: "ready" | "not_ready" | "stopping";
  redis: "ok" | "unreachable" | "not_writable";
  queues: "ok" | "unreachable";
  queuesWithoutWorker: string[];
  /** The index for questions; absent without Redis. */
  knowledgeIndex?: IndexStatus;
}

/** Lifetime of a worker's heartbeat, in seconds. */
const HEARTBEAT_TTL_SECONDS = 30;

/** Whether Redis can be read and written, which queues have no worker, and whether this process is shutting down. */
export async function readiness(runtime: Runtime): Promise<Readiness> {
  try {
    const served = await servedQueues(runtime.redis);
    await runtime.redis.set(keys.probe, "1", "EX", 60);
    return {
      status: runtime.shutdownController.signal.aborted ? "stopping" : "ready",
      redis: "ok",
      queues: "ok",
      queuesWithoutWorker: served.flatMap(({ queue, isAlive }) => (isAlive ? [] : [queue])),
      knowledgeIndex: await runtime.index.status(),
    };
  } catch (error) {
    const redis = isRedisUnwritable(error) ? "not_writable" : "unreachable";
    return { status: "not_ready", redis, queues: "unreachable", queuesWithoutWorker: [...queueNames] };
  }
}

/** Records that this worker serves its queues; called every 10 s. */
export async function heartbeat({ redis }: Runtime, queues: readonly string[]): Promise<void> {
  await Promise.all(queues.map((queue) => redis.set(keys.heartbeat(queue), "1", "EX", HEARTBEAT_TTL_SECONDS)));
}

function servedQueues(redis: Runtime["redis"]): Promise<{ queue: string; isAlive: boolean }[]> {
  const servedQueue = async (queue: string) => ({ queue, isAlive: (await redis.exists(keys.heartbeat(queue))) === 1 });
  return Promise.all(queueNames.map(servedQueue));
}

/** Redis and queue figures for operators. */
export type Stats = Awaited<ReturnType<typeof stats>>;

/**
 * Reads the figures; rejects without Redis. `outboxAgeSeconds` is the age of the oldest change whose jobs may still be in an outbox; 0 if
 * there is none. `mailAttempts` counts attempts to send a mail by their outcome. `mailWaitSeconds` is how long no worker has polled a
 * handle's due mail: the mail server is away, or too slow. `isDataLost` is true if Redis no longer has the signing key that this process
 * started with.
 */
export async function stats({ redis, signingKey }: Runtime) {
  const shards = Array.from({ length: OUTBOX_SHARDS }, (_, shard) =>
    redis.zrange(keys.pendingOutboxes(shard), 0, "0", "WITHSCORES"),
  );
  const [memory, registrations, served, [, turn = Number.POSITIVE_INFINITY], mailAttempts, key] = await Promise.all([
    Promise.all(mastersOf(redis).map(memoryOf)),
    Promise.all(shards),
    servedQueues(redis),
    redis.zrange(keys.emailLanes("normal"), 0, "0", "WITHSCORES"),
    redis.hgetall(keys.mailAttempts),
    redis.get(keys.signingKey),
  ]);
  const now = Date.now();
  return {
    memory,
    outboxAgeSeconds: Math.max(0, ...registrations.map(([, at]) => (at === undefined ? 0 : (now - Number(at)) / 1000))),
    mailWaitSeconds: Math.max(0, (now - Number(turn) / 1000) / 1000),
    mailAttempts,
    isDataLost: !key?.includes(signingKey.kid),
    served,
  };
}

/** The bytes that a server uses, its limit in bytes (0 for none), and whether it may evict records; the master's, if Sentinels name it. */
async function memoryOf(server: Runtime["redis"]) {
  const info = (await ifPermitted(server.info("memory"))) ?? "";
  const bytes = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1] ?? 0);
  const { name, host, port } = server.options;
  const evicts = /^maxmemory_policy:(?!noeviction)/m.test(info);
  return { server: name ?? `${host}:${port}`, used: bytes("used_memory"), limit: bytes("maxmemory"), evicts };
}
