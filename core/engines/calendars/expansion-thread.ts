import { parentPort } from "node:worker_threads";
import type { ThreadMessage } from "./expansion.ts";
import { expandObject } from "./recurrence.ts";

/** Thread entry: expands the object of each message. */
parentPort?.on("message", (message: ThreadMessage) => parentPort?.postMessage(expandObject(...message)));

parentPort?.postMessage("ready");
