import type { Redis } from "ioredis";
import { LRUCache } from "lru-cache";
import { perObject } from "../platform/lazy.ts";

/** A cache of up to `maxBytes` for each connection; `bytesOf` is the approximate memory of a value, besides its name and state. */
export function versionedCache<V>(
  maxBytes: number,
  bytesOf: (value: V) => number,
): (redis: Redis) => VersionedCache<V> {
  return perObject(() => new VersionedCache<V>(maxBytes, bytesOf));
}

/** Bytes of an entry besides its value. */
const OVERHEAD_BYTES = 500;
/** Values that are filled at once for all of their readers; of more, the first ones are filled once more for later readers. */
const MAX_FILLING = 1000;

/** Values by name, each cached until its state changes; concurrent readers of one state share one `fill`. */
class VersionedCache<V> {
  readonly #cached: LRUCache<string, { state: string; value: V }>;
  /** Not a map: of one that changes all the time, V8 keeps what was deleted until it collects its old objects. */
  readonly #filling = new LRUCache<string, Promise<V>>({ max: MAX_FILLING });

  constructor(maxBytes: number, bytesOf: (value: V) => number) {
    this.#cached = new LRUCache({ maxSize: maxBytes, sizeCalculation: ({ value }) => OVERHEAD_BYTES + bytesOf(value) });
  }

  /** `fill` gets the value of the earlier state. */
  async get(name: string, state: string, fill: (earlier: V | undefined) => Promise<V>): Promise<V> {
    const known = this.#cached.get(name);
    if (known?.state === state) return known.value;
    const label = `${name} ${state}`;
    const filling = this.#filling.get(label) ?? fill(known?.value).finally(() => this.#filling.delete(label));
    this.#filling.set(label, filling);
    const value = await filling;
    this.#cached.set(name, { state, value });
    return value;
  }
}
