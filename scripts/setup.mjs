/** Prepares a fresh machine: dependencies and a redis-server. Plain JavaScript without dependencies. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** The root folder of the checkout. */
export const root = fileURLToPath(new URL("..", import.meta.url));

/** A failure that a person can fix; printed without a stack trace. */
export class Unready extends Error {}

/** Runs a script's main function. An `Unready` is printed as one line, with exit status 1. */
export async function main(run) {
  try {
    await run();
  } catch (error) {
    process.stderr.write(`${error instanceof Unready ? error.message : error.stack}\n`);
    process.exitCode = 1;
  }
}

/** Installs the dependencies if they are missing or older than the lock file. `dev: false` installs only those of production. */
export async function ensureDependencies({ dev = true } = {}) {
  if (areInstalled(dev)) return;
  const locked = existsSync(join(root, "package-lock.json"));
  const include = dev ? ["--include=dev"] : [];
  const command = [locked ? "ci" : "install", ...include, "--no-audit", "--no-fund"];
  const status = await withProgress("Installing dependencies", runQuietly(npm, command));
  if (status !== 0) throw new Unready("The dependencies could not be installed; see the words of npm above.");
}

/** The path of `redis-server`, installed through apt if this user may; else throws an `Unready` that says how to get it. */
export async function ensureRedis() {
  const found = (await findProgram("redis-server")) ?? (await installed("redis-server", ["redis-server"]));
  if (found) return found;
  throw new Unready(
    "redis-server was not found: install it with `sudo apt-get install redis-server` (Debian, Ubuntu) or `brew install redis` (macOS), or set REDIS_URL.",
  );
}

/**
 * The path of a Chromium for the browser tests; undefined if there is none and none can be installed. Its headless shell takes half of the
 * processor time, so CI installs that one even where there is another.
 */
export async function ensureChromium() {
  const shell = "chromium-headless-shell";
  const found = (await findProgram(shell)) ?? (process.env.CI ? await installed(shell, [shell]) : undefined);
  return found ?? (await otherChromium()) ?? (await installed(shell, [shell])) ?? installed("chromium", ["chromium"]);
}

async function otherChromium() {
  for (const name of ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]) {
    const found = await findProgram(name);
    if (found) return found;
  }
  const application = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome";
  return existsSync(application) ? application : undefined;
}

/** The path of a CalDAV server for the calendar tests; undefined if there is none and none can be installed. */
export async function ensureRadicale() {
  const found = (await findProgram("radicale")) && (await findProgram("htpasswd"));
  return found ?? installed("radicale", ["radicale", "apache2-utils"]);
}

/** The path of an IMAP server for the bounce tests; undefined if there is none and none can be installed. */
export async function ensureDovecot() {
  return (await findProgram("dovecot")) ?? installed("dovecot", ["dovecot-imapd"]);
}

/** The path of a program on PATH, or undefined. */
export async function findProgram(name) {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    const path = join(folder, name);
    if (folder !== "" && (await isExecutable(path))) return path;
  }
  return undefined;
}

const npm = process.platform === "win32" ? "npm.cmd" : "npm";

/** True if every package of the lock file that this installation needs is installed in its version. */
function areInstalled(dev) {
  const there = packages("node_modules/.package-lock.json");
  const wanted = packages("package-lock.json") ?? {};
  if (there === undefined) return false;
  const needed = Object.entries(wanted).filter(
    ([place, { optional, dev: isDev }]) => place !== "" && !optional && (dev || !isDev),
  );
  return needed.every(([place, { version }]) => there[place]?.version === version);
}

function packages(file) {
  const path = join(root, file);
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")).packages : undefined;
}

/** Installs Debian packages and returns the program's path; undefined if that is not possible. */
async function installed(program, names) {
  const apt = process.platform === "linux" && process.getuid?.() === 0 && (await findProgram("apt-get"));
  if (!apt) return undefined;
  // RUNLEVEL keeps the package from starting a server.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const install = async () => {
    await runQuietly(apt, ["update", "-qq"], env);
    await runQuietly(apt, ["install", "-y", "-qq", "--no-install-recommends", ...names], env);
  };
  await withProgress(`Installing ${names.join(" ")}`, install());
  return findProgram(program);
}

/** Prints what is running, and every ten seconds that it still is. */
async function withProgress(words, work) {
  const started = Date.now();
  process.stderr.write(`${words} ...\n`);
  const tell = () => process.stderr.write(`${words} ... ${Math.round((Date.now() - started) / 1000)} s\n`);
  const timer = setInterval(tell, 10_000);
  return work.finally(() => clearInterval(timer));
}

/** Runs a command with its output on stderr, so that stdout stays free for results. Returns its exit status. */
function runQuietly(command, args, env = process.env) {
  const child = spawn(command, args, { cwd: root, env, stdio: ["ignore", 2, 2], shell: process.platform === "win32" });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => resolve(code ?? 1));
  });
}

async function isExecutable(path) {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
