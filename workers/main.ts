import process from "node:process";
import { answersEndWithin, endWhenTold, sayReady, startProcess } from "../core/process.ts";
import { startWorkers } from "./run.ts";

const runtime = await startProcess("worker", process.env);
const { WORKER_QUEUES: queues } = runtime.env;
const workers = await startWorkers(runtime, queues);
sayReady(runtime.log, "worker.ready", { queues: queues.length === 0 ? "all" : queues });
// Finishes or hands back the jobs; answers that take longer end with an error chunk.
endWhenTold("worker", runtime, (patience) => workers.close(answersEndWithin * patience));
