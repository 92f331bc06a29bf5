/**
 * `npm run dev` runs the whole service from the sources, with a demo handle. It installs missing dependencies, starts what the service
 * needs, and ends everything with Ctrl-C.
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { bundle } from "./build.mjs";
import { Children, commandOf, signal } from "./children.mjs";
import { findLocalModels } from "./local-models.mjs";
import { demo, seed, seedCheckout, seedMail } from "./seed.mjs";
import { ensureDependencies, ensureRedis, main, root, Unready } from "./setup.mjs";

/** Ms within which everything must be ready. */
const TIMEOUT_MS = 60_000;
/** Lifetime of the printed token in seconds. */
const tokenLasts = 30 * 86_400;

const folder = resolve(root, process.env.DATA_DIR ?? ".data");
/** Describes the running service, for the admin command and for a second start. */
const note = join(folder, "dev.json");

/**
 * Servers that development needs. Each function gets the settings so far, starts its server as a child, and returns the settings with which
 * the service finds it and a line to print.
 */
const servers = [redis, mail, models, checkout];

await main(async () => {
  await ensureDependencies();
  await claim();
  const children = new Children(folder);
  endWith(children);
  try {
    await Promise.race([run(children), children.death.then((error) => Promise.reject(error))]);
  } finally {
    await children.stop();
    rmSync(note, { force: true });
  }
});

/** Starts everything, prints how to use it, and runs until it is stopped. */
async function run(children) {
  const settings = await development();
  const lines = [];
  say("Starting Redis, the mail server and the checkout ...");
  for (const server of servers) {
    const { env = {}, line } = await server(children, settings);
    Object.assign(settings, env);
    lines.push(...(line ? [line] : []));
  }
  say("Starting the service ...");
  write({ pid: process.pid, env: passedOn(settings), pids: children.pids });
  await bundle(join(root, "dist", "browser"));
  await Promise.all([
    service(children, "web", "api/server.ts", settings),
    service(children, "worker", "workers/main.ts", settings),
  ]);
  write({ pid: process.pid, env: passedOn(settings), pids: children.pids });
  await untilReady(settings.BASE_URL);
  say(`Writing the handle ${demo.handle} ...`);
  const token = await provision(settings);
  await seedMail(settings.BASE_URL, token);
  await seed(settings.BASE_URL, token);
  if (settings.STRIPE_CLIENT_ID === "ca_fixture") await seedCheckout(settings.BASE_URL, token);
  greet(settings, lines, token);
  await new Promise(() => undefined);
}

/** The settings of a development service; the environment wins. */
async function development() {
  const port = process.env.PORT || "8080";
  await mustBeFree(Number(port));
  const chosen = { PORT: port, BASE_URL: process.env.BASE_URL || `http://localhost:${port}`, DATA_DIR: folder };
  const defaults = {
    PUBLIC_PAGE_AGENT_ENABLED: "1",
    LOGIN_BUILTIN: "1",
    METRICS_TOKEN: randomBytes(12).toString("base64url"),
  };
  return { ...defaults, ...process.env, NODE_ENV: "development", ...chosen };
}

/** A private Redis that persists every command, or the one of REDIS_URL. */
async function redis(children, { REDIS_URL: given }) {
  if (given) return { line: ["Redis", `${given} (REDIS_URL)`] };
  const program = await ensureRedis();
  const dir = join(folder, "redis");
  mkdirSync(dir, { recursive: true });
  const port = await freePort();
  const durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", "", "--maxmemory-policy", "noeviction"];
  const command = [
    program,
    "--port",
    String(port),
    "--bind",
    "127.0.0.1",
    "--dir",
    dir,
    "--daemonize",
    "no",
    ...durable,
  ];
  await children.start("redis", command, { ready: "Ready to accept connections" });
  return {
    env: { REDIS_URL: `redis://127.0.0.1:${port}` },
    line: ["Redis", `redis://127.0.0.1:${port} (private, files in ${dir})`],
  };
}

