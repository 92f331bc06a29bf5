import type { Redis } from "ioredis";
import { SessionTokens, signingKey, useSession } from "./account/face.ts";
import { openModel } from "./assistant/face.ts";
import { settleRefreshes } from "./engines/calendars/calendars.ts";
import { Relay } from "./engines/relay/relay.ts";
import { openIndex } from "./engines/search/search.ts";
import { openPayments } from "./payments/face.ts";
import { hour, openClock } from "./platform/clock.ts";
import type { Env } from "./platform/env.ts";
import { newId } from "./platform/ids.ts";
import { openLog } from "./platform/log.ts";
import type { Log } from "./platform/log-events.ts";
import { Outbound } from "./platform/outbound.ts";
import type { Runtime } from "./platform/runtime.ts";
import { openCredentials } from "./scheduling/face.ts";
import { keys } from "./store/keys.ts";
import { Queues } from "./store/outbox.ts";
import { connect, ifPermitted, withCause } from "./store/redis.ts";

/** Creates the process's Runtime from its settings. It is the only file that knows every implementation. Throws if Redis is unreachable. */
export async function openRuntime(env: Env, log: Log = openLog(env)): Promise<Runtime> {
  const connectLogged = ({ forJobs = false } = {}): Redis =>
    connect(env, "commands", { forJobs }).on("error", (error: Error) =>
      log.warn({ error: error.message }, "redis.connection_failed"),
    );
  const redis = connectLogged();
  const queues = new Queues({ redis, bull: connectLogged({ forJobs: true }), log });
  try {
    return await openWith({ env, log, redis, queues });
  } catch (error) {
    // Open connections would keep the process alive.
    await queues.close();
    redis.disconnect();
    throw withCause(redis, error as Error);
  }
}

async function openWith({ env, log, redis, queues }: Pick<Runtime, "env" | "log" | "redis"> & { queues: Queues }) {
  // The client would go on with database 0 if the server lacks the other one.
  if ((redis.options.db ?? 0) !== 0) await redis.select(redis.options.db as number);
  const own = await signingKey({ redis, env });
  const relay = new Relay({ redis, connect: () => connect(env, "blocking"), log });
  const info = (await ifPermitted(redis.info())) ?? "";
  const isCluster = env.REDIS_CLUSTER || /^cluster_enabled:1/m.test(info);
  const index = await openIndex(redis, { isCluster }, log);
  const outbound = new Outbound(env);
  const runtime: Runtime = {
    env,
    redis,
    redisKind: redisKindOf(env, index, isCluster),
    queues,
    relay,
    index,
    outbound,
    payments: openPayments(env, () => runtime),
    credentials: openCredentials(() => runtime),
    // The IMAP client is loaded only by the process that reads the mailbox.
    openBounces: async (address) => (await import("./engines/mail/mailbox.ts")).openMailbox(address),
    sendsAheadMs: hour,
    log,
    model: openModel(env),
    sessions: new SessionTokens(env, own, { outbound, isLive: (session) => useSession({ redis, log }, session) }),
    signingKey: own,
    now: await openClock(redis, env, keys.clockOrigin),
    id: newId,
    shutdownController: new AbortController(),
    async close() {
      await relay.close();
      await index.close();
      await settleRefreshes(redis);
      await outbound.close();
      await queues.close();
      redis.disconnect();
    },
  };
  log.info({ kind: runtime.redisKind, version: /^redis_version:(.*)$/m.exec(info)?.[1]?.trim() }, "redis.opened");
  await warnAboutRedis(runtime, info);
  return runtime;
}

/** How this installation runs Redis. Behind Sentinels the search module may be loaded too; the knowledge index reports that itself. */
function redisKindOf(env: Env, index: Runtime["index"], isCluster: boolean): Runtime["redisKind"] {
  if (env.REDIS_SENTINELS.length > 0) return "sentinel";
  if (isCluster) return "cluster";
  return index.kind === "redisearch" ? "module" : "plain";
}

/** Warns at startup about Redis settings that weaken the service's guarantees; on a cluster it checks one node. */
async function warnAboutRedis({ redis, log }: Runtime, info: string): Promise<void> {
  const value = (name: string): string => new RegExp(`^${name}:(.*)$`, "m").exec(info)?.[1]?.trim() ?? "";
  if (value("aof_enabled") === "0")
    log.warn(
      { advice: "Set appendonly yes: without it, accepted work does not survive a Redis crash." },
      "redis.persistence_off",
    );
  else await warnAboutFsync({ redis, log });
  const policy = value("maxmemory_policy");
  if (policy !== "" && policy !== "noeviction")
    log.warn({ policy, advice: "Set maxmemory-policy noeviction: Redis may evict records." }, "redis.eviction_unsafe");
}

const fsyncAdvice = "Set appendfsync always: with any other policy a crash may lose the latest accepted work.";

async function warnAboutFsync({ redis, log }: Pick<Runtime, "redis" | "log">): Promise<void> {
  // INFO doesn't contain this setting.
  const [, policy] = ((await ifPermitted(redis.config("GET", "appendfsync"))) ?? []) as string[];
  if (policy === undefined) log.warn({ advice: `CONFIG is not permitted. ${fsyncAdvice}` }, "redis.fsync_unknown");
  else if (policy !== "always") log.warn({ policy, advice: fsyncAdvice }, "redis.fsync_unsafe");
}
