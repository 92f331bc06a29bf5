import { setImmediate } from "node:timers/promises";

/** Processes items of one name together if they come within one tick of the event loop. They succeed or fail together. */
export class Batcher<T, R> {
  readonly #work: (name: string, items: T[]) => Promise<readonly R[]>;
  readonly #gathering = new Map<string, { items: T[]; results: Promise<readonly R[]> }>();

  /** `work` returns a result for each item, in their order. */
  constructor(work: (name: string, items: T[]) => Promise<readonly R[]>) {
    this.#work = work;
  }

  async add(name: string, item: T): Promise<R> {
    const { items, results } = this.#gathering.get(name) ?? this.#begin(name);
    const place = items.push(item) - 1;
    return (await results)[place] as R;
  }

  #begin(name: string): { items: T[]; results: Promise<readonly R[]> } {
    const items: T[] = [];
    const batch = { items, results: setImmediate().then(() => this.#end(name, items)) };
    this.#gathering.set(name, batch);
    return batch;
  }

  #end(name: string, items: T[]): Promise<readonly R[]> {
    this.#gathering.delete(name);
    return this.#work(name, items);
  }
}
