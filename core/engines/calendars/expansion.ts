import { Worker } from "node:worker_threads";
import { fileOf } from "../../platform/files.ts";
import type { Expansion, Taken } from "./recurrence.ts";

/** Calendar objects that are expanded in one go; each one counts for itself. */
export type Batch = Expansion;

/** What came of one object: the time that it takes, or why it can't be read. */
export interface Expanded {
  taken: Taken[];
  fault?: string;
}

/** Ms in which a batch must be expanded, and one object that is tried by itself because its batch wasn't. */
const patience = 10_000;
const patienceForOne = 2_000;
/** Objects of a batch that may take too long before the batch is given up. */
const mostFaults = 5;
/** Ms in which a thread must have started. */
const startsWithin = 60_000;
/** Threads of a process, and ms without work after which one ends. */
const mostThreads = 2;
const idleFor = 30_000;

/** The thread's file, in the sources and in the build alike. */
const file = fileOf(`core/engines/calendars/expansion-thread.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`);

/**
 * Expands calendar objects in a thread, which is ended when it takes too long: calendars are others' word. An object that can't be
 * read or never ends takes no time and has a fault, and those beside it are none the worse. Throws where too many are like that.
 */
export async function expandApart(batch: Batch): Promise<Expanded[]> {
  const together = await run(batch, patience);
  if (together) return together;
  const found: Expanded[] = [];
  for (const object of batch.objects) {
    const alone = await run({ ...batch, objects: [object] }, patienceForOne);
    found.push(...(alone ?? [{ taken: [], fault: tooLong }]));
    if (found.filter(({ fault }) => fault === tooLong).length > mostFaults) throw new Error(tooLong);
  }
  return found;
}

const tooLong = "The calendar took too long to expand.";

const idle: Thread[] = [];
const waiting: (() => void)[] = [];
let threads = 0;

/** Undefined where the thread had to be ended or ended by itself; throws where it can't be started. */
async function run(batch: Batch, ms: number): Promise<Expanded[] | undefined> {
  while (threads >= mostThreads && idle.length === 0) await new Promise<void>((resolve) => waiting.push(resolve));
  const thread = idle.pop() ?? new Thread();
  try {
    return await thread.expand(batch, ms);
  } finally {
    if (!thread.isOver) idle.push(thread);
    waiting.shift()?.();
  }
}

/** A thread that expands one batch at a time and ends when it fails or has nothing to do for a while. */
class Thread {
  readonly #worker = new Worker(file, { resourceLimits: { maxOldGenerationSizeMb: 256 } });
  #isReady = false;
  #rest: NodeJS.Timeout | undefined;
  isOver = false;

  constructor() {
    threads++;
    this.#worker.unref();
  }

  async expand(batch: Batch, ms: number): Promise<Expanded[] | undefined> {
    clearTimeout(this.#rest);
    // What a thread needs to load its code is not the calendar's fault.
    if (!this.#isReady) await this.#answer(startsWithin);
    this.#isReady = true;
    this.#worker.postMessage(batch);
    const expanded = await this.#answer<Expanded[]>(ms).catch(() => undefined);
    if (expanded) this.#rest = setTimeout(() => this.end(), idleFor).unref();
    return expanded;
  }

  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    threads--;
    const at = idle.indexOf(this);
    if (at >= 0) idle.splice(at, 1);
    void this.#worker.terminate();
  }

  /** The next thing that the thread says; it is ended where it says nothing in time, or fails. */
  #answer<T>(ms: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const failed = (error: Error): void => {
        clearTimeout(timer);
        this.end();
        reject(error);
      };
      const timer = setTimeout(() => failed(new Error(tooLong)), ms);
      this.#worker.removeAllListeners("message").removeAllListeners("error");
      this.#worker.once("error", failed);
      this.#worker.once("message", (said: T) => {
        clearTimeout(timer);
        resolve(said);
      });
    });
  }
}
