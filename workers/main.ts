import process from "node:process";
import { readEnv } from "../core/env.ts";
import { flushLog, openLog, openRuntime } from "../core/open.ts";
import type { Runtime } from "../core/runtime.ts";
import { startWorkers } from "./run.ts";

/** Ms in which a process must have stopped after SIGTERM (contract 2), with some room. */
const stopsWithin = 24_000;
/** Ms in which answers that are being made end by themselves; those that take longer end with an error chunk. */
const answersEndWithin = 8000;

const env = read();
const log = openLog(env);
const runtime = await open();
const workers = await startWorkers(runtime, env.WORKER_QUEUES);
log.info({ queues: env.WORKER_QUEUES.length === 0 ? "all" : env.WORKER_QUEUES }, "worker.ready");
log.flush();
process.once("SIGTERM", () => void stop(answersEndWithin));
process.once("SIGINT", () => void stop(0));
process.on("unhandledRejection", (error) =>
  log.error({ error: (error as Error)?.stack ?? String(error) }, "unhandled"),
);

function read(): ReturnType<typeof readEnv> {
  try {
    return readEnv(process.env);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    return process.exit(1);
  }
}

/** A process that can't reach Redis at its start says so and goes; whoever runs it starts it again. */
async function open(): Promise<Runtime> {
  try {
    return await openRuntime(env, log);
  } catch (error) {
    log.fatal({ error: (error as Error).message }, "worker.not_started");
    return process.exit(1);
  }
}

/** Finishes or hands back the jobs and goes. */
async function stop(patience: number): Promise<void> {
  log.info("worker.stopping");
  setTimeout(() => process.exit(1), stopsWithin).unref();
  await workers.close(patience);
  await runtime.close();
  await flushLog(log);
  process.exit(0);
}
