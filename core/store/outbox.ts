import { setImmediate } from "node:timers/promises";
import { type JobsOptions, Queue } from "bullmq";
import type { ChainableCommander, Redis } from "ioredis";
import { LRUCache } from "lru-cache";
import { type JobData, type JobName, jobs, mergeable, type QueueName } from "../../schemas/jobs.ts";
import { batchesOf } from "../platform/batches.ts";
import { digestOf } from "../platform/digest.ts";
import type { Log } from "../platform/log-events.ts";
import type { EventJob, Job, Outbox, OutboxEntry } from "../platform/runtime.ts";
import { keys, OUTBOX_SHARDS } from "./keys.ts";
import { isRedisAway, pairsOf, transact } from "./redis.ts";
import { scripts } from "./scripts.ts";

/** Makes a job, with its data checked against its row by the compiler. While BullMQ keeps a job, one of the same id is dropped. */
export function job<N extends JobName>(
  name: N,
  id: string,
  data: JobData<N>,
  more: { delay?: number; priority?: number } = {},
): Job<N> {
  return { name, id, data, ...more };
}

/** Age in ms from which the sweeper takes over an outbox. */
const STALE_AFTER_MS = 10_000;
/** Registrations that the sweeper reads at a time. */
const SWEEP_BATCH = 100;
/** Ms for which a process doesn't register the same tag again; well under `STALE_AFTER_MS`. */
const REGISTRATION_TTL_MS = 3_000;
const shardOf = (tag: string): number =>
  [...tag].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) >>> 0, 7) % OUTBOX_SHARDS;

/** The queues of a process and their transactional outbox. */
export class Queues implements Outbox {
  readonly #redis: Redis;
  readonly #bull: Redis;
  readonly #log: Log;
  readonly #open = new Map<QueueName, Queue>();
  readonly #registered = new LRUCache<string, true>({ max: 10_000, ttl: REGISTRATION_TTL_MS });
  /** The ids of entries that steps have written in this tick of the event loop, by tag. */
  readonly #written = new Map<string, string[]>();
  readonly #publishing = new Set<Promise<unknown>>();

  /**
   * `redis` is for the outbox, `bull` for BullMQ only: ioredis copies the scripts that BullMQ defines onto each pipeline of its connection.
   * It also loses a pipeline that began before a script was defined, so `bull` must not pipeline automatically (`forJobs` of `connect`).
   */
  constructor({ redis, bull, log }: { redis: Redis; bull: Redis; log: Log }) {
    this.#redis = redis;
    this.#bull = bull;
    this.#log = log;
    redis.on("ready", () => this.#registered.clear());
  }

  queue(name: QueueName): Queue {
    const open = this.#open.get(name) ?? this.#create(name);
    this.#open.set(name, open);
    return open;
  }

  async later(...list: Job[]): Promise<void> {
    const names = new Set(list.map((one) => jobs[one.name].queue));
    const ofQueue = (name: QueueName): Job[] => list.filter((one) => jobs[one.name].queue === name);
    await Promise.all([...names].map((name) => this.queue(name).addBulk(ofQueue(name).map(bulk))));
  }

  async commit(tag: string, list: Job[], change: (transaction: ChainableCommander) => void): Promise<unknown[]> {
    return this.step(tag, list, () =>
      transact(this.#redis, (transaction) => {
        change(transaction);
        for (const { id, json } of outboxEntries(list)) transaction.hset(keys.outbox(tag), id, json);
      }),
    );
  }

  /** Only jobs that are in the outbox after the step are enqueued. */
  async step<R>(
    tag: string,
    list: (Job | EventJob)[],
    change: (outbox: string, jobs: OutboxEntry[]) => Promise<R>,
  ): Promise<R> {
    if (list.length > 0) await this.register(tag);
    const result = await change(keys.outbox(tag), outboxEntries(list));
    for (const { id } of list) this.#publishSoon(tag, id);
    return result;
  }

