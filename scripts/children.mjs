/** Processes that a script starts and ends, by their ids. */
import { execFileSync, spawn } from "node:child_process";
import { createWriteStream, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { Unready } from "./setup.mjs";

/** Ms within which a process must shut down; the service itself takes at most 25 s. */
const TIMEOUT_MS = 26_000;
/** Log lines of a dead process to show. */
const lastLines = 15;

export class Children {
  #folder;
  #list = [];
  #stopping = false;
  #died;
  /** Resolves with an Unready that names a process that ended unexpectedly, with its last log lines. */
  death = new Promise((resolve) => {
    this.#died = resolve;
  });

  /** `folder` receives each child's output as `<name>.log`. */
  constructor(folder) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
  }

  /** The ids of all children by name. */
  get pids() {
    return Object.fromEntries(this.#list.map(({ name, child }) => [name, child.pid]));
  }

  /** Starts a program; resolves once it prints `ready`, if that is given. */
  async start(name, [command, ...args], { env = process.env, cwd, ready } = {}) {
    // A separate process group: Ctrl-C reaches only the script, which ends its children in order.
    const child = spawn(command, args, { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    const one = { name, child, tail: [] };
    this.#list.push(one);
    const log = createWriteStream(join(this.#folder, `${name}.log`));
    const started = new Promise((resolve) => {
      const hear = (line) => {
        log.write(`${line}\n`);
        one.tail = [...one.tail, line].slice(-lastLines);
        if (isWorthShowing(line)) process.stderr.write(`${name}: ${line}\n`);
        if (ready && line.includes(ready)) resolve();
      };
      for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on("line", hear);
      if (!ready) resolve();
    });
    one.ended = new Promise((resolve) => child.once("close", resolve));
    child.once("error", (error) => one.tail.push(error.message));
    one.ended.then((status) => this.#stopping || this.#died(lastWords(one, status)));
    await Promise.race([started, this.death.then((error) => Promise.reject(error))]);
  }

  /** Ends all children, the last one first. */
  async stop() {
    this.#stopping = true;
    for (const { child, ended } of this.#list.reverse()) {
      signal(child.pid, "SIGTERM");
      const late = setTimeout(() => signal(child.pid, "SIGKILL"), TIMEOUT_MS);
      await ended;
      clearTimeout(late);
    }
  }

  /** Ends all children at once. */
  kill() {
    this.#stopping = true;
    for (const { child } of this.#list) signal(child.pid, "SIGKILL");
  }
}

/** Sends a signal to a process, if it exists. */
export function signal(pid, name) {
  try {
    if (pid !== undefined) process.kill(pid, name);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

/** The command line of a running process, or undefined. */
export function commandOf(pid) {
  try {
    if (process.platform === "linux") return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
    return execFileSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" });
  } catch {
    return undefined; // there is no such process
  }
}

/** Warnings and errors of the service's log. */
function isWorthShowing(line) {
  return /^\{.*"level":"(warn|error|fatal)"/.test(line);
}

function lastWords({ name, tail }, status) {
  return new Unready(`${name} ended by itself (${status ?? "by a signal"}). Its last words:\n${tail.join("\n")}`);
}
