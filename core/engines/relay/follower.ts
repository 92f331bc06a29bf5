import type { RunChunk, RunEnd, RunSubscription } from "../../platform/runtime.ts";
import { RunLost, readEntry, type StreamEntry } from "./runs.ts";

/** The reader took nothing for too long while chunks waited for it. */
export class ReaderStalled extends Error {
  override readonly name = "ReaderStalled";
}

/** What a follower needs of its run. */
interface ChunkSource {
  /** Reads the run's stream again from its start: the follower lacks chunks. */
  restart(): void;
  /** Called when the follower has finished with the run, in any way. */
  leave(follower: Follower): void;
}

/** Chunks to buffer for a slow reader; those beyond are read again when it has taken these. */
const MAX_BUFFERED_CHUNKS = 256;

/** One reader of a run. It gets the entries of the run's stream in order, some of them perhaps again, and takes what it lacks. */
export class Follower implements RunSubscription {
  readonly #source: ChunkSource;
  readonly #room: RunChunk[] = [];
  #last: number;
  #waiting: { resolve: (result: IteratorResult<RunChunk>) => void; reject: (reason: unknown) => void } | undefined;
  #outcome: RunEnd | "closed" | undefined;
  #failure: Error | undefined;
  #pulledAt = performance.now();
  /** True while the buffer is full: entries are ignored until the reader has emptied it. */
  isFull = false;

  /** `after`: number of the last chunk that the reader has. */
  constructor(source: ChunkSource, after: number) {
    this.#source = source;
    this.#last = after;
  }

  get outcome(): RunEnd | undefined {
    return this.#outcome === "closed" ? undefined : this.#outcome;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next chunk. Throws RunLost or ReaderStalled, once, after the chunks that came before the failure. */
  next(): Promise<IteratorResult<RunChunk>> {
    const value = this.#room.shift();
    this.#pulledAt = performance.now();
    if (this.isFull && this.#room.length === 0) this.#continue();
    if (value) return Promise.resolve({ value, done: false });
    if (this.#failure) return this.#throwOnce(this.#failure);
    if (this.#outcome) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  return(): Promise<IteratorResult<RunChunk>> {
    this.#room.length = 0;
    this.#settle("closed");
    return Promise.resolve({ value: undefined, done: true });
  }

  receive(entries: StreamEntry[]): void {
    for (const entry of entries) if (!this.isFull && !this.#outcome) this.#take(entry);
  }

  /** Ends reading with a failure. */
  fail(failure: Error): void {
    if (this.#outcome) return;
    this.#failure = failure;
    this.#settle("closed");
  }

  /** Closes the follower if its reader has taken nothing for `limit` ms. */
  closeIfStalled(limit: number): void {
    if (this.#room.length === 0 || performance.now() - this.#pulledAt < limit) return;
    this.#room.length = 0;
    this.fail(new ReaderStalled(`Nothing was taken for ${limit} ms.`));
  }

  #continue(): void {
    this.isFull = false;
    this.#source.restart();
  }

  #take(entry: StreamEntry): void {
    const { last, chunks, end } = readEntry(entry);
    if (last - chunks.length > this.#last) this.fail(new RunLost("Chunks are gone."));
    else if (end) this.#settle(end);
    else this.#takeChunks(chunks, last - chunks.length + 1);
  }

  #takeChunks(chunks: string[], first: number): void {
    for (const [at, chunk] of chunks.entries()) if (first + at > this.#last) this.#put({ id: first + at, chunk });
    this.#last = Math.max(this.#last, first + chunks.length - 1);
    this.isFull = this.#room.length >= MAX_BUFFERED_CHUNKS;
  }

  #put(value: RunChunk): void {
    if (!this.#waiting) {
      if (this.#room.push(value) === 1) this.#pulledAt = performance.now();
      return;
    }
    this.#waiting.resolve({ value, done: false });
    this.#waiting = undefined;
    this.#pulledAt = performance.now();
  }

  #settle(outcome: RunEnd | "closed"): void {
    if (this.#outcome) return;
    this.#outcome = outcome;
    if (outcome === "lost") this.#failure = new RunLost("The worker died.");
    this.#source.leave(this);
    if (this.#waiting) this.next().then(this.#waiting.resolve, this.#waiting.reject);
    this.#waiting = undefined;
  }

  #throwOnce(failure: Error): Promise<never> {
    this.#failure = undefined;
    return Promise.reject(failure);
  }
}
