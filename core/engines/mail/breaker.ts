/** Real ms to pause after the first failure, and at most; each failure doubles the pause. */
const MIN_PAUSE_MS = 500;
const MAX_PAUSE_MS = 60_000;

/**
 * A circuit breaker for a mail server: after a failure nothing is sent until a pause is over and one probe has succeeded, so that an outage
 * costs no message an attempt.
 */
export class Breaker {
  #failures = 0;
  #until = 0;

  /** Real ms until the server may be probed; 0 if it may be probed now. */
  get wait(): number {
    return Math.max(0, this.#until - Date.now());
  }

  /** True if a probe must succeed before anything is sent. */
  get open(): boolean {
    return this.#failures > 0;
  }

  failed(): void {
    // Sends that were running when the server failed report the same failure.
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
