import process from "node:process";
import { setTimeout } from "node:timers";
import { type Env, readEnv } from "./platform/env.ts";
import { flushLog, openLog } from "./platform/log.ts";
import { openRuntime } from "./open.ts";
import type { Log, Runtime } from "./platform/runtime.ts";

/** Ms in which a process must have stopped after SIGTERM (contract 2), with some room. */
const stopsWithin = 24_000;
/** Ms in which answers that are under way when a process is told to go may end by themselves. */
export const answersEndWithin = 15_000;

/** Opens the runtime of a process; one that can't start says so in one line and goes, and whoever runs it starts it again. */
export async function startProcess(
  name: "web" | "worker",
  settings: Record<string, string | undefined>,
): Promise<Runtime> {
  const env = read(settings);
  const log = openLog(env);
  process.on("unhandledRejection", (error) =>
    log.error({ error: (error as Error)?.stack ?? String(error) }, "process.unhandled_error"),
  );
  try {
    return await openRuntime(env, log);
  } catch (error) {
    return notStarted(name, log, error as Error);
  }
}

/** Says in one line why a process can't start, and ends it. */
export function notStarted(name: "web" | "worker", log: Log, { message }: Error): never {
  log.fatal({ error: message }, `${name}.start_failed`);
  return process.exit(1);
}

function read(settings: Record<string, string | undefined>): Env {
  try {
    return readEnv(settings);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    return process.exit(1);
  }
}

/** Operators and scripts wait for this line, so it doesn't wait for others. */
export function sayReady(log: Log, line: string, more: object): void {
  log.info(more, line);
  log.flush();
}

/**
 * Ends the process in order when it is told to: with patience on SIGTERM, at once on SIGINT. `stop` ends what it serves;
 * `patience` is 1 or 0, and its times are multiplied by it.
 */
export function endWhenTold(name: "web" | "worker", runtime: Runtime, stop: (patience: number) => Promise<void>): void {
  const end = async (patience: number): Promise<void> => {
    runtime.log.info(`${name}.stopping`);
    runtime.log.flush();
    setTimeout(() => process.exit(1), stopsWithin).unref();
    runtime.going.abort();
    await stop(patience);
    await runtime.close();
    await flushLog(runtime.log);
    process.exit(0);
  };
  process.once("SIGTERM", () => void end(1));
  process.once("SIGINT", () => void end(0));
}
