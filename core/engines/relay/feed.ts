import { keys } from "../../store/keys.ts";
import { scripts } from "../../store/scripts.ts";
import { type ChunkSource, Follower, PAGE_SIZE } from "./follower.ts";
import { END_GENERATION, endRun, type RelayTools, RunLost, type RunRecord, readEntryId, runKeys } from "./runs.ts";

/** A run and the inbox that its chunks go to. */
interface StreamPosition {
  runId: string;
  inbox: string;
  forget: () => void;
}

/** One run and its followers in this process. */
export class Feed implements ChunkSource {
  readonly #tools: RelayTools;
  readonly #place: StreamPosition;
  readonly #followers = new Set<Follower>();
  head = 0;
  /** When to renew the lease, on the clock of `performance.now`. */
  due = 0;
  #lostAt: number;
  /** True once the worker has sent something here: until then it may not know this process. */
  #known = false;
  #leasing = false;
  #confirming = false;
  #resumable = false;
  #ended = false;

  constructor(tools: RelayTools, place: StreamPosition) {
    this.#tools = tools;
    this.#place = place;
    this.#lostAt = performance.now() + tools.times.lost;
  }

  add(after: number, resumable: boolean): Follower {
    const follower = new Follower(this, after);
    this.#resumable ||= resumable;
    if (this.#followers.add(follower).size === 1) void this.#renew();
    void follower.catchUp();
    return follower;
  }

  fetch(from: string): Promise<[string, string[]][]> {
    return this.#tools.redis.xrange(keys.runChunks(this.#place.runId), from, "+", "COUNT", PAGE_SIZE);
  }

  /** The last follower releases the lease, and stops the run if nobody else reads it and nobody may return. */
  leave(follower: Follower): void {
    this.#ended ||= follower.outcome !== undefined;
    if (!this.#followers.delete(follower) || this.#followers.size > 0) return;
    this.#place.forget();
    if (!this.#ended) this.#depart().catch(this.#tools.report);
  }

  receive(record: RunRecord): void {
    this.#lostAt = performance.now() + this.#tools.times.lost;
    this.#known = true;
    this.#hear(record.generation, record.last);
    for (const follower of this.#followers) follower.receive(record);
  }

  sweep(now: number): void {
    const { stall, lost } = this.#tools.times;
    for (const follower of this.#followers) {
      follower.closeIfStalled(stall);
      follower.closeIfFailing(lost);
      void (this.#known || this.head === 0 ? follower.catchUp() : follower.poll());
    }
    if (now > this.#lostAt && !this.#ended) void this.#confirmLoss();
    else if (now > this.due && !this.#ended) void this.#renew();
  }

  /** Fails all followers and releases the lease. */
  async close(reason: Error): Promise<void> {
    const depart = this.#ended ? undefined : this.#depart();
    this.#fail(reason);
    await depart;
  }

  #hear(generation: number, newest: number): void {
    this.#ended ||= generation === END_GENERATION;
    this.head = Math.max(this.head, newest);
  }

  /** Tells the worker that this process reads, and detects what the inbox may have missed. */
  async #renew(): Promise<void> {
    if (this.#leasing) return;
    this.#leasing = true;
    this.due = performance.now() + (this.#tools.times.lease / 3) * (0.8 + 0.2 * Math.random());
    try {
      const { lease, grace } = this.#tools.times;
      this.#learn(await this.#lease(this.#resumable ? lease + grace : lease));
    } catch (error) {
      this.#tools.report(error);
    } finally {
      this.#leasing = false;
    }
  }

  #lease(time: number): Promise<[string, ...unknown[]]> {
    const { redis, times } = this.#tools;
    const { runId, inbox } = this.#place;
    return scripts.leaseRun(redis, runKeys(runId), { inbox, leaseMs: time, keepMs: times.keep });
  }

  #learn([word, alive, newest]: [string, ...unknown[]]): void {
    if (word === "unknown") this.#fail(new RunLost("The run is unknown, or its time is over."));
    else this.#compare(String(newest), Number(alive));
  }

  #compare(newest: string, alive: number): void {
    const { generation, last } = readEntryId(newest);
    this.#lostAt = performance.now() + alive;
    const news = generation === END_GENERATION || last > this.head;
    this.#hear(generation, last);
    if (news) for (const follower of this.#followers) void follower.poll();
  }

  /** No heartbeat for too long: the run is over unless Redis shows otherwise. */
  async #confirmLoss(): Promise<void> {
    if (this.#confirming) return;
    this.#confirming = true;
    await this.#renew();
    if (performance.now() > this.#lostAt) await this.#lose();
    this.#confirming = false;
  }

  async #lose(): Promise<void> {
    const { redis, report } = this.#tools;
    const ending = endRun(redis, this.#place.runId, { end: "lost", condition: "silent" });
    const word = await ending.catch(report);
    if (word === "refused") return;
    await Promise.all([...this.#followers].map((follower) => follower.poll()));
    this.#fail(new RunLost("No worker took the run, or it died."));
  }

  #fail(failure: Error): void {
    this.#ended = true;
    for (const follower of this.#followers) follower.fail(failure);
  }

  async #depart(): Promise<void> {
    const { redis, times } = this.#tools;
    const [word] = await this.#lease(this.#resumable ? times.grace : 0);
    if (word === "unread") await endRun(redis, this.#place.runId, { end: "cancelled", condition: "unread" });
  }
}
