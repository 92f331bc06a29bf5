import type { Redis } from "ioredis";
import { scripts } from "../../store/scripts.ts";

/** A lane whose turn it is, and its position in the line since the claim. */
export interface Turn {
  lane: string;
  position: string;
}

/**
 * A fair line: a sorted set of lanes by the real time of their next turn. A claimed lane goes to the end, so a long lane never holds
 * up another. Lanes never leave the line by themselves: a crash after a claim costs a lane at most the lease of that claim.
 */
export class FairLine {
  readonly #redis: Redis;
  readonly #key: string;

  constructor(redis: Redis, key: string) {
    this.#redis = redis;
    this.#key = key;
  }

  /** Gives a lane a turn at a real ms, or leaves its earlier one. */
  async enqueue(lane: string, at = Date.now()): Promise<void> {
    await this.#redis.zadd(this.#key, "LT", positionAt(at), lane);
  }

  /** Adds a lane with its first turn at a real ms; a lane in the line keeps its turn. */
  async enlist(lane: string, at = Date.now()): Promise<void> {
    await this.#redis.zadd(this.#key, "NX", positionAt(at), lane);
  }

  /**
   * Claims up to `limit` lanes whose turn it is; `due` is the number of all that were. With a lease no other process can claim them
   * for its ms, without one they may be claimed again at once.
   */
  async claim(limit: number, leaseMs = 0): Promise<{ turns: Turn[]; due: number }> {
    const input = { limit, leaseUs: Math.round(leaseMs * 1000) };
    const [due, ...pairs] = await scripts.claimTurns(this.#redis, { lanes: this.#key }, input);
    const turns = Array.from({ length: pairs.length / 2 }, (_, at) => ({
      lane: pairs[at * 2] as string,
      position: pairs[at * 2 + 1] as string,
    }));
    return { turns, due };
  }

  /** Parks a claimed lane until a real ms; false if it was enqueued or claimed since its claim, and stays where it is. */
  async park({ lane, position }: Turn, until: number): Promise<boolean> {
    const input = { lane, position, nextUs: positionAt(until) };
    return (await scripts.parkTurn(this.#redis, { lanes: this.#key }, input)) === 1;
  }
}

function positionAt(ms: number): number {
  return Math.round(ms) * 1000;
}
