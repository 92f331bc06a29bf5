import { randomUUID } from "node:crypto";
import type { RunChunk, RunEnd, RunSubscription, SubscribeOptions } from "../../platform/runtime.ts";
import { keys } from "../../store/keys.ts";
import { scripts } from "../../store/scripts.ts";
import { endRun, type RelayTools, RunLost, readEntry, runKeys, type StreamEntry } from "./runs.ts";

/** The process that reads for its followers. */
interface ChunkSource {
  /** Calls the next blocking read: it lacks this follower. */
  wake(): void;
  /** The follower has finished with its run, in any way. */
  forget(follower: Follower): void;
}

/** Chunks to buffer for a slow reader; those beyond are read when it has taken these. */
const MAX_BUFFERED_CHUNKS = 256;

/** One reader of a run, with a lease. It gets entries of the run's stream in order, some of them perhaps again, and takes what it lacks. */
export class Follower implements RunSubscription {
  readonly #tools: RelayTools;
  readonly #source: ChunkSource;
  readonly #runId: string;
  readonly #id = randomUUID();
  readonly #isResumable: boolean;
  readonly #startedAt = performance.now();
  readonly #buffer: RunChunk[] = [];
  /** Number of the last chunk that was buffered. */
  #last: number;
  #outcome: RunEnd | "closed" | undefined;
  #failure: Error | undefined;
  #wakeNext: (() => void) | undefined;
  #renewAt = 0;
  #leasedAt = this.#startedAt;
  /** The key of the run's stream, and the id of the last entry that was taken. */
  readonly key: string;
  position = "0";
  /** False while the buffer is full and not yet emptied. */
  hasRoom = true;

  constructor(
    tools: RelayTools,
    source: ChunkSource,
    { runId, after = 0, resumable = false }: SubscribeOptions & { runId: string },
  ) {
    this.#tools = tools;
    this.#source = source;
    this.#runId = runId;
    this.#last = after;
    this.#isResumable = resumable;
    this.key = keys.runChunks(runId);
  }

  get outcome(): RunEnd | undefined {
    return this.#outcome === "closed" ? undefined : this.#outcome;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next chunk. Throws RunLost, once, after the chunks that came before the failure. */
  async next(): Promise<IteratorResult<RunChunk>> {
    for (;;) {
      const value = this.#buffer.shift();
      if (!this.hasRoom && this.#buffer.length === 0) {
        this.hasRoom = true;
        this.#source.wake();
      }
      if (value) return { value, done: false };
      this.#throwFailure();
      if (this.#outcome) return { value: undefined, done: true };
      await new Promise<void>((resolve) => {
        this.#wakeNext = resolve;
      });
    }
  }

  async return(): Promise<IteratorResult<RunChunk>> {
    this.#buffer.length = 0;
    void this.#settle("closed");
    return { value: undefined, done: true };
  }

  /** Takes entries until the buffer is full. */
  receive(entries: StreamEntry[]): void {
    for (const entry of entries) if (this.hasRoom && !this.#outcome) this.#take(entry);
  }

  /** Ends reading if the process can't read; renews the lease. Called often, with the time of the last read. */
  maintain(readAt: number): void {
    const now = performance.now();
    // By then the connection has noticed a dead server and tried others.
    if (now - Math.max(readAt, this.#startedAt) > 2 * this.#tools.times.lostMs)
      void this.fail(new RunLost("Chunks can't be read."));
    if (now >= this.#renewAt && !this.#outcome) void this.#maintainLease();
  }

  /** Ends reading with a failure. */
  async fail(failure: Error): Promise<void> {
    if (this.#outcome) return;
    this.#failure = failure;
    await this.#settle("closed");
  }

  #throwFailure(): void {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure) throw failure;
  }

  async #maintainLease(): Promise<void> {
    try {
      await this.#renew();
    } catch (error) {
      this.#tools.report(error);
      // By then the worker has given up too.
      if (performance.now() - this.#leasedAt > this.#tools.times.lostMs)
        await this.fail(new RunLost("Redis has been away for too long.", { cause: error }));
    }
  }

  /** Renews the lease, and ends the run if its worker is silent: the reader then reads its end. */
  async #renew(): Promise<void> {
    const { leaseMs: lease, graceMs: grace } = this.#tools.times;
    const now = performance.now();
    this.#renewAt = now + lease / 3;
    const aliveMs = await this.#lease(this.#isResumable ? lease + grace : lease);
    this.#leasedAt = performance.now();
    if (aliveMs === "unknown") await this.fail(new RunLost("The run is unknown, or its time is over."));
    else if (aliveMs > 0) this.#renewAt = Math.min(this.#renewAt, now + aliveMs);
    else await endRun(this.#tools.redis, this.#runId, { state: "lost", condition: "silent" });
  }

  #lease(leaseMs: number): ReturnType<typeof scripts.leaseRun> {
    const { redis, times } = this.#tools;
    return scripts.leaseRun(redis, runKeys(this.#runId), { reader: this.#id, leaseMs, keepMs: times.keepMs });
  }

  #take(entry: StreamEntry): void {
    [this.position] = entry;
    const { last, chunks, end } = readEntry(entry);
    const first = last - chunks.length + 1;
    if (first > this.#last + 1) void this.fail(new RunLost("Chunks are gone."));
    else if (end) void this.#settle(end);
    else this.#put(chunks.map((chunk, at) => ({ id: first + at, chunk })).filter(({ id }) => id > this.#last));
  }

  #put(chunks: RunChunk[]): void {
    this.#buffer.push(...chunks);
    this.#last = chunks.at(-1)?.id ?? this.#last;
    this.hasRoom = this.#buffer.length < MAX_BUFFERED_CHUNKS;
    this.#wakeNext?.();
  }

  /** Ends reading. A reader that leaves before the end stops the run, if nobody else reads it and nobody may return. */
  async #settle(outcome: RunEnd | "closed"): Promise<void> {
    if (this.#outcome) return;
    this.#outcome = outcome;
    if (outcome === "lost") this.#failure = new RunLost("The worker died.");
    this.#wakeNext?.();
    this.#source.forget(this);
    if (outcome === "closed") await this.#depart().catch(this.#tools.report);
  }

  async #depart(): Promise<void> {
    await this.#lease(this.#isResumable ? this.#tools.times.graceMs : 0);
    await endRun(this.#tools.redis, this.#runId, { state: "cancelled", condition: "unread" });
  }
}
