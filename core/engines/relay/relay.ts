import { randomUUID } from "node:crypto";
import { clearInterval, setInterval } from "node:timers";
import { setTimeout as pause, setImmediate as turn } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { Log } from "../../platform/log-events.ts";
import type {
  ClaimRefusal,
  RunPublisher,
  RunRelay,
  RunSubscription,
  SubscribeOptions,
} from "../../platform/runtime.ts";
import { keys } from "../../store/keys.ts";
import { pipelined } from "../../store/redis.ts";
import { Follower } from "./follower.ts";
import { type RelayTools, RunLost, type RunTimes, runTimes, type StreamEntry, sendNow } from "./runs.ts";
import { claimRun } from "./writer.ts";

export { cancelRun, createRun, RunLost, readRun, runEnding } from "./runs.ts";

/**
 * One blocking read takes at most this many ms and returns at most this many entries of a run. If waking it fails, as on a full Redis, a
 * new run waits for its end.
 */
const BLOCK_MS = 1_000;
const PAGE_SIZE = 200;

interface RelayParts {
  /** The process's command connection, with the scripts loaded. */
  redis: Redis;
  /** Opens a connection for blocking reads; called once, by the first `follow`. */
  connect: () => Redis;
  /** Receives failures, most of which repair themselves. */
  log: Pick<Log, "warn">;
  times?: RunTimes;
}

/**
 * Carries the chunks of answers from workers to readers: a worker appends them to the run's stream, and a web process reads the streams of
 * all its runs by one blocking command. One per process.
 */
export class Relay implements RunRelay {
  readonly #tools: RelayTools;
  readonly #connect: () => Redis;
  readonly #followers = new Set<Follower>();
  #blocking: Redis | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;
  /** A stream of ours, in which any entry ends the blocking read; and its last entry that was read. */
  readonly #wakeKey: string = keys.runReader(randomUUID());
  #wokenBy = "0";
  #isWoken = false;
  /** When a read last returned, on the clock of `performance.now`. */
  #readAt = 0;
  #isClosed = false;

  constructor({ redis, connect, log, times = runTimes }: RelayParts) {
    const report = (error: unknown): void =>
      log.warn({ error: error instanceof Error ? error.message : String(error) }, "relay.command_failed");
    this.#tools = { redis, report, times };
    this.#connect = connect;
  }

  claim(runId: string, generation: number): Promise<RunPublisher | ClaimRefusal> {
    return claimRun(this.#tools, runId, generation);
  }

  follow(runId: string, options: SubscribeOptions = {}): RunSubscription {
    if (this.#isClosed) throw new RunLost("This process is ending.");
    if (!this.#blocking) this.#open();
    const follower = new Follower(this.#tools, this, { ...options, runId });
    this.#followers.add(follower);
    this.wake();
    follower.maintain(this.#readAt);
    return follower;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#tools.redis.off("ready", this.#followMaster);
    const ending = new RunLost("This process is ending.");
    const leaving = [...this.#followers].map((follower) => follower.fail(ending));
    this.#blocking?.disconnect();
    await Promise.all(leaving);
  }

  forget(follower: Follower): void {
    this.#followers.delete(follower);
  }

  /** Ends the pending read, so that the next one has the runs that are new. */
  wake(): void {
    if (this.#isWoken) return;
    this.#isWoken = true;
    const key = this.#wakeKey;
    const woken = pipelined(this.#tools.redis, (pipeline) => {
      pipeline.xadd(key, "MAXLEN", 1, "*", "wake", "").pexpire(key, this.#tools.times.leaseMs);
    });
    woken.catch(this.#tools.report);
  }

  #open(): void {
    this.#blocking = this.#connect();
    this.#blocking.on("error", this.#tools.report);
    this.#tools.redis.on("ready", this.#followMaster);
    this.#timer = setInterval(() => {
      for (const follower of this.#followers) follower.maintain(this.#readAt);
    }, this.#tools.times.checkIntervalMs);
    this.#timer.unref();
    void this.#readAll(this.#blocking);
  }

  /** If commands have found another master, reads must move there too: a pending read never learns that its server was demoted. */
  readonly #followMaster = (): void => {
    if (this.#blocking?.status === "ready") this.#blocking.disconnect(true);
  };

  async #readAll(blocking: Redis): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#read(blocking);
        // A read names every run: the other work of the process comes first, and the next read has the chunks of several runs.
        await turn();
      } catch (error) {
        if (this.#isClosed) return;
        this.#tools.report(error);
        await pause(this.#tools.times.checkIntervalMs);
      }
    }
  }

  async #read(blocking: Redis): Promise<void> {
    this.#isWoken = false;
    const followers = new Map<string, Follower[]>();
    for (const follower of this.#followers)
      if (follower.hasRoom) followers.set(follower.key, [...(followers.get(follower.key) ?? []), follower]);
    const streams = [this.#wakeKey, ...followers.keys(), this.#wokenBy, ...Array.from(followers.values(), earliest)];
    const found = await sendNow(blocking, "xread", ["COUNT", PAGE_SIZE, "BLOCK", BLOCK_MS, "STREAMS", ...streams]);
    this.#readAt = performance.now();
    for (const [key, entries] of (found ?? []) as [string, StreamEntry[]][]) {
      if (key === this.#wakeKey) this.#wokenBy = entries.at(-1)![0];
      for (const follower of followers.get(key) ?? []) follower.receive(entries);
    }
  }
}

/** The position from which some followers of one run lack no entry. */
function earliest(followers: Follower[]): string {
  const rank = (position: string): number => {
    const [generation = 0, number = 0] = position.split("-").map(Number);
    return generation * 2 ** 32 + number;
  };
  const positions = followers.map(({ position }) => position);
  return positions.sort((one, other) => rank(one) - rank(other))[0]!;
}
