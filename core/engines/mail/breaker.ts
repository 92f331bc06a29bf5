/** Real ms for which a server is left alone after its first failure, and at most; doubled by each failure. */
const MIN_PAUSE_MS = 500;
const MAX_PAUSE_MS = 60_000;

/**
 * Keeps a process from a mail server that can't be used: after a failure nothing is sent until a wait is over and one probe has
 * succeeded, so that an outage costs no message an attempt.
 */
export class Breaker {
  #failures = 0;
  #until = 0;

  /** Real ms to wait before the server may be probed; 0 where it may. */
  get wait(): number {
    return Math.max(0, this.#until - Date.now());
  }

  /** True where a probe must succeed before anything is sent. */
  get open(): boolean {
    return this.#failures > 0;
  }

  failed(): void {
    // What was under way when the server failed says the same again.
    if (this.wait > 0) return;
    const wait = Math.min(MAX_PAUSE_MS, MIN_PAUSE_MS * 2 ** this.#failures);
    this.#failures++;
    this.#until = Date.now() + wait * (0.8 + 0.4 * Math.random());
  }

  succeeded(): void {
    this.#failures = 0;
    this.#until = 0;
  }
}
