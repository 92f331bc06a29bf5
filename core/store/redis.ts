import { Cluster, Redis, ReplyError } from "ioredis";
import type { Env } from "../platform/env.ts";

/**
 * Connects by the settings. Commands fail within 2 s when Redis hangs: one that was called while others were under way is sent after
 * them and fails within 4 s, inside the 5 s of contract 1. `blocking` connections wait for ever. `forJobs`: for BullMQ, whose scripts ioredis copies onto each pipeline that it makes: there commands go one by one.
 */
export function connect(
  env: Env,
  purpose: "commands" | "blocking" = "commands",
  { forJobs = false }: { forJobs?: boolean } = {},
): Redis {
  const options = { ...(purpose === "commands" ? impatient : patient), enableAutoPipelining: !forJobs };
  // The commands used here are common to both classes; Redis is the type that libraries ask for.
  if (env.REDIS_CLUSTER) return clustered(env, options) as unknown as Redis;
  return new Redis(env.REDIS_URL, { ...base, ...options, ...secure(env) });
}

const base = {
  connectTimeout: 3000,
  retryStrategy: (times: number) => Math.min(50 * 2 ** times, 1000),
};
const impatient = { maxRetriesPerRequest: 1, commandTimeout: 2000 };
const patient = { maxRetriesPerRequest: null };

/**
 * A cluster connection that fails as a single one does. A command that waits for a cluster without nodes fails in time: a node's
 * own time starts only when it has the command. After `disconnect` commands fail at once: ioredis 6.0.0 keeps them for ever.
 */
class PunctualCluster extends Cluster {
  #isLeft = false;

  override disconnect(reconnect = false): void {
    this.#isLeft = !reconnect;
    super.disconnect(reconnect);
  }

  override sendCommand(...[command, ...more]: Parameters<Cluster["sendCommand"]>): unknown {
    if (this.#isLeft && this.status !== "ready") {
      command.reject(new Error("Connection is closed."));
      return command.promise;
    }
    const { commandTimeout } = this.options.redisOptions ?? {};
    if (commandTimeout !== undefined) command.setTimeout(commandTimeout);
    return super.sendCommand(command, ...more);
  }
}

function clustered(
  env: Env,
  { enableAutoPipelining, ...patience }: (typeof impatient | typeof patient) & { enableAutoPipelining: boolean },
): Cluster {
  const { connectTimeout, retryStrategy } = base;
  const { username, password } = new URL(env.REDIS_URL);
  // Nodes that the first one names are reached with the same words, and by the name that stands in their certificate.
  const login = {
    ...(username ? { username: decodeURIComponent(username) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
  };
  return new PunctualCluster([env.REDIS_URL], {
    enableAutoPipelining,
    clusterRetryStrategy: retryStrategy,
    slotsRefreshTimeout: connectTimeout,
    redisOptions: { connectTimeout, ...patience, ...login, ...secure(env) },
    ...(env.REDIS_URL.startsWith("rediss:") ? { dnsLookup: (name, done) => done(null, name) } : {}),
  });
}

/** The servers that hold keys: all masters of a cluster, or the one Redis. For what has to look at every key. */
export function mastersOf(redis: Redis): Redis[] {
  return redis instanceof Redis ? [redis] : (redis as unknown as Cluster).nodes("master");
}

function secure(env: Env): object {
  if (!env.REDIS_URL.startsWith("rediss:")) return {};
  return { tls: { rejectUnauthorized: !env.REDIS_TLS_INSECURE } };
}

/** True for errors that mean "Redis can't serve now" and not "the command was wrong". */
export function isRedisAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof ReplyError)
    return /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|MISCONF|OOM|BUSY|TRYAGAIN|NOREPLICAS) /.test(error.message);
  return /MaxRetriesPerRequest|ClusterAllFailed|startup nodes|Cluster redirections|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EPIPE|ENOTFOUND|Command timed out|Connection is closed|Stream isn't writeable/.test(
    `${error.name} ${error.message} ${(error as NodeJS.ErrnoException).code ?? ""}`,
  );
}

/** Runs a transaction that `fill` queues and returns its replies; a failed command fails the whole call. */
export async function transact(
  redis: Redis,
  fill: (transaction: ReturnType<Redis["multi"]>) => void,
): Promise<unknown[]> {
  const transaction = redis.multi();
  fill(transaction);
  return replies(await transaction.exec());
}

/**
 * Sends commands in one round trip and returns their replies; the first failed one fails the call. All keys have one tag: where
 * they haven't, `Promise.all` of single commands goes to each node of a cluster, and is one round trip to a single server too.
 */
export async function pipelined(
  redis: Redis,
  fill: (pipeline: ReturnType<Redis["pipeline"]>) => void,
): Promise<unknown[]> {
  const pipeline = redis.pipeline();
  fill(pipeline);
  return replies(await pipeline.exec());
}

function replies(results: [Error | null, unknown][] | null): unknown[] {
  if (results === null) throw new Error("The transaction was not run.");
  return results.map(([error, reply]) => {
    if (error) throw error;
    return reply;
  });
}