  async register(tag: string): Promise<void> {
    if (this.#registered.has(tag)) return;
    const start = performance.now();
    await this.#redis.zadd(keys.pendingOutboxes(shardOf(tag)), Date.now(), tag);
    this.#registered.set(tag, true, { start });
  }

  async publish(tag: string, ids?: string[]): Promise<number> {
    const found = ids ? await this.#redis.hmget(keys.outbox(tag), ...ids) : await this.#redis.hvals(keys.outbox(tag));
    const all = found.flatMap((json) => (json === null ? [] : [JSON.parse(json) as Job]));
    const list = all.filter(({ name }) => name in jobs);
    if (list.length > 0) {
      await this.later(...merged(list));
      await this.#redis.hdel(keys.outbox(tag), ...list.map(({ id }) => id));
    }
    if (list.length < all.length) throw new Error(`The outbox of ${tag} has jobs that only a newer deploy knows.`);
    return list.length;
  }

  /** Registers the handles whose outboxes have entries. An earlier registration stays: its age says for how long no sweep has emptied one. */
  async registerLeft(): Promise<void> {
    const all: AsyncIterable<string[]> = this.#redis.sscanStream(keys.handles, { count: SWEEP_BATCH });
    for await (const handles of all) await Promise.all(handles.map((handle) => this.#registerIfLeft(handle)));
  }

  /** One pass over the tags that were registered long enough ago, or over all of them. */
  async sweep(olderThan = STALE_AFTER_MS, isBusyToo = false): Promise<number> {
    let published = 0;
    for (let shard = 0; shard < OUTBOX_SHARDS; shard++)
      published += await this.#sweepShard(shard, Date.now() - olderThan, isBusyToo);
    return published;
  }

  /** Waits for running enqueues and closes the queues with their connection. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#publishing);
    await Promise.allSettled([...this.#open.values()].map((queue) => queue.close()));
    this.#bull.disconnect();
  }

  async #registerIfLeft(handle: string): Promise<void> {
    const hasEntries = (await this.#redis.exists(keys.outbox(handle))) === 1;
    if (hasEntries) await this.#redis.zadd(keys.pendingOutboxes(shardOf(handle)), "NX", Date.now(), handle);
  }

  #create(name: QueueName): Queue {
    const queue = new Queue(name, { connection: this.#bull, prefix: keys.queuePrefix(name), skipVersionCheck: true });
    queue.on("error", (error) => this.#log.error({ queue: name, error: error.message }, "queue.connection_failed"));
    return queue;
  }

  /** Publishes an entry together with the others of its tag in this tick: each call costs BullMQ a transaction. */
  #publishSoon(tag: string, id: string): void {
    const written = this.#written.get(tag);
    if (written) return void written.push(id);
    this.#written.set(tag, [id]);
    const publishing = setImmediate().then(() => this.#publishWritten(tag));
    this.#publishing.add(publishing);
    void publishing.finally(() => this.#publishing.delete(publishing));
  }

  async #publishWritten(tag: string): Promise<void> {
    const ids = this.#written.get(tag);
    this.#written.delete(tag);
    await this.publish(tag, ids).catch((error: Error) =>
      this.#log.warn({ error: error.message }, "outbox.publish_failed"),
    );
  }

  /** Reads on past the registrations that stay, so that outboxes that can't be emptied never keep the sweeper from the others. */
  async #sweepShard(shard: number, before: number, isBusyToo: boolean): Promise<number> {
    const key = keys.pendingOutboxes(shard);
    const until = isBusyToo ? "+inf" : before;
    let [published, stuck, isLast] = [0, 0, false];
    while (!isLast) {
      const registrations = pairsOf(
        await this.#redis.zrangebyscore(key, "-inf", until, "WITHSCORES", "LIMIT", stuck, SWEEP_BATCH),
      );
      isLast = registrations.length < SWEEP_BATCH;
      for (const [tag, score] of registrations)
        try {
          published += await this.publish(tag);
          // A process may rely on a newer registration.
          if (Number(score) > before) stuck++;
          else await scripts.unregisterOutbox(this.#redis, { shard: key }, { tag, score });
        } catch (error) {
          // Its registration stays.
          if (isRedisAway(error)) throw error;
          stuck++;
          this.#log.warn({ error: (error as Error).message }, "outbox.publish_failed");
        }
    }
    return published;
  }
}

/** Jobs as the prelude's `outbox` takes them, for a step that writes them in groups. */
function outboxEntries(list: (Job | EventJob)[]): OutboxEntry[] {
  return list.map(({ event, ...job }) => ({ id: job.id, json: JSON.stringify(job), event }));
}

/** The jobs of one tag to enqueue; mergeable jobs of a burst become one. */
function merged(list: Job[]): Job[] {
  const groups = batchesOf(list.filter(isMergeable), mergeable.maxItems);
  return [...list.filter((one) => !isMergeable(one)), ...groups.map(mergedJob)];
}

function isMergeable(one: Job): one is Job<typeof mergeable.one> {
  return one.name === mergeable.one;
}

/** The id covers the whole job: the same jobs get the same id, and no others do. */
function mergedJob(group: Job<typeof mergeable.one>[]): Job {
  const [first, ...others] = group as [Job<typeof mergeable.one>, ...Job[]];
  if (others.length === 0) return first;
  const digest = digestOf(group.map(({ id }) => id).join());
  const eventIds = group.map(({ data }) => data.eventId);
  return job(mergeable.several, `${first.id}-${digest}`, { handle: first.data.handle, eventIds });
}

/** A waiting job contains no options: the worker decides about attempts and retention. */
function bulk(one: Job): { name: string; data: unknown; opts: JobsOptions } {
  const more = { ...(one.delay ? { delay: one.delay } : {}), ...(one.priority ? { priority: one.priority } : {}) };
  return { name: one.name, data: one.data, opts: { jobId: one.id, ...more } };
}
