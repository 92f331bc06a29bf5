/**
 * Proves a backup: copies the Redis of REDIS_URL as a replica would, restores the copy into a new redis-server on this machine, and counts.
 * `npm run -s drill` prints one JSON object and exits with status 1 if something is missing. The service may run meanwhile: writes during
 * the copy make the counts differ, but leave no list entry without its record.
 */
import { spawn } from "node:child_process";
import { mkdtemp, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import type { Redis } from "ioredis";
import { documentKey } from "../core/knowledge/documents.ts";
import { readEnv } from "../core/platform/env.ts";
import { keys } from "../core/store/keys.ts";
import { connect, mastersOf } from "../core/store/redis.ts";
import { type RedisOptions, startRedis } from "../fixtures/redis.ts";

/** The result for one server. */
interface Drill {
  server: string;
  /** Size of the copy in bytes, and seconds to make it and to restore it. */
  bytes: number;
  seconds: { copy: number; restore: number };
  /** Keys by kind, original and restored; only kinds whose numbers differ. */
  differences: Record<string, { there: number; restored: number }>;
  keys: number;
  /** Records that a list names and that the copy lacks. */
  missing: string[];
}

const batch = 1000;

/** Copies and restores each server of the installation. Needs `redis-cli` and `redis-server`. */
export async function drill(redis: Redis, settings: { url: string }): Promise<Drill[]> {
  const done: Drill[] = [];
  for (const server of mastersOf(redis)) done.push(await drillOne(server, settings.url));
  return done;
}

async function drillOne(server: Redis, url: string): Promise<Drill> {
  const dir = await mkdtemp(join(tmpdir(), "drill-"));
  try {
    const address = new URL(url);
    const { host = "", port = 0 } = addressOf(server);
    Object.assign(address, { hostname: host, port: String(port) });
    // redis-cli would use an empty user name.
    if (address.password) address.username ||= "default";
    const there = await kindsOf(server);
    const copy = await timed(() => run("redis-cli", ["-u", address.href, "--rdb", join(dir, "copy.rdb")]));
    await rename(join(dir, "copy.rdb"), join(dir, "dump.rdb"));
    const { size } = await stat(join(dir, "dump.rdb"));
    const found = await restored({ dir, single: true, settings: await modulesOf(server) }, there);
    return {
      server: `${host}:${port}`,
      bytes: size,
      ...found,
      seconds: { copy: copy.seconds, restore: found.seconds },
    };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** The address of a server; behind Sentinels, the one of the current connection. */
function addressOf({ options, stream }: Redis): { host?: string | undefined; port?: number | undefined } {
  return options.sentinels ? { host: stream.remoteAddress, port: stream.remotePort } : options;
}

/** Starts a server with the copy, counts everything, and ends the server. */
async function restored(options: RedisOptions, there: Map<string, number>) {
  const { value: server, seconds } = await timed(() => startRedis(options));
  const redis = connect(readEnv(server.env));
  try {
    const here = await kindsOf(redis);
    const kinds = [...new Set([...there.keys(), ...here.keys()])].sort();
    const counts = kinds.map((kind) => [kind, { there: there.get(kind) ?? 0, restored: here.get(kind) ?? 0 }] as const);
    const differences = Object.fromEntries(counts.filter(([, { there, restored }]) => there !== restored));
    const total = [...here.values()].reduce((sum, one) => sum + one, 0);
    return { seconds, keys: total, differences, missing: await missing(redis) };
  } finally {
    redis.disconnect();
    await server.stop();
  }
}

/** Settings that load the server's modules: without them a copy with their data can't be read. Built-in ones have no path. */
async function modulesOf(server: Redis): Promise<string[]> {
  const modules = (await server.call("MODULE", "LIST")) as unknown[][];
  return modules.flatMap((fields) => {
    const value = (name: string): unknown => fields[fields.indexOf(name) + 1];
    const path = fields.includes("path") ? String(value("path")) : "";
    return path === "" ? [] : ["--loadmodule", path, ...((value("args") ?? []) as string[])];
  });
}

async function kindsOf(server: Redis): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for await (const found of server.scanStream({ count: batch }) as AsyncIterable<string[]>)
    for (const key of found) {
      const kind = key.slice(0, key.indexOf(":"));
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
  return counts;
}

interface RecordList {
  list: (handle: string) => string;
  record: (handle: string, id: string) => string;
}

/** Each list of a handle and the records that it names, if they don't expire. */
const lists: RecordList[] = [
  { list: keys.pages, record: keys.page },
  { list: keys.documents, record: documentKey },
  { list: keys.leads, record: keys.lead },
  { list: keys.campaigns, record: keys.campaign },
  { list: keys.senders, record: keys.sender },
  { list: keys.templates, record: keys.template },
  { list: keys.schedules, record: keys.schedule },
  { list: keys.eventTypes, record: keys.eventType },
  { list: (handle) => keys.bookings(handle, "ALL"), record: keys.booking },
  { list: keys.webhooks, record: keys.webhook },
  { list: keys.credentials, record: keys.credential },
];

async function missing(redis: Redis): Promise<string[]> {
  const lost: string[] = [];
  const handle = /^handle:\{([^}]*)\}$/;
  for await (const found of redis.scanStream({ match: keys.handle("*"), count: batch }) as AsyncIterable<string[]>)
    for (const key of found) {
      const name = handle.exec(key)?.[1];
      if (name === undefined) continue;
      for (const one of [...lists, ...(await rulesOf(redis, name))]) lost.push(...(await missingOf(redis, name, one)));
    }
  return lost;
}

async function rulesOf(redis: Redis, handle: string): Promise<RecordList[]> {
  const campaigns = await redis.zrange(keys.campaigns(handle), 0, "-1");
  return campaigns.map((campaignId) => ({
    list: () => keys.rules(handle, campaignId),
    record: (_, ruleId) => keys.rule(handle, campaignId, ruleId),
  }));
}

async function missingOf(redis: Redis, handle: string, { list, record }: RecordList): Promise<string[]> {
  const names = (await redis.zrange(list(handle), 0, "-1")).map((id) => record(handle, id));
  const exists = await Promise.all(names.map((name) => redis.exists(name)));
  return names.filter((_, at) => exists[at] === 0);
}

async function timed<T>(work: () => Promise<T>): Promise<{ value: T; seconds: number }> {
  const started = performance.now();
  const value = await work();
  return { value, seconds: Math.round(performance.now() - started) / 1000 };
}

/** Runs a program; throws its error output if it fails. */
async function run(program: string, args: string[]): Promise<void> {
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (words) => (said += words));
  const code = await new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
  if (code !== 0) throw new Error(`${program} failed: ${said.trim().split("\n").at(-1)}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const env = readEnv(process.env);
  const redis = connect(env);
  await redis.ping();
  const servers = await drill(redis, { url: env.REDIS_URL }).finally(() => redis.disconnect());
  process.stdout.write(`${JSON.stringify({ servers }, null, 2)}\n`);
  if (servers.some(({ missing }) => missing.length > 0)) process.exitCode = 1;
}
