import type { RunChunk, RunEnd, RunSubscription } from "../../platform/runtime.ts";
import { END_GENERATION, RunLost, type RunRecord, readEntry } from "./runs.ts";

/** The reader took nothing for too long while chunks waited for it. */
export class ReaderStalled extends Error {
  override readonly name = "ReaderStalled";
}

/** What a follower needs of its run. */
export interface ChunkSource {
  /** Number of the newest chunk that this process knows of. */
  readonly head: number;
  /** Entries of the run's stream from an id on, "-" or "(id" (exclusive); fewer than `PAGE_SIZE` at the end of the stream. */
  fetch(from: string): Promise<[string, string[]][]>;
  /** Called when the follower has finished with the run, in any way. */
  leave(follower: Follower): void;
}

/** Entries per fetch. */
export const PAGE_SIZE = 200;
/** Chunks to buffer for a slow reader; beyond that it fetches them from the stream later. */
const MAX_BUFFERED_CHUNKS = 256;

/**
 * One reader of a run. It is live while each arriving record is the next one, and behind otherwise: at the start, after a gap, and when its
 * reader is slow. While behind, it reads the run's stream page by page until it has caught up.
 */
export class Follower implements RunSubscription {
  readonly #source: ChunkSource;
  readonly #room: RunChunk[] = [];
  #cursor: number;
  #generation = 0;
  #behind = true;
  #fetching: Promise<void> | undefined;
  #waiting: { resolve: (result: IteratorResult<RunChunk>) => void; reject: (reason: unknown) => void } | undefined;
  #outcome: RunEnd | "closed" | undefined;
  #failure: Error | undefined;
  #pulledAt = performance.now();
  #failingSince: number | undefined;

  constructor(source: ChunkSource, after: number) {
    this.#source = source;
    this.#cursor = after;
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
    if (value) return Promise.resolve({ value, done: false });
    if (this.#failure) return this.#throwOnce(this.#failure);
    if (this.#outcome) return Promise.resolve({ value: undefined, done: true });
    this.catchUp();
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  return(): Promise<IteratorResult<RunChunk>> {
    this.#room.length = 0;
    this.#settle("closed");
    return Promise.resolve({ value: undefined, done: true });
  }

  /** Takes a record that has just arrived. */
  receive(record: RunRecord): void {
    if (this.#behind || this.#outcome) return;
    this.#behind = this.#misses(record) || this.#room.length >= MAX_BUFFERED_CHUNKS;
    if (this.#behind) this.catchUp();
    else this.#take(record);
  }

  /** Reads the run's stream even if nothing seems to be missing. Resolves at the end of the stream or when the buffer is full. */
  poll(): Promise<void> {
    this.#behind = true;
    return this.catchUp();
  }

  /** Continues reading if the follower is behind and its buffer has room. */
  catchUp(): Promise<void> {
    if (!this.#behind || this.#outcome || this.#room.length >= MAX_BUFFERED_CHUNKS) return Promise.resolve();
    this.#fetching ??= this.#readPages().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
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

  /** Fails if the stream was unreadable, or lacked known chunks, for `limit` ms. */
  closeIfFailing(limit: number): void {
    if (this.#failingSince === undefined || performance.now() - this.#failingSince < limit) return;
    this.fail(new RunLost("The run can't be read."));
  }

  async #readPages(): Promise<void> {
    try {
      while (this.#behind && !this.#outcome && this.#room.length < MAX_BUFFERED_CHUNKS)
        if (!(await this.#readPage())) return;
      this.#failingSince = undefined;
    } catch {
      // Redis is away; retried with each poll of the process, until `closeIfFailing`.
      this.#failingSince ??= performance.now();
    }
  }

  /** Reads one page. False if the stream lacks chunks that the process knew of before the request. */
  async #readPage(): Promise<boolean> {
    const { head } = this.#source;
    const entries = await this.#source.fetch(this.#generation === 0 ? "-" : `(${this.#generation}-${this.#cursor}`);
    for (const entry of entries) this.#accept(readEntry(entry));
    if (entries.length === PAGE_SIZE || this.#outcome) return true;
    this.#behind = this.#cursor < this.#source.head;
    if (this.#cursor < head) this.#failingSince ??= performance.now();
    return this.#cursor >= head;
  }

  #accept(record: RunRecord): void {
    if (this.#outcome) return;
    if (this.#misses(record)) this.fail(new RunLost("Chunks are gone."));
    else this.#take(record);
  }

  /** True if chunks are missing between the last one read and this record. */
  #misses({ generation, last, chunks }: RunRecord): boolean {
    return (generation === END_GENERATION ? last : last - chunks.length) > this.#cursor;
  }

  #take(record: RunRecord): void {
    if (record.generation === END_GENERATION) this.#settle(record.chunks[0] as RunEnd);
    else this.#takeChunks(record);
  }

  #takeChunks({ generation, last, chunks }: RunRecord): void {
    this.#generation = generation;
    const first = last - chunks.length + 1;
    for (let at = Math.max(0, this.#cursor + 1 - first); at < chunks.length; at++)
      this.#put({ id: first + at, chunk: chunks[at]! });
    this.#cursor = Math.max(this.#cursor, last);
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
