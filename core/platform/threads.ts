import { Worker } from "node:worker_threads";

/** Ms within which a thread must start, and ms of idleness after which it ends. */
const START_TIMEOUT_MS = 60_000;
const IDLE_MS = 30_000;
/** Ms for which answers that a thread has already posted are still received after its timeout. */
const GRACE_MS = 50;
/** Memory limit of a thread, which ends beyond it. */
const resourceLimits = { maxOldGenerationSizeMb: 256 };

/** A message for a thread and the number of answers to expect. */
interface ThreadQuestion {
  /** Askers are served round-robin, so that none waits for all messages of another. */
  asker: string;
  message: unknown;
  answers: number;
  /** Ms between two answers after which the thread is ended. */
  timeoutMs: number;
}

/**
 * Threads for untrusted work that may never end. The thread's file posts "ready" once it is loaded, takes one message at a time, and posts
 * each answer separately.
 */
export class Threads {
  readonly #file: URL;
  readonly #most: number;
  readonly #idle: Thread[] = [];
  /** Waiting messages by asker; the first asker of the map is next. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #running = 0;

  constructor(file: URL, most: number) {
    this.#file = file;
    this.#most = most;
  }

  /** The answers of a thread; fewer than expected if it timed out, ended or ran out of memory. Throws if it can't start. */
  async ask<A>(question: ThreadQuestion): Promise<A[]> {
    if (this.#running === this.#most) await this.#waitFor(question.asker);
    else this.#running += 1;
    const thread = this.#idle.pop() ?? new Thread(this.#file, (ended) => this.#forget(ended));
    try {
      return await thread.ask<A>(question);
    } finally {
      if (!thread.isOver) this.#idle.push(thread);
      this.#next();
    }
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

  #forget(thread: Thread): void {
    const at = this.#idle.indexOf(thread);
    if (at >= 0) this.#idle.splice(at, 1);
  }
}

class Thread {
  readonly #worker: Worker;
  readonly #ended: (thread: Thread) => void;
  #isReady = false;
  #rest: NodeJS.Timeout | undefined;
  /** Ends the wait for answers. */
  #giveUp: () => void = () => undefined;
  isOver = false;

  constructor(file: URL, ended: (thread: Thread) => void) {
    this.#ended = ended;
    this.#worker = new Worker(file, { resourceLimits });
    this.#worker.on("error", () => this.#end()).on("exit", () => this.#end());
    this.#worker.unref();
  }

  async ask<A>({ message, answers, timeoutMs }: ThreadQuestion): Promise<A[]> {
    clearTimeout(this.#rest);
    // Loading the thread's code doesn't count towards the timeout.
    if (!this.#isReady && (await this.#receive(1, START_TIMEOUT_MS)).length === 0)
      throw new Error("A thread did not start.");
    this.#isReady = true;
    this.#worker.postMessage(message);
    const heard = await this.#receive<A>(answers, timeoutMs);
    if (!this.isOver) this.#rest = setTimeout(() => this.#end(), IDLE_MS).unref();
    return heard;
  }

  #end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#giveUp();
    this.#ended(this);
    void this.#worker.terminate();
  }

  /** The next answers of the thread. If it posts none for `timeoutMs`, it is ended, and fewer than `enough` answers return. */
  #receive<A>(enough: number, timeoutMs: number): Promise<A[]> {
    return new Promise((resolve) => {
      const heard: A[] = [];
      let grace: NodeJS.Timeout | undefined;
      // The event loop was busy: posted answers arrive after the timer.
      const timer = setTimeout(() => {
        grace = setTimeout(() => this.#end(), GRACE_MS);
      }, timeoutMs);
      this.#giveUp = () => {
        clearTimeout(timer);
        clearTimeout(grace);
        this.#worker.removeAllListeners("message");
        resolve(heard);
      };
      this.#worker.on("message", (answer: A) => {
        heard.push(answer);
        clearTimeout(grace);
        if (heard.length === enough) this.#giveUp();
        else timer.refresh();
      });
    });
  }
}
