import type { Redis } from "ioredis";
import { pairsOf } from "../../store/redis.ts";
import { scripts } from "../../store/scripts.ts";

/** A claimed lane and its position in the queue since the claim. */
export interface ClaimedLane {
  lane: string;
  position: string;
}

/**
 * A fair queue: a sorted set of lanes by the real time at which each is due. A claimed lane goes to the end, so a long lane never delays
 * another. Lanes never leave by themselves: a crash after a claim delays a lane by at most the lease.
 */
export class FairQueue {
  readonly #redis: Redis;
  readonly #key: string;

  constructor(redis: Redis, key: string) {
    this.#redis = redis;
    this.#key = key;
  }

  /** Makes a lane due at a real time in ms, unless it is due earlier. */
  async enqueue(lane: string, at = Date.now()): Promise<void> {
    await this.#redis.zadd(this.#key, "LT", positionAt(at), lane);
  }

  /** Adds a lane that is first due at a real time in ms; a queued lane keeps its time. */
  async enlist(lane: string, at = Date.now()): Promise<void> {
    await this.#redis.zadd(this.#key, "NX", positionAt(at), lane);
  }

  /**
   * Claims up to `limit` due lanes; `due` counts all due lanes. With a lease no other process can claim them for so many ms, unless they are
   * enqueued meanwhile; without one they may be claimed again at once.
   */
  async claim(limit: number, leaseMs = 0): Promise<{ claimed: ClaimedLane[]; due: number }> {
    const input = { limit, leaseUs: Math.round(leaseMs * 1000) };
    const [due, ...flat] = await scripts.claimLanes(this.#redis, { lanes: this.#key }, input);
    return { claimed: pairsOf(flat).map(([lane, position]) => ({ lane, position })), due };
  }

  /** Parks a claimed lane until a real time in ms; false if it was enqueued or claimed again since, and keeps its position. */
  async park({ lane, position }: ClaimedLane, until: number): Promise<boolean> {
    const input = { lane, position, nextUs: positionAt(until) };
    return (await scripts.parkLane(this.#redis, { lanes: this.#key }, input)) === 1;
  }
}

function positionAt(ms: number): number {
  return Math.round(ms) * 1000;
}
