import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { logEvents } from "../../core/platform/log-events.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Tells the live heap; see `liveHeap`. */
const teller = fileURLToPath(new URL("live-heap.mjs", import.meta.url));
/** Ms within which a process tells its live heap; one that has ended or hangs never does. */
const TELL_TIMEOUT_MS = 30_000;
/** The events of the log that tell of a defect. */
const defects = Object.entries(logEvents).flatMap(([name, { meaning }]) => (/: a defect\.$/.test(meaning) ? name : []));

/** One process of the service that can be killed and restarted: always the same program with the same settings. */
export class Member {
  readonly name: string;
  /** Lines of its log that tell of a defect. */
  readonly defects: string[] = [];
  /** Real ms of each unexpected and each requested end. */
  readonly ends: number[] = [];
  readonly #program: string;
  readonly #env: Record<string, string>;
  #child: ChildProcess | undefined;
  #isWanted = false;

  constructor(name: string, program: "api/server.js" | "workers/main.js", env: Record<string, string>) {
    this.name = name;
    this.#program = program;
    this.#env = env;
    // No process outlives this script.
    process.once("exit", () => this.#child?.kill("SIGKILL"));
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts it and waits until it is ready; if it can't start, as without Redis, retries each second. */
  async start(): Promise<void> {
    this.#isWanted = true;
    while (this.#isWanted && !(await this.#launch())) await new Promise((resolve) => setTimeout(resolve, 1000));
  }

  /** Sends a signal and waits for the end. */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    this.#isWanted = false;
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    this.ends.push(Date.now());
    child.kill(signal);
    await ended;
    this.ends.push(Date.now());
  }

  /** Bytes of its heap that are still in use after all garbage has been collected; fails if it doesn't tell them in time. */
  async liveHeap(): Promise<number> {
    const child = this.#child as ChildProcess;
    const told = once(child, "live heap", { signal: AbortSignal.timeout(TELL_TIMEOUT_MS) });
    child.kill("SIGUSR2");
    const [bytes] = await told;
    return Number(bytes);
  }

  #launch(): Promise<boolean> {
    const { PATH = "", HOME = "" } = process.env;
    const env = { PATH, HOME, ...this.#env };
    const child = spawn(process.execPath, ["--expose-gc", "--import", teller, `dist/${this.#program}`], {
      cwd: root,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    const ready = this.#program === "api/server.js" ? "web.ready" : "worker.ready";
    return new Promise((resolve) => {
      for (const stream of [child.stdout, child.stderr])
        createInterface({ input: stream }).on("line", (line) => {
          if (line.includes(ready)) resolve(true);
          if (line.startsWith("heap.live ")) child.emit("live heap", line.split(" ")[1]);
          if (defects.some((name) => line.includes(`"msg":"${name}"`))) this.defects.push(line);
        });
      child.once("exit", () => resolve(false));
    });
  }
}
