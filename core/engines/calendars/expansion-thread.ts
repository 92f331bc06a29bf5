import { parentPort } from "node:worker_threads";
import { type Expansion, expandRecurrence } from "./recurrence.ts";

/** Thread entry: expands the objects of each batch and posts a result for each. */
parentPort?.on("message", (batch: Expansion) => {
  for (const expanded of expandRecurrence(batch)) parentPort?.postMessage(expanded);
});

parentPort?.postMessage("ready");
