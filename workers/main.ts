import process from "node:process";
import { DRAIN_MS, failStartup, shutdown, startProcess } from "../core/process.ts";
import { startWorkers } from "./run.ts";

const { runtime, stopSignal } = await startProcess("worker", process.env);
const { WORKER_QUEUES: queues } = runtime.env;
const workers = await startWorkers(runtime, queues).catch((error) => failStartup("worker", runtime.log, error));
runtime.log.info({ queues: queues.length === 0 ? "all" : queues }, "worker.ready");
runtime.log.flush();
// Running jobs finish or go back to their queue; longer answers end with an error chunk.
void stopSignal.then((signal) => shutdown("worker", runtime, () => workers.close(signal === "SIGTERM" ? DRAIN_MS : 0)));
