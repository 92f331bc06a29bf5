import type { Redis } from "ioredis";
import { LRUCache } from "lru-cache";
import { perConnection } from "./connections.ts";

/** A cached value: the state that it was made of, and its approximate memory in bytes. */
interface Versioned {
  state: string;
  bytes: number;
}

/** A cache of up to `maxBytes` for each connection. */
export function versionedCache<V extends Versioned>(maxBytes: number): (redis: Redis) => VersionedCache<V> {
  return perConnection(() => new VersionedCache<V>(maxBytes));
}

/** Values by name, each cached until its state changes; concurrent readers of one state share one `fill`. */
class VersionedCache<V extends Versioned> {
  readonly #kept: LRUCache<string, V>;
  readonly #filling = new Map<string, Promise<V>>();

  constructor(maxBytes: number) {
    this.#kept = new LRUCache({ maxSize: maxBytes, sizeCalculation: ({ bytes }) => bytes });
  }

  /** `fill` gets the value of the earlier state. */
  async get(name: string, state: string, fill: (earlier: V | undefined) => Promise<V>): Promise<V> {
    const known = this.#kept.get(name);
    if (known?.state === state) return known;
    const label = `${name} ${state}`;
    const filling = this.#filling.get(label) ?? fill(known).finally(() => this.#filling.delete(label));
    this.#filling.set(label, filling);
    const value = await filling;
    this.#kept.set(name, value);
    return value;
  }
}
