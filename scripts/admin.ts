import { mkdirSync, readFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { pino } from "pino";
import { attachDomain, detachDomain } from "../core/account/domains.ts";
import {
  createHandle,
  grantRole,
  mustExist,
  revokeRole,
  setEntitlement,
  setHandleActive,
} from "../core/account/handles.ts";
import { removeSessions, startSession } from "../core/account/session-store.ts";
import { signingKey } from "../core/account/signing.ts";
import { revokeTokens } from "../core/account/tokens.ts";
import { createCampaign } from "../core/campaigns/campaigns.ts";
import { reindexDocuments } from "../core/knowledge/reindex.ts";
import { openRuntime } from "../core/open.ts";
import { eraseHandle } from "../core/operations/erasure.ts";
import { failedJobs, retryJob } from "../core/operations/failed-jobs.ts";
import { exportHandle } from "../core/operations/handle-export.ts";
import { importHandle } from "../core/operations/handle-import.ts";
import { resealAll } from "../core/operations/rotation.ts";
import { isAddress } from "../core/platform/address.ts";
import { openClock } from "../core/platform/clock.ts";
import { readEnv } from "../core/platform/env.ts";
import { Fail, invalid } from "../core/platform/errors.ts";
import { newId } from "../core/platform/ids.ts";
import { type Role, type Runtime, roles } from "../core/platform/runtime.ts";
import { keys } from "../core/store/keys.ts";
import { Queues } from "../core/store/outbox.ts";
import { connect, describeAway, isRedisAway, withCause } from "../core/store/redis.ts";
import { handle as handleShape } from "../schemas/schema.ts";

/** The part of a Runtime that provisioning needs: without index and relay, so that a command is quick. */
type Admin = Pick<Runtime, "env" | "redis" | "queues" | "now" | "id" | "close">;

/** Command-line options by name: `needed` ones are present, flags are "yes". */
type Options<N extends string = string, M extends string = string> = Record<N, string> & Partial<Record<M, string>>;

interface Command {
  needed: readonly string[];
  optional: readonly string[];
  flags: readonly string[];
  run: (admin: Admin, options: Options) => Promise<unknown>;
}

/** Every command with its options. Each prints its result as one JSON object. */
const commands: Record<string, Command> = {
  "create-handle": command(
    { needed: ["handle", "account", "owner"], optional: ["email"], flags: ["no-assistant"] },
    async (admin, { "no-assistant": plain, ...asked }) => ({
      handle: await createHandle(admin, { ...asked, email: addressOf(asked), assistant: plain === undefined }),
    }),
  ),
  grant: command(
    { needed: ["handle", "user"], optional: ["role", "email"] },
    async ({ redis }, { handle, user, role, ...more }) => {
      const granted = { handle, userId: user, role: roleOf(role ?? "CREATOR") };
      await grantRole(redis, { ...granted, email: addressOf(more) });
      return granted;
    },
  ),
  revoke: command({ needed: ["handle", "user"], optional: ["role"] }, async ({ redis }, { handle, user }) => {
    await revokeRole(redis, { handle, userId: user });
    return { handle, userId: user, role: null };
  }),
  "sign-out": command({ needed: ["user"] }, async (admin, { user }) => ({
    userId: user,
    sessions: await removeSessions(admin.redis, user),
    tokens: await revokeTokens(admin, user),
  })),
  "deactivate-handle": command({ needed: ["handle"] }, async ({ redis }, { handle }) => {
    await setHandleActive(redis, handle, false);
    return { handle, active: false };
  }),
  "activate-handle": command({ needed: ["handle"] }, async ({ redis }, { handle }) => {
    await setHandleActive(redis, handle, true);
    return { handle, active: true };
  }),
  entitle: command({ needed: ["account"], optional: ["add", "remove"] }, entitle),
  "attach-domain": command(
    { needed: ["account", "domain"], optional: ["handle"], flags: ["ready"] },
    async (admin, { ready, ...asked }) => ({
      domain: await attachDomain(admin, { ...asked, ready: ready !== undefined }),
    }),
  ),
  "detach-domain": command({ needed: ["account", "domain"] }, async (admin, asked) => ({
    detached: await detachDomain(admin, asked),
  })),
  "create-campaign": command(
    { needed: ["handle", "name"], optional: ["campaign"], flags: ["not-live"] },
    async (admin, { handle, name, campaign, "not-live": still }) => {
      await mustExist(admin.redis, handle);
      return createCampaign(admin, { handle, name, campaignId: campaign, live: still === undefined });
    },
  ),
  token: command({ needed: ["user"], optional: ["email", "ttl"] }, token),
  "reindex-knowledge": command({ optional: ["handle"] }, async (admin, { handle }) => {
    if (handle !== undefined) await mustExist(admin.redis, handle);
    return { enqueued: await reindexDocuments(admin, handle) };
  }),
  "reseal-secrets": command({}, async (admin) => ({ resealed: await resealAll(admin) })),
  "failed-jobs": command({}, async (admin) => ({ jobs: await failedJobs(admin) })),
  "retry-job": command({ needed: ["id"] }, async (admin, { id }) => ({ job: await retryJob(admin, id) })),
  "export-handle": command({ needed: ["handle"], optional: ["file"] }, writeExport),
  "import-handle": command({ needed: ["file"], optional: ["handle", "account"] }, (admin, given) =>
    importHandle(admin, given),
  ),
  "erase-handle": command({ needed: ["handle"], flags: ["keep-grants"] }, erase),
};

await main(process.argv.slice(2));

/** Runs one command: prints its result as JSON to stdout, or its failure as JSON to stderr with exit status 1. */
async function main([name = "", ...words]: string[]): Promise<void> {
  try {
    const [row, options] = read(name, words);
    const admin = await openAdmin();
    const result = await row.run(admin, options).finally(() => admin.close());
    process.stdout.write(`${JSON.stringify(result)}\n`);
  } catch (error) {
    process.stderr.write(`${JSON.stringify({ error: failure(error) })}\n`);
    process.exitCode = 1;
  }
}

function command<const N extends string = never, const M extends string = never, const F extends string = never>(
  options: { needed?: readonly N[]; optional?: readonly M[]; flags?: readonly F[] },
  run: (admin: Admin, given: Options<N, M | F>) => Promise<unknown>,
): Command {
  const { needed = [], optional = [], flags = [] } = options;
  return { needed, optional, flags, run: run as Command["run"] };
}

/** The command's row and its options, checked. */
function read(name: string, words: string[]): [Command, Options] {
  const row = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (row === undefined) {
    const all = Object.keys(commands).join(", ");
    throw wrong(name === "" ? `Name a command: ${all}.` : `There is no command ${name}; there are ${all}.`);
  }
  const texts = [...row.needed, ...row.optional].map((option) => [option, { type: "string" }] as const);
  const flags = row.flags.map((option) => [option, { type: "boolean" }] as const);
  const usage = usageOf(name, row);
  const values = parsed(words, Object.fromEntries([...texts, ...flags]), usage);
  const given = Object.fromEntries(
    Object.entries(values).map(([option, value]) => [option, value === true ? "yes" : String(value)]),
  );
  if (row.needed.some((option) => !given[option]?.trim())) throw wrong(usage);
  for (const [option, value] of Object.entries(given)) checkValue(option, value);
  return [row, given];
}

/** All options of a command, as one sentence. */
function usageOf(name: string, { needed, optional, flags }: Command): string {
  const listed = (options: readonly string[]) => options.map((option) => `--${option}`).join(", ") || "no option";
  const more = [...optional, ...flags];
  return `${name} needs ${listed(needed)}${more.length === 0 ? "" : ` and takes ${listed(more)}`}.`;
}

function parsed(
  args: string[],
  options: NonNullable<Parameters<typeof parseArgs>[0]>["options"] & object,
  usage: string,
): Record<string, unknown> {
  try {
    return parseArgs({ args, options }).values;
  } catch (error) {
    throw wrong(`${(error as Error).message.replace(/\.?$/, ".")} ${usage}`);
  }
}

/** Handles have their own format; other ids become parts of keys and must not contain braces or spaces. */
function checkValue(option: string, value: string): void {
  if (option === "handle" && !new RegExp(String(handleShape.pattern)).test(value))
    throw invalid("/handle", "must be 1 to 63 lower-case letters, digits and hyphens");
  if (/^(account|owner|user)$/.test(option) && !/^[^\s{}]{1,255}$/.test(value))
    throw invalid(`/${option}`, "must be 1 to 255 characters without spaces and braces");
}

/** Connects as the environment says, else to the service that `npm run dev` runs. */
async function openAdmin(): Promise<Admin> {
  const env = readEnv({ ...developmentService(process.env.DATA_DIR ?? ".data"), ...process.env });
  const redis = connect(env);
  redis.on("error", () => undefined); // the command that fails says so
  const bull = connect(env, "commands", { forJobs: true }).on("error", () => undefined);
  const queues = new Queues({ redis, bull, log: pino({ level: "silent" }) });
  try {
    await redis.ping(); // queues wait for Redis without end
    return {
      env,
      redis,
      queues,
      now: await openClock(redis, env, keys.clockOrigin),
      id: newId,
      close: () => queues.close().finally(() => redis.disconnect()),
    };
  } catch (error) {
    bull.disconnect();
    redis.disconnect();
    throw withCause(redis, error as Error);
  }
}

function developmentService(folder: string): Record<string, string> {
  if (process.env.REDIS_URL || process.env.NODE_ENV === "production") return {};
  try {
    return JSON.parse(readFileSync(join(folder, "dev.json"), "utf8")).env;
  } catch {
    return {}; // nothing runs here; use the defaults
  }
}

async function entitle(
  { redis }: Admin,
  { account, add, remove }: Options<"account", "add" | "remove">,
): Promise<unknown> {
  const name = add ?? remove;
  if (name === undefined || (add && remove)) throw wrong("entitle needs --add or --remove.");
  if (!/^(marketing_tools|assistant)$/.test(name))
    throw invalid(add ? "/add" : "/remove", "is not one of marketing_tools, assistant");
  await setEntitlement(redis, account, name, add !== undefined);
  return { account, entitlement: name, has: add !== undefined };
}

async function token(
  { env, redis }: Admin,
  { user, email, ttl = "3600" }: Options<"user", "email" | "ttl">,
): Promise<unknown> {
  if (env.production) throw new Fail("forbidden", { detail: "Tokens are made here in development only." });
  const seconds = Number(ttl);
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > 1e9)
    throw invalid("/ttl", "must be an integer from 1 to 1000000000");
  const tools = { redis, env, id: newId, signingKey: await signingKey({ redis, env }) };
  const mail = email ? { email } : {};
  const session = { userId: user, ...mail, kind: "command-line" as const, device: "npm run admin -- token", seconds };
  return { token: (await startSession(tools, session)).token };
}

