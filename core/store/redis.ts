import { type ChainableCommander, Cluster, type Command, Redis, type RedisOptions, ReplyError } from "ioredis";
import type { Env } from "../platform/env.ts";
import { isOutboundFailure } from "../platform/outbound.ts";

/**
 * Connects as the settings say, for commands or for blocking reads, which wait indefinitely. Commands fail within 2 s if Redis hangs;
 * commands that queue behind others fail within 4 s, and those that wait for the first connection within 10 s. A connection reconnects if
 * its server is no longer the master, or is silent while a reply is due. `forJobs` is for BullMQ, whose scripts ioredis copies onto each
 * pipeline: there commands are sent singly.
 */
export function connect(
  env: Env,
  purpose: "commands" | "blocking" = "commands",
  { forJobs = false }: { forJobs?: boolean } = {},
): Redis {
  const reconnectOnError = forJobs ? resendElsewhere : leaveDemoted();
  const options = { ...base, ...timeoutsMs[purpose], enableAutoPipelining: !forJobs, reconnectOnError };
  // Both classes have the commands used here; libraries expect the type Redis.
  const redis = env.REDIS_CLUSTER
    ? (clustered(env, options) as unknown as Redis)
    : new PunctualRedis(env.REDIS_URL, { ...options, ...secure(env), ...sentinels(env) });
  redis.on("error", (error: Error) => failures.set(redis, error));
  return redis.once("ready", () => wereReady.add(redis)).on("ready", () => failures.delete(redis));
}

type Options = Omit<RedisOptions, "replyMapping">;

const base = {
  connectTimeout: 3000,
  retryStrategy: (times: number) => Math.min(50 * 2 ** times, 1000),
};

/** Steps in which the time of a command is counted: see `limit`. */
const STEPS = 10;
/** Ms that commands may take which a process sends while it connects for the first time. */
const FIRST_TIMEOUT_MS = 10_000;

/**
 * `socketTimeout`: ms of silence, while a reply is due, after which the server counts as lost. A blocking read takes at most 10 s for
 * BullMQ and 1 s for the relay.
 */
const timeoutsMs = {
  commands: { maxRetriesPerRequest: 1, commandTimeout: 2000, socketTimeout: 3000 },
  blocking: { maxRetriesPerRequest: null, socketTimeout: 15_000 },
};

/** Ms between two reconnections because of error replies: a server with a full disk still answers reads. */
const RECONNECT_PAUSE_MS = 1000;

/**
 * Reconnects after a reply of a demoted server, since the master may be elsewhere now. The command itself fails: a write of a transaction
 * must not be repeated outside it.
 */
function leaveDemoted(): (error: Error) => boolean {
  let leftAt = 0;
  return (error) => {
    if (!isDemoted(error) || Date.now() - leftAt < RECONNECT_PAUSE_MS) return false;
    leftAt = Date.now();
    return true;
  };
}

/**
 * The same for BullMQ, which uses no transactions: the command is repeated on the new connection, so that finished jobs don't run twice.
 */
const resendElsewhere = (error: Error): boolean | 2 => isDemoted(error) && 2;

/** The master through its Sentinels; its user, password, database and TLS come from REDIS_URL. */
function sentinels(env: Env): object {
  if (env.REDIS_SENTINELS.length === 0) return {};
  const { REDIS_SENTINEL_MASTER: name = "", REDIS_SENTINEL_USERNAME, REDIS_SENTINEL_PASSWORD } = env;
  return {
    sentinels: env.REDIS_SENTINELS,
    name,
    sentinelCommandTimeout: timeoutsMs.commands.commandTimeout,
    sentinelRetryStrategy: base.retryStrategy,
    enableTLSForSentinelMode: env.REDIS_URL.startsWith("rediss:"),
    ...(REDIS_SENTINEL_USERNAME ? { sentinelUsername: REDIS_SENTINEL_USERNAME } : {}),
    ...(REDIS_SENTINEL_PASSWORD ? { sentinelPassword: REDIS_SENTINEL_PASSWORD } : {}),
    ...(env.REDIS_SENTINEL_TLS ? { sentinelTLS: { rejectUnauthorized: !env.REDIS_TLS_INSECURE } } : {}),
  };
}

/** The failure of each connection that isn't ready. */
const failures = new WeakMap<Redis, Error>();

