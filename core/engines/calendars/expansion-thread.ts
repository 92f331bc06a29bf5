import { parentPort } from "node:worker_threads";
import type { Expanded } from "./expansion.ts";
import { type Expansion, expandRecurrence } from "./recurrence.ts";

/** Thread entry: expands the objects of each batch and posts a result for each. */
parentPort?.on("message", ({ objects, ...asked }: Expansion) => {
  let instances = 0;
  for (const object of objects) {
    // The calendar is abandoned at this number; further instances would only fill the memory.
    const expanded = instances > asked.maxInstances ? { taken: [] } : expandedOne(object, asked);
    instances += expanded.taken.length;
    parentPort?.postMessage(expanded);
  }
});

function expandedOne(object: string, asked: Omit<Expansion, "objects">): Expanded {
  try {
    return { taken: expandRecurrence({ ...asked, objects: [object] }) };
  } catch (error) {
    return { taken: [], fault: (error as Error).message.slice(0, 200) };
  }
}

parentPort?.postMessage("ready");