/** Other services are notified too, which needs a whole runtime. */
async function erase(
  { env }: Admin,
  { handle, "keep-grants": keep }: Options<"handle", "keep-grants">,
): Promise<unknown> {
  const runtime = await openRuntime(env, pino({ level: "silent" }));
  return eraseHandle(runtime, handle, { keepGrants: keep !== undefined }).finally(() => runtime.close());
}

/** Writes JSON lines, one a key between header and end, into a file that its owner alone may read. */
async function writeExport(admin: Admin, { handle, file }: Options<"handle", "file">): Promise<unknown> {
  await mustExist(admin.redis, handle);
  const path =
    file ?? join(admin.env.DATA_DIR, "exports", `${handle}-${new Date().toISOString().replaceAll(":", "-")}.jsonl`);
  mkdirSync(dirname(path), { recursive: true });
  const lines = await open(path, "w", 0o600);
  let count = 0;
  try {
    // A file that was there before has kept its mode; a device keeps its own.
    if ((await lines.stat()).isFile()) await lines.chmod(0o600);
    for await (const one of exportHandle(admin, handle)) {
      await lines.write(`${JSON.stringify(one)}\n`);
      if ("end" in one) count = one.keys;
    }
  } finally {
    await lines.close();
  }
  return { handle, file: path, keys: count };
}

function addressOf({ email }: { email?: string | undefined }): string | undefined {
  if (email !== undefined && !isAddress(email)) throw invalid("/email", "is not an email address");
  return email;
}

function roleOf(name: string): Role {
  const role = roles.find((one) => one === name);
  if (role === undefined) throw invalid("/role", `is not one of ${roles.join(", ")}`);
  return role;
}

function failure(error: unknown): { code: string; detail: string } {
  if (error instanceof Fail) {
    const inputs = error.details.errors?.map(({ path, message }) => `${path.slice(1)} ${message}`).join("; ");
    return { code: error.code, detail: inputs ?? error.message.slice(error.code.length + 2) };
  }
  if (isRedisAway(error)) return { code: "service_unavailable", detail: describeAway(error as Error) };
  return { code: "internal_error", detail: (error as Error).message };
}

function wrong(detail: string): Fail {
  return new Fail("invalid_request", { detail });
}
