import process from "node:process";
import { setInterval } from "node:timers";
import { type DestinationStream, pino } from "pino";
import type { Env } from "./env.ts";
import type { Log } from "./log-events.ts";

/** Characters to buffer before a write, and ms after which fewer are written. */
const MAX_BUFFERED_LENGTH = 12_288;
const FLUSH_INTERVAL_MS = 250;

/** Writes JSON lines to stdout in batches, with the level as a word. */
export function openLog(env: Env): Log {
  const options = {
    level: env.LOG_LEVEL,
    base: null,
    timestamp,
    formatters: { level: (level: string) => ({ level }) },
  };
  lines ??= new Lines();
  return pino(options, lines);
}

/** Flushes the log; the last call before a process exits. */
export function flushLog(log: Log): Promise<void> {
  return new Promise((resolve) => log.flush(() => resolve()));
}

/**
 * Buffers lines before pino's own writer, which measures its whole buffer for each line: without this, logging takes a fifth of a small
 * request's time.
 */
class Lines implements DestinationStream {
  readonly #writer = pino.destination({ dest: 1, sync: false, minLength: 1 });
  #pending = "";

  constructor() {
    setInterval(() => this.#write(), FLUSH_INTERVAL_MS).unref();
    process.on("exit", () => this.flushSync());
  }

  write(line: string): void {
    this.#pending += line;
    if (this.#pending.length >= MAX_BUFFERED_LENGTH) this.#write();
  }

  flush(done?: () => void): void {
    this.#write();
    this.#writer.flush(done);
  }

  /** Writes at once, for the last lines of a process. */
  flushSync(): void {
    this.#write();
    this.#writer.flushSync();
  }

  #write(): void {
    if (this.#pending === "") return;
    const lines = this.#pending;
    this.#pending = "";
    this.#writer.write(lines);
  }
}

/** One per process, like stdout. */
let lines: Lines | undefined;
let written = { at: 0, field: "" };

/** The time of a log line; lines of the same ms share its text. */
function timestamp(): string {
  const at = Date.now();
  if (at !== written.at) written = { at, field: `,"time":"${new Date(at).toISOString()}"` };
  return written.field;
}
