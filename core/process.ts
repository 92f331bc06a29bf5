import process from "node:process";
import { setTimeout } from "node:timers";
import { openRuntime } from "./open.ts";
import { type Env, readEnv } from "./platform/env.ts";
import { openLog } from "./platform/log.ts";
import type { Log } from "./platform/log-events.ts";
import type { Runtime } from "./platform/runtime.ts";
import { describeAway, isRedisAway } from "./store/redis.ts";

/** Ms after the first signal at which an unfinished process exits anyway: most platforms send SIGKILL after 30 s. */
const SHUTDOWN_TIMEOUT_MS = 24_000;
/** Ms within which running answers may finish after SIGTERM. */
export const DRAIN_MS = 15_000;

/** A signal that stops a process: after SIGTERM running answers may finish, after SIGINT they are cut off. */
export type StopSignal = "SIGTERM" | "SIGINT";

/**
 * Opens the runtime of a process and listens for stop signals; returns both. From then on these end the process only as the caller decides.
 * A process that can't start logs one line and exits with status 1.
 */
export async function startProcess(
  name: "web" | "worker",
  settings: Record<string, string | undefined>,
): Promise<{ runtime: Runtime; stopSignal: Promise<StopSignal> }> {
  const stopSignal = firstStopSignal();
  const env = readSettings(settings);
  const log = openLog(env);
  // Some libraries print what they receive, such as words of a model; the log has events only.
  Object.assign(console, { log() {}, warn() {} });
  process.on("unhandledRejection", (error) =>
    log.error({ error: (error as Error)?.stack ?? String(error) }, "process.unhandled_error"),
  );
  try {
    return { runtime: await openRuntime(env, log), stopSignal };
  } catch (error) {
    return failStartup(name, log, error as Error);
  }
}

/** Logs in one line why a process can't start, and exits. */
export function failStartup(name: "web" | "worker", log: Log, error: Error): never {
  const reason = isRedisAway(error) ? describeAway(error) : error.message;
  log.fatal({ error: reason }, `${name}.start_failed`);
  return process.exit(1);
}

function readSettings(settings: Record<string, string | undefined>): Env {
  try {
    return readEnv(settings);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    return process.exit(1);
  }
}

/** Shuts a process down: logs, calls `stop`, closes the runtime, and exits with status 0. */
export async function shutdown(name: "web" | "worker", runtime: Runtime, stop: () => Promise<void>): Promise<never> {
  runtime.log.info({}, `${name}.stopping`);
  runtime.log.flush();
  runtime.shutdownController.abort();
  await stop();
  await runtime.close();
  runtime.log.info({}, `${name}.stopped`);
  return process.exit(0);
}

/**
 * The first SIGTERM or SIGINT. Later signals are ignored: a process group receives a signal as a whole, and npm forwards its own, so that
 * one request to stop arrives several times.
 */
function firstStopSignal(): Promise<StopSignal> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const)
      process.on(signal, () => {
        setTimeout(() => process.exit(1), SHUTDOWN_TIMEOUT_MS).unref();
        resolve(signal);
      });
  });
}