/** A mail server that forwards nothing and shows all mail on a page, or the one of SMTP_URL. */
async function mail(children, { SMTP_URL: given }) {
  if (given) return { line: ["Mail", `goes out by ${new URL(given).host} (SMTP_URL)`] };
  const [smtpPort, pagePort] = [await freePort(), await freePort()];
  const command = [process.execPath, "scripts/smtp-sink.mjs", String(smtpPort), String(pagePort), join(folder, "mail")];
  await children.start("mail", command, { cwd: root, ready: "sink.ready" });
  const env = { SMTP_URL: `smtp://127.0.0.1:${smtpPort}` };
  return { env, line: ["Inbox", `http://127.0.0.1:${pagePort} (all mail ends here)`] };
}

/** A local Ollama with a chat model if there is one; otherwise answers quote the page. */
async function models(
  _children,
  { OLLAMA_HOST: host = "http://127.0.0.1:11434", PUBLIC_PAGE_AGENT_MODEL_ID: id, EMBEDDING_MODEL_ID },
) {
  if (id) return { line: ["Model", `${id} (PUBLIC_PAGE_AGENT_MODEL_ID)`] };
  const found = await findLocalModels(host);
  if (!found?.chat) {
    const why = found ? `Ollama at ${host} has no chat model` : `no Ollama answers at ${host}`;
    return { line: ["Model", `embedded-extractive (${why})`] };
  }
  const embedding = EMBEDDING_MODEL_ID ?? found.embedding;
  const env = {
    OLLAMA_HOST: host,
    PUBLIC_PAGE_AGENT_MODEL_ID: found.chat,
    ...(embedding ? { EMBEDDING_MODEL_ID: embedding } : {}),
  };
  return { env, line: ["Model", `${found.chat}, embeddings ${embedding ?? "none"} (Ollama at ${host})`] };
}

/** A checkout without money, unless a real one is configured: its page has one button that pays. */
async function checkout(children, { STRIPE_CLIENT_ID: given, BASE_URL }) {
  if (given) return { line: ["Checkout", "Stripe (STRIPE_CLIENT_ID)"] };
  const port = String(await freePort());
  const notices = `${BASE_URL}/v2/public/providers/stripe/webhook`;
  const command = [process.execPath, "--import", "tsx", "fixtures/providers/checkout.ts", port, notices];
  await children.start("checkout", command, { cwd: root, ready: "checkout.ready" });
  const url = `http://127.0.0.1:${port}`;
  const env = {
    STRIPE_CLIENT_ID: "ca_fixture",
    STRIPE_SECRET_KEY: "sk_test_fixture",
    STRIPE_WEBHOOK_SECRET: "whsec_fixture",
    STRIPE_CONNECT_BASE: url,
    STRIPE_API_BASE: url,
  };
  // The pages for sale link to its pages; its root is an API.
  return { env };
}

function service(children, name, source, env) {
  const command = [process.execPath, "--import", "./scripts/sources.mjs", source];
  return children.start(name, command, { cwd: root, env, ready: `"${name}.ready"` });
}

