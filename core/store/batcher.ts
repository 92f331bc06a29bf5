interface Group<T> {
  things: T[];
  hasBegun: boolean;
  done: Promise<void>;
}

/**
 * Batches work that costs little more for many items than for one. It starts at once if none is running under the same name. Items that
 * arrive meanwhile are processed together afterwards, and succeed or fail together.
 */
export class Batcher<T> {
  readonly #work: (name: string, things: T[]) => Promise<void>;
  readonly #most: number;
  readonly #last = new Map<string, Group<T>>();

  /** `most`: largest batch. */
  constructor(work: (name: string, things: T[]) => Promise<void>, most: number) {
    this.#work = work;
    this.#most = most;
  }

  /** Resolves once the batch of this item has been processed. */
  add(name: string, thing: T): Promise<void> {
    const last = this.#last.get(name);
    if (last === undefined || last.hasBegun || last.things.length >= this.#most) return this.#begin(name, thing, last);
    last.things.push(thing);
    return last.done;
  }

  #begin(name: string, thing: T, before: Group<T> | undefined): Promise<void> {
    const group: Group<T> = { things: [thing], hasBegun: false, done: Promise.resolve() };
    group.done = this.#run(name, group, before);
    this.#last.set(name, group);
    return group.done;
  }

  async #run(name: string, group: Group<T>, before: Group<T> | undefined): Promise<void> {
    await before?.done.catch(() => undefined);
    group.hasBegun = true;
    try {
      await this.#work(name, group.things);
    } finally {
      if (this.#last.get(name) === group) this.#last.delete(name);
    }
  }
}