/** The error of a command, with the failure of its connection as the cause: the command itself may only say that it gave up. */
export function withCause(redis: Redis, error: Error): Error {
  return Object.assign(error, { cause: failures.get(redis) ?? error.cause });
}

/** Why Redis can't be used, and what to do. */
export function describeAway(error: Error): string {
  const { message } = (error.cause ?? error) as Error;
  const advice = /certificate/.test(message)
    ? "; name its authority in NODE_EXTRA_CA_CERTS, or accept any certificate with REDIS_TLS_INSECURE=1"
    : "";
  return `Redis can't be used: ${message}${advice}`;
}

/** Connections that have been ready before. */
const wereReady = new WeakSet<Redis | Cluster>();
/**
 * Limits the time of a command, counted in steps: a process that was held up loses one step, and reads what the server has sent in the
 * others. With a single timer every command would fail although its reply is there, since timers fire first. The limit lasts when the
 * command is sent again on a new connection.
 */
function limit(redis: Redis | Cluster, command: Command & { isLimited?: true }, ms: number | undefined): void {
  if (ms === undefined || command.isLimited) return;
  command.isLimited = true;
  const { reject } = command;
  const stepMs = (wereReady.has(redis) ? ms : FIRST_TIMEOUT_MS) / STEPS;
  let left = STEPS;
  command.reject = (error) => {
    left -= 1;
    if (error.message === "Command timed out" && left > 0) setTimeout(command.reject, stepMs, error);
    else reject(error);
  };
  command.setTimeout(stepMs);
}

/** A connection whose commands fail in time; the first ones wait until it is ready. It is left once, however many commands ask for it. */
class PunctualRedis extends Redis {
  override sendCommand(...[command, ...more]: Parameters<Redis["sendCommand"]>): unknown {
    limit(this, command, this.options.commandTimeout);
    return super.sendCommand(command, ...more);
  }

  /** Each refused command asks for it. ioredis 6.0.0 adds a listener to the socket every time, until Node warns of a leak. */
  override disconnect(reconnect = false): void {
    if (!reconnect || !this.stream?.writableEnded) super.disconnect(reconnect);
  }
}

/**
 * A cluster connection that fails like a single one. A command that waits for a cluster without nodes fails in time: a node's own timeout
 * starts only once it has the command. After `disconnect` commands fail at once: ioredis 6.0.0 would keep them for ever.
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
    limit(this, command, this.options.redisOptions?.commandTimeout);
    return super.sendCommand(command, ...more);
  }
}

function clustered(env: Env, { enableAutoPipelining, retryStrategy, ...options }: Options): Cluster {
  const { username, password } = new URL(env.REDIS_URL);
  // Nodes that the first one announces use the same login, and the host name of their certificate.
  const login = {
    ...(username ? { username: decodeURIComponent(username) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
  };
  const cluster = new PunctualCluster([env.REDIS_URL], {
    enableAutoPipelining,
    clusterRetryStrategy: retryStrategy,
    slotsRefreshTimeout: base.connectTimeout,
    redisOptions: { ...options, ...login, ...secure(env) },
    ...(env.REDIS_URL.startsWith("rediss:") ? { dnsLookup: (name, done) => done(null, name) } : {}),
  });
  // ioredis forgets a node whose connection ends. Without a new map it would ask the others for its slots, and fail with MOVED.
  cluster.on("-node", () => {
    if (cluster.status === "ready") cluster.refreshSlotsCache();
  });
  return cluster;
}

/** The servers with keys: all masters of a cluster, or the one Redis. For scans over every key. */
export function mastersOf(redis: Redis): Redis[] {
  return redis instanceof Redis ? [redis] : (redis as unknown as Cluster).nodes("master");
}

/** The keys that match a pattern, in batches; some may come twice. It reads the whole key space: not for requests. */
export async function* scanKeys(redis: Redis, match: string): AsyncGenerator<string[]> {
  for (const server of mastersOf(redis)) yield* server.scanStream({ match, count: 1000 }) as AsyncIterable<string[]>;
}

function secure(env: Env): object {
  if (!env.REDIS_URL.startsWith("rediss:")) return {};
  return { tls: { rejectUnauthorized: !env.REDIS_TLS_INSECURE } };
}