/** Ready means: Redis can be written and every queue has a worker. */
async function untilReady(base) {
  const until = Date.now() + TIMEOUT_MS;
  for (;;) {
    const answer = await fetch(`${base}/readyz`).catch((error) => error);
    const state = answer instanceof Error ? undefined : await answer.json();
    if (answer.ok && state.queuesWithoutWorker.length === 0) return;
    const said = state ? JSON.stringify(state) : `${base} can't be reached: ${(answer.cause ?? answer).message}`;
    if (Date.now() > until) throw new Unready(`Not ready within ${TIMEOUT_MS / 1000} s: ${said}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Creates the demo handle and returns a token of its owner. */
async function provision(env) {
  const { handle, account, owner, email } = demo;
  const admin = (...words) =>
    promisify(execFile)(process.execPath, ["scripts/run.mjs", "admin", ...words], { cwd: root, env });
  await admin("create-handle", "--handle", handle, "--account", account, "--owner", owner, "--email", email);
  await admin("attach-domain", "--account", account, "--domain", demo.mailDomain, "--ready");
  const { stdout } = await admin("token", "--user", owner, "--email", email, "--ttl", String(tokenLasts));
  return JSON.parse(stdout).token;
}

function say(words) {
  process.stderr.write(`${words}\n`);
}

function greet({ BASE_URL: base, METRICS_TOKEN: password }, lines, token) {
  const page = (slug) => `${base}/p/${demo.handle}/${slug}`;
  const slug = demo.pages[0].pageSlug;
  const queues = new URL("/queues", base);
  Object.assign(queues, { username: "dev", password });
  const body = JSON.stringify({ messages: [{ role: "user", parts: [{ type: "text", text: demo.question }] }] });
  const about = [
    ["Page", page(slug)],
    ["In German", page("werkstatt")],
    ["For sale", `${page("route-book")} (the checkout takes no money)`],
    ["Booking", `${base}/apps/public/scheduling/${demo.handle}`],
    ["Sign in", `${base}/login (as ${demo.email}; the code comes to the inbox)`],
    ["API", `${base}/docs`],
    ["Queues", queues.href],
    ...lines,
    ["Logs", join(folder, "*.log")],
  ];
  process.stdout.write(`
The service is ready.

${about.map(([name, text]) => `  ${name.padEnd(9)} ${text}`).join("\n")}

Token of the owner of the handle ${demo.handle}, for 30 days:

  DEMO=${token}

This streams an answer:

  curl -N -X POST ${base}/v2/public/pages/${demo.handle}/${slug}/agentic-chat \\
    -H 'content-type: application/json' \\
    -d '${body}'

Ctrl-C ends all of it.
`);
}

/** Makes this the only instance in its folder; ends what a killed instance left running. */
async function claim() {
  mkdirSync(folder, { recursive: true });
  try {
    writeFileSync(note, JSON.stringify({ pid: process.pid }), { flag: "wx" });
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    await takeOver();
  }
}

async function takeOver() {
  const { pid, env, pids = {} } = JSON.parse(readFileSync(note, "utf8") || "{}");
  if (pid && commandOf(pid)?.includes("dev.mjs")) {
    const where = env ? ` at ${env.BASE_URL}` : "";
    throw new Unready(
      `The service is running already${where} (process ${pid}). End it first, or set DATA_DIR and PORT for a second one.`,
    );
  }
  await Promise.all(Object.values(pids).map(endLeft));
  rmSync(note, { force: true });
  await claim();
}

/** Two servers in one Redis folder would corrupt it: waits until the old one has ended. */
async function endLeft(pid) {
  const isOurs = () => /redis-server|--import (tsx|\.\/scripts\/sources\.mjs)|smtp-sink/.test(commandOf(pid) ?? "");
  if (isOurs()) signal(pid, "SIGTERM");
  const until = Date.now() + TIMEOUT_MS;
  while (isOurs() && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 100));
  if (isOurs()) throw new Unready(`Process ${pid} of an earlier start does not end; end it by hand.`);
}

function write(content) {
  writeFileSync(note, JSON.stringify(content, null, 2));
}

/** The settings with which other programs find this service. */
function passedOn({ REDIS_URL, PORT, BASE_URL, DATA_DIR, SECRET_KEY }) {
  return { REDIS_URL, PORT, BASE_URL, DATA_DIR, ...(SECRET_KEY ? { SECRET_KEY } : {}) };
}

/** The first signal ends the children in order, a later one at once. npm forwards signals, so that one Ctrl-C arrives twice. */
function endWith(children) {
  let last = 0;
  const end = async () => {
    const sincePrevious = Date.now() - last;
    if (sincePrevious < 500) return;
    if (last > 0) children.kill();
    last = Date.now();
    await children.stop();
    rmSync(note, { force: true });
    process.exit(0);
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, end);
  // A killed npm can't forward a signal.
  const parent = process.ppid;
  const look = setInterval(() => {
    if (process.env.npm_lifecycle_event !== "dev" || process.ppid === parent) return;
    clearInterval(look);
    end();
  }, 1000).unref();
}

async function mustBeFree(port) {
  if (!(await isFree(port))) throw new Unready(`Port ${port} is taken; set PORT to another one.`);
}

function isFree(port) {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once("error", () => resolve(false));
    probe.listen(port, () => probe.close(() => resolve(true)));
  });
}

function freePort() {
  const probe = createServer();
  return new Promise((resolve, reject) => {
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
