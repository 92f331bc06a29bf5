import { randomUUID } from "node:crypto";
import { clearInterval, setInterval } from "node:timers";
import { setTimeout as pause } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { SubscribeOptions } from "../../platform/runtime.ts";
import { keys } from "../../store/keys.ts";
import { pipelined } from "../../store/redis.ts";
import { Feed } from "./feed.ts";
import type { Follower } from "./follower.ts";
import { parseRecord, type RelayTools, RunLost, sendNow } from "./runs.ts";

/** One blocking read takes at most this many ms and returns at most this many entries. */
const BLOCK_MS = 5_000;
const MAX_ENTRIES = 1_000;

/**
 * All runs that a web process reads. Workers write the chunks into its inbox, a stream that it reads over one blocking connection for all
 * runs. The inbox is a fast path only: missing chunks are read from the run's stream.
 */
export class RunReaders {
  readonly #tools: RelayTools;
  readonly #connect: () => Redis;
  readonly #inbox = randomUUID();
  readonly #feeds = new Map<string, Feed>();
  #blocking: Redis | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;
  #last = "0";
  #repliedAt = 0;
  #inboxDue = 0;
  #closed = false;

  constructor(tools: RelayTools, connect: () => Redis) {
    this.#tools = tools;
    this.#connect = connect;
  }

  follow(runId: string, { after = 0, resumable = false }: SubscribeOptions = {}): Follower {
    if (this.#closed) throw new RunLost("This process is ending.");
    if (!this.#blocking) this.#open();
    const feed = this.#feeds.get(runId) ?? this.#feed(runId);
    return feed.add(after, resumable);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#timer);
    this.#tools.redis.off("ready", this.#followMaster);
    const goodbyes = [...this.#feeds.values()].map((feed) => feed.close(new RunLost("This process is ending.")));
    this.#blocking?.disconnect();
    const forget = this.#blocking ? this.#tools.redis.del(keys.inbox(this.#inbox)) : undefined;
    // Without Redis, leases and lifetimes do the same a little later.
    await Promise.all([...goodbyes, forget]).catch(this.#tools.report);
  }

  #feed(runId: string): Feed {
    const feed = new Feed(this.#tools, { runId, inbox: this.#inbox, forget: () => this.#feeds.delete(runId) });
    this.#feeds.set(runId, feed);
    return feed;
  }

  #open(): void {
    this.#blocking = this.#connect();
    this.#blocking.on("error", this.#tools.report);
    this.#blocking.on("ready", () => this.#rejoinAll());
    this.#tools.redis.on("ready", this.#followMaster);
    this.#timer = setInterval(() => this.#sweep(), this.#tools.times.check);
    this.#timer.unref();
    void this.#read();
  }

  async #read(): Promise<void> {
    while (!this.#closed) {
      try {
        await this.#openInbox();
        await this.#readInbox();
      } catch (error) {
        if (this.#closed) return;
        this.#tools.report(error);
        await pause(this.#tools.times.check);
      }
    }
  }

  /** Creates the inbox; it expires after its process has been silent for three leases. */
  async #openInbox(): Promise<void> {
    const key = keys.inbox(this.#inbox);
    const [id] = await pipelined(this.#tools.redis, (pipeline) => {
      pipeline.xadd(key, "*", "opened", "").pexpire(key, 3 * this.#tools.times.lease);
    });
    this.#last = String(id);
    this.#inboxDue = performance.now() + this.#tools.times.lease / 3;
    this.#rejoinAll();
  }

  /** Reads until the connection breaks. The next read is already pending while records are handed out. */
  async #readInbox(): Promise<never> {
    for (let next = this.#ask(); ; ) {
      const entries = await next;
      this.#repliedAt = performance.now();
      this.#last = entries.at(-1)?.[0] ?? this.#last;
      next = this.#ask();
      for (const [, records] of entries) this.#sort(records);
    }
  }

  async #ask(): Promise<[string, string[]][]> {
    const values = ["COUNT", MAX_ENTRIES, "BLOCK", BLOCK_MS, "STREAMS", keys.inbox(this.#inbox), this.#last];
    const reply = (await sendNow(this.#blocking!, "xread", values)) as [string, [string, string[]][]][] | null;
    return reply?.[0]?.[1] ?? [];
  }

  #sort(records: string[]): void {
    for (let at = 0; at < records.length; at += 2)
      this.#feeds.get(records[at]!)?.receive(parseRecord(records[at + 1]!));
  }

  /** After a lost connection anything may be missing: every run is joined again and compared with its stream. */
  #rejoinAll(): void {
    for (const feed of this.#feeds.values()) feed.due = 0;
  }

  #sweep(): void {
    const now = performance.now();
    if (now > this.#inboxDue) void this.#keepInbox(now).catch(this.#tools.report);
    for (const feed of this.#feeds.values()) feed.sweep(now);
    const silent = this.#repliedAt > 0 && now - this.#repliedAt > 2 * BLOCK_MS;
    if (silent && this.#blocking?.status === "ready") this.#reconnect(now);
  }

  /** If commands have found another master, reads must move there too: a pending read never learns that its server was demoted. */
  readonly #followMaster = (): void => {
    if (this.#blocking?.status === "ready") this.#blocking.disconnect(true);
  };

  /** A silently dead connection would leave a blocking read pending for ever. */
  #reconnect(now: number): void {
    this.#repliedAt = now;
    this.#blocking?.disconnect(true);
  }

  /** Keeps the inbox alive and trims what was read, so that answers are stored no longer than necessary. */
  async #keepInbox(now: number): Promise<void> {
    this.#inboxDue = now + this.#tools.times.lease / 3;
    const key = keys.inbox(this.#inbox);
    const [there] = await pipelined(this.#tools.redis, (pipeline) => {
      pipeline.pexpire(key, 3 * this.#tools.times.lease).xtrim(key, "MINID", this.#last);
    });
    if (!there) await this.#openInbox();
  }
}