/** Error codes of a server that can't serve anything now, or not to this user. */
const awayCodes = ["CLUSTERDOWN", "MOVED", "ASK", "OOM", "BUSY", "TRYAGAIN", "IOERR", "NOAUTH", "WRONGPASS", "NOPERM"];
/** Error codes of a server that may have lost its role: a replica, a master without its replicas or its disk, a loading server. */
const demotedCodes = ["READONLY", "MISCONF", "NOREPLICAS", "MASTERDOWN", "LOADING", "UNBLOCKED"];
/** Error codes of a server that refuses writes but may still answer reads. */
const unwritableCodes = ["READONLY", "MISCONF", "NOREPLICAS", "OOM"];

/** Messages of ioredis and the operating system about failed connections. */
const connectionFailures = new RegExp(
  [
    "MaxRetriesPerRequest|ClusterAllFailed|startup nodes|Cluster redirections|sentinels are unreachable",
    "Command timed out|Socket timeout|Connection is closed|due to connection close|Stream isn't writeable",
    "ECONN(REFUSED|RESET|ABORTED)|ETIMEDOUT|EPIPE|E(HOST|NET)UNREACH|ENOTFOUND|EAI_AGAIN",
  ].join("|"),
);

/** The code of an error reply: its first word, or that of the cause of a discarded transaction. */
function replyCode({ message }: Error): string {
  return /^(?:EXECABORT .*because of: )?([A-Z]+) /.exec(message)?.[1] ?? "";
}

function isDemoted(error: Error): boolean {
  return demotedCodes.includes(replyCode(error));
}

/** The command whose refusal discarded a transaction, as ioredis reports it. */
function causeOf(error: Error): Error {
  const { previousErrors: [refused] = [] } = error as { previousErrors?: Error[] };
  return refused ?? error;
}

/** True if Redis answers but refuses writes. */
export function isRedisUnwritable(error: unknown): boolean {
  return error instanceof Error && unwritableCodes.includes(replyCode(causeOf(error)));
}

/** True for errors that mean "Redis can't serve now" and not "the command was wrong". */
export function isRedisAway(error: unknown): boolean {
  if (!(error instanceof Error) || isOutboundFailure(error)) return false;
  const cause: NodeJS.ErrnoException = causeOf(error);
  if (!(cause instanceof ReplyError)) return connectionFailures.test(`${cause.name} ${cause.message} ${cause.code}`);
  return [...awayCodes, ...demotedCodes].includes(replyCode(cause)) || /max number of clients/.test(cause.message);
}

/** The reply to an administrative command; undefined if the server forbids it or doesn't know it, as some hosted ones do. */
export async function ifPermitted<T>(reply: Promise<T>): Promise<T | undefined> {
  try {
    return await reply;
  } catch (error) {
    if (error instanceof ReplyError && (!isRedisAway(error) || replyCode(error as Error) === "NOPERM"))
      return undefined;
    throw error;
  }
}

/** A flat reply, such as of WITHSCORES, as pairs. */
export function pairsOf(flat: string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, at) => [flat[at * 2] as string, flat[at * 2 + 1] as string]);
}

/** Runs a transaction that `fill` queues and returns its replies; a failed command fails the whole call. */
export async function transact(redis: Redis, fill: (transaction: ChainableCommander) => void): Promise<unknown[]> {
  const transaction = redis.multi();
  fill(transaction);
  return replies(redis, await transaction.exec());
}

/**
 * Sends commands in one round trip and returns their replies; the first failed one fails the call. All keys must have one hash tag.
 * Otherwise use `Promise.all` of single commands: it works on a cluster, and is one round trip to a single server too.
 */
export async function pipelined(redis: Redis, fill: (pipeline: ChainableCommander) => void): Promise<unknown[]> {
  const pipeline = redis.pipeline();
  fill(pipeline);
  return replies(redis, await pipeline.exec());
}

function replies(redis: Redis, results: [Error | null, unknown][] | null): unknown[] {
  if (results === null) throw new Error("The transaction was not run.");
  return results.map(([error, reply]) => {
    if (!error) return reply;
    // ioredis checks replies, but not the replies inside a transaction, such as the failure of a script.
    if (redis.options.reconnectOnError?.(error)) redis.disconnect(true);
    throw error;
  });
}
