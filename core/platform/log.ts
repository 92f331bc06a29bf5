import process from "node:process";
import { pino } from "pino";
import type { Env } from "./env.ts";
import type { Log } from "./log-events.ts";

/** Bytes to buffer before a write, ms after which fewer are written, and bytes beyond which lines are lost while no write succeeds. */
const MAX_BUFFERED_BYTES = 4096;
const FLUSH_INTERVAL_MS = 250;
const MAX_UNWRITTEN_BYTES = 1_048_576;

// Synchronous: an asynchronous write could end after the last line, which the exit writes.
const buffering = {
  minLength: MAX_BUFFERED_BYTES,
  periodicFlush: FLUSH_INTERVAL_MS,
  maxLength: MAX_UNWRITTEN_BYTES,
};
const stdout = pino.destination({ dest: 1, sync: true, ...buffering });
// A full disk must not end the service; what is buffered by then is written once there is space.
stdout.on("error", () => {});
process.on("exit", () => stdout.flush());

/** Writes JSON lines to stdout in batches, with the level as a word. */
export function openLog(env: Env): Log {
  const options = {
    level: env.LOG_LEVEL,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (level: string) => ({ level }) },
  };
  return pino(options, stdout);
}
