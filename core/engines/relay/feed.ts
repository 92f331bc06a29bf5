import { keys } from "../../store/keys.ts";
import { scripts } from "../../store/scripts.ts";
import { Follower } from "./follower.ts";
import { endRun, type RelayTools, RunLost, runKeys, type StreamEntry } from "./runs.ts";

/** The process's part in a feed. */
interface FeedReader {
  /** Names the process in the leases. */
  readerId: string;
  /** Calls the next blocking read: it lacks this run. */
  wake(): void;
  /** The feed has no followers any more. */
  forget(runId: string): void;
}

/** One run and its followers in this process. */
export class Feed {
  readonly #tools: RelayTools;
  readonly #reader: FeedReader;
  readonly #runId: string;
  readonly #followers = new Set<Follower>();
  /** The key of the run's stream, and the id of the last entry that was read. */
  readonly key: string;
  position = "0";
  readonly #madeAt = performance.now();
  #renewAt = 0;
  #lostAt: number;
  #isTended = false;
  #isResumable = false;
  #hasEnded = false;

  constructor(tools: RelayTools, reader: FeedReader, runId: string) {
    this.#tools = tools;
    this.#reader = reader;
    this.#runId = runId;
    this.key = keys.runChunks(runId);
    this.#lostAt = this.#madeAt + tools.times.lost;
  }

  /** True if a follower has room for chunks. */
  get isHungry(): boolean {
    return [...this.#followers].some((follower) => !follower.isFull);
  }

  add(after: number, isResumable: boolean): Follower {
    const follower = new Follower(this, after);
    this.#isResumable ||= isResumable;
    this.#followers.add(follower);
    this.restart();
    void this.#tendLease();
    return follower;
  }

  restart(): void {
    this.position = "0";
    this.#reader.wake();
  }

  /** The last follower releases the lease, and stops the run if nobody else reads it and nobody may return. */
  leave(follower: Follower): void {
    this.#hasEnded ||= follower.outcome !== undefined;
    if (!this.#followers.delete(follower) || this.#followers.size > 0) return;
    this.#reader.forget(this.#runId);
    if (!this.#hasEnded) this.#depart().catch(this.#tools.report);
  }

  receive(entries: StreamEntry[]): void {
    this.position = entries.at(-1)![0];
    for (const follower of this.#followers) follower.receive(entries);
  }

  /** Closes stalled followers, or all if the process can't read, and tends the lease. Called often, with the time of the last read. */
  tend(readAt: number): void {
    const { stall, lost } = this.#tools.times;
    for (const follower of this.#followers) follower.closeIfStalled(stall);
    // By then the connection has noticed a dead server and tried others.
    if (performance.now() - Math.max(readAt, this.#madeAt) > 2 * lost) this.#fail(new RunLost("Chunks can't be read."));
    void this.#tendLease();
  }

  /** Renews the lease when it is due, and ends the run if its worker is silent. */
  async #tendLease(): Promise<void> {
    const isDue = performance.now() >= Math.min(this.#renewAt, this.#lostAt);
    if (!isDue || this.#isTended || this.#followers.size === 0) return;
    this.#isTended = true;
    await this.#renew().catch(this.#tools.report);
    if (performance.now() >= this.#lostAt) await this.#lose();
    this.#isTended = false;
  }

  /** Fails all followers and releases the lease. */
  async close(reason: Error): Promise<void> {
    const depart = this.#hasEnded ? undefined : this.#depart();
    this.#fail(reason);
    await depart;
  }

  async #renew(): Promise<void> {
    const { lease, grace } = this.#tools.times;
    this.#renewAt = performance.now() + lease / 3;
    const aliveMs = await this.#lease(this.#isResumable ? lease + grace : lease);
    if (aliveMs === "unknown") this.#fail(new RunLost("The run is unknown, or its time is over."));
    else this.#lostAt = performance.now() + aliveMs;
  }

  /** No heartbeat for too long: the run is over unless Redis shows otherwise. Its followers read its end, if Redis can be read. */
  async #lose(): Promise<void> {
    const ending = endRun(this.#tools.redis, this.#runId, { end: "lost", condition: "silent" });
    const word = await ending.catch(this.#tools.report);
    this.#lostAt = performance.now() + this.#tools.times.lost;
    if (word === undefined || word === "unknown") this.#fail(new RunLost("No worker took the run, or it died."));
  }

  #lease(leaseMs: number): ReturnType<typeof scripts.leaseRun> {
    const { redis, times } = this.#tools;
    return scripts.leaseRun(redis, runKeys(this.#runId), {
      reader: this.#reader.readerId,
      leaseMs,
      keepMs: times.keep,
    });
  }

  #fail(failure: Error): void {
    this.#hasEnded = true;
    for (const follower of this.#followers) follower.fail(failure);
  }

  async #depart(): Promise<void> {
    const { redis, times } = this.#tools;
    await this.#lease(this.#isResumable ? times.grace : 0);
    await endRun(redis, this.#runId, { end: "cancelled", condition: "unread" });
  }
}
