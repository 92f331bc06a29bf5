import { LRUCache } from "lru-cache";

/** A cached value: the state that it was made of, and its approximate memory in bytes. */
interface Versioned {
  state: string;
  bytes: number;
}

/** Values by name, each cached until its state changes; concurrent readers of one state share one `fill`. */
export class VersionedCache<V extends Versioned> {
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
