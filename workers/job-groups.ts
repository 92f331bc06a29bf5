/** Jobs of one group that a process runs at a time. */
const MAX_GROUP_JOBS = 4;
/** Ms after which a job whose group is full is tried again, and between two such jobs: many waiting ones don't occupy the process. */
const RETRY_MS = 1000;
const RETRY_STEP_MS = 10;

/** The running jobs of a queue by their groups: slow servers of one handle or account leave room for the jobs of all others. */
export class JobGroups {
  /** By name: its running jobs, and the real ms at which the last refused one is tried again. */
  readonly #groups = new Map<string, { running: number; retryAt: number }>();

  /** True if a job of the group may run now; the job must `leave` afterwards. */
  enter(name: string): boolean {
    const group = this.#groups.get(name) ?? { running: 0, retryAt: 0 };
    if (group.running === MAX_GROUP_JOBS) return false;
    group.running++;
    this.#groups.set(name, group);
    return true;
  }

  /** The real ms at which a job that could not enter is tried again, one after the other. */
  retryAt(name: string): number {
    const soon = Date.now() + RETRY_MS * (0.5 + Math.random());
    const group = this.#groups.get(name);
    if (group === undefined) return soon;
    group.retryAt = Math.max(soon, group.retryAt + RETRY_STEP_MS);
    return group.retryAt;
  }

  leave(name: string): void {
    const group = this.#groups.get(name);
    if (group !== undefined && --group.running === 0) this.#groups.delete(name);
  }
}
