/** Jobs of one lane that a process runs at a time, of the many that it runs in all. */
const MAX_RUNNING = 4;

/** The lanes of a queue: the jobs of one handle or account that wait for other people's servers leave room for those of all others. */
export class Lanes {
  readonly #running = new Map<string, number>();

  /** True if a job of the lane may run now; it must `leave` then. */
  enter(lane: string): boolean {
    const running = this.#running.get(lane) ?? 0;
    if (running === MAX_RUNNING) return false;
    this.#running.set(lane, running + 1);
    return true;
  }

  leave(lane: string): void {
    const left = (this.#running.get(lane) ?? 0) - 1;
    if (left > 0) this.#running.set(lane, left);
    else this.#running.delete(lane);
  }
}
