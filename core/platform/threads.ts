import { once } from "node:events";
import { clearTimeout, setTimeout } from "node:timers";
import { Worker } from "node:worker_threads";

/** Ms within which a thread must start, and ms of idleness after which all idle threads end. */
const START_TIMEOUT_MS = 60_000;
const IDLE_MS = 30_000;
/** Ms for which an answer that a thread has already posted is still received after its timeout: this event loop may have been busy. */
const GRACE_MS = 50;
/** Memory limit of a thread, which ends beyond it. */
const resourceLimits = { maxOldGenerationSizeMb: 256 };

interface ThreadQuestion {
  /** Askers are served round-robin, so that none waits for all messages of another. */
  asker: string;
  message: unknown;
  /** Ms after which the thread is ended. */
  timeoutMs: number;
}

/** Threads for untrusted work that may never end. The thread's file posts "ready" once it is loaded, then one answer to each message. */
export class Threads {
  readonly #file: URL;
  readonly #most: number;
  readonly #idle: Worker[] = [];
  readonly #ended = new WeakSet<Worker>();
  readonly #rest = setTimeout(() => this.#endIdle(), IDLE_MS).unref();
  /** Waiting messages by asker; the first asker of the map is next. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #running = 0;

  constructor(file: URL, most: number) {
    this.#file = file;
    this.#most = most;
  }

  /** The answer of a thread; undefined if it timed out, failed or ran out of memory. Throws if it can't start. */
  async ask<A>({ asker, message, timeoutMs }: ThreadQuestion): Promise<A | undefined> {
    if (this.#running === this.#most) await this.#waitFor(asker);
    else this.#running += 1;
    try {
      const thread = this.#idle.pop() ?? (await this.#start());
      thread.postMessage(message);
      const answer = await answerOf<A>(thread, timeoutMs);
      // It may have failed right after its answer.
      if (answer !== undefined && !this.#ended.has(thread)) this.#idle.push(thread);
      return answer;
    } finally {
      this.#rest.refresh();
      this.#next();
    }
  }

  /** Loading the thread's code doesn't count towards the timeout of its first message. */
  async #start(): Promise<Worker> {
    const thread = new Worker(this.#file, { resourceLimits });
    thread.unref();
    // A thread may fail while nobody waits for its answer; an error without a listener would end the process.
    thread.on("error", () => this.#forget(thread)).on("exit", () => this.#forget(thread));
    if ((await answerOf(thread, START_TIMEOUT_MS)) === undefined) throw new Error("A thread did not start.");
    return thread;
  }

  #forget(thread: Worker): void {
    this.#ended.add(thread);
    const at = this.#idle.indexOf(thread);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  #waitFor(asker: string): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.set(asker, [...(this.#waiting.get(asker) ?? []), resolve]);
    });
  }

  /** Gives the thread to the next asker; an asker with further messages goes to the end. */
  #next(): void {
    const [asker = "", [resolve, ...others] = []] = this.#waiting.entries().next().value ?? [];
    this.#waiting.delete(asker);
    if (others.length > 0) this.#waiting.set(asker, others);
    if (resolve) resolve();
    else this.#running -= 1;
  }

  #endIdle(): void {
    for (const thread of this.#idle.splice(0)) void thread.terminate();
  }
}

/** The next answer of a thread, which is ended if it posts none in time or fails. */
async function answerOf<A>(thread: Worker, timeoutMs: number): Promise<A | undefined> {
  const stop = new AbortController();
  const timer = setTimeout(() => setTimeout(() => stop.abort(), GRACE_MS), timeoutMs);
  try {
    const [answer] = (await once(thread, "message", { signal: stop.signal })) as [A];
    return answer;
  } catch {
    // The time is up, or the thread has failed.
    void thread.terminate();
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
