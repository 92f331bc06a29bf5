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

/**
 * Buffers lines before pino's own writer, which measures its whole buffer for each line: without this, logging takes a fifth of a small
 * request's time.
 */
class Lines implements DestinationStream {
  // An asynchronous write could end after the last line, which the exit writes.
  readonly #writer = pino.destination({ dest: 1, sync: true });
  #pending = "";

  constructor() {
    setInterval(() => this.flushSync(), FLUSH_INTERVAL_MS).unref();
    process.on("exit", () => this.flushSync());
  }

  write(line: string): void {
    this.#pending += line;
    if (this.#pending.length >= MAX_BUFFERED_LENGTH) this.flushSync();
  }

  flush(): void {
    this.flushSync();
  }

  /** Writes what is buffered; pino calls it after a fatal line. */
  flushSync(): void {
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
