import { parentPort } from "node:worker_threads";
import type { Batch, Expanded } from "./expansion.ts";
import { expand } from "./recurrence.ts";

/** Runs in a thread: expands each batch that it is given and says what came of it. */
parentPort?.on("message", ({ objects, ...asked }: Batch) => {
  const expanded = objects.map((object): Expanded => {
    try {
      return { taken: expand({ ...asked, objects: [object] }) };
    } catch (error) {
      return { taken: [], fault: (error as Error).message };
    }
  });
  parentPort?.postMessage(expanded);
});

parentPort?.postMessage("ready");
