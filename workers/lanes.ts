/** Jobs of one lane that a process runs at a time. */
const MAX_RUNNING = 4;

/** The lanes of a queue: slow servers of one handle or account leave room for the jobs of all others. */
export class Lanes {
  readonly #running = new Map<string, number>();

  /** True if a job of the lane may run now; the job must `leave` afterwards. */
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
