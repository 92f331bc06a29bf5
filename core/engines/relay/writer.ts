import { randomUUID } from "node:crypto";
import { setTimeout as pause, setImmediate as turn } from "node:timers/promises";
import type { ClaimRefusal, RunPublisher } from "../../platform/runtime.ts";
import { keys } from "../../store/keys.ts";
import { scripts } from "../../store/scripts.ts";
import { endRun, isKnownEntry, type RelayTools, RunCancelled, RunLost, runKeys, sendNow } from "./runs.ts";

/** Claims a run for an attempt of its job, or says why not. */
export async function claimRun(
  tools: RelayTools,
  runId: string,
  generation: number,
): Promise<RunPublisher | ClaimRefusal> {
  const { redis, times } = tools;
  const input = { generation, token: randomUUID(), lostMs: times.lostMs, keepMs: times.keepMs };
  const reply = await scripts.claimRun(redis, runKeys(runId), input);
  if (reply === "claimed") return new RunWriter(tools, runId, generation);
  if (reply === "sent") await endRun(redis, runId, { state: "lost", condition: "anyway" });
  if (reply === "unread") await endRun(redis, runId, { state: "cancelled", condition: "unread" });
  return reply;
}

/** Writes one run: one entry at a time, with the chunks that have come since the last one was stored. */
class RunWriter implements RunPublisher {
  readonly #tools: RelayTools;
  readonly #runId: string;
  readonly #generation: number;
  readonly #abort = new AbortController();
  #buffer: string[] = [];
  /** Number of chunks in the stream, with those of the entry that is being stored. */
  #sent = 0;
  #storing: Promise<void> | undefined;
  #ending: "done" | "failed" | undefined;
  #isOver = false;
  #checkAt = 0;
  #checkedAt = performance.now();
  #lenientUntil = 0;

  constructor(tools: RelayTools, runId: string, generation: number) {
    this.#tools = tools;
    this.#runId = runId;
    this.#generation = generation;
    void this.#watch();
  }

  /** Aborted with RunCancelled if nobody wants the answer any more, with RunLost if it can't be written any more. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  write(chunk: string): void {
    mustBeChunk(chunk);
    if (this.#isOver || this.#ending) return;
    this.#buffer.push(chunk);
    this.#storing ??= this.#store();
  }

  /** Rejects with RunLost. Nothing can end the run between its last chunk and its end: a reader never gets two ends. */
  async end(end: "done" | "failed" = "done", lastChunk?: string): Promise<void> {
    if (lastChunk !== undefined) mustBeChunk(lastChunk);
    this.#ending = end;
    await this.#storing;
    await this.#persist(() => this.#finish(end, lastChunk));
    if (this.signal.reason instanceof RunLost) throw this.signal.reason;
  }

  release(): void {
    this.#isOver = true;
  }

  /** Starts in the next turn of the event loop, so that the chunks of this one become one entry. */
  async #store(): Promise<void> {
    await turn();
    while (this.#buffer.length > 0 && !this.#isOver) {
      const text = this.#buffer.join("\n");
      this.#sent += this.#buffer.length;
      this.#buffer = [];
      await this.#persist(() => this.#append(text));
    }
    this.#storing = undefined;
  }

  /** Repeats a write until Redis has answered, or until the run is over. */
  async #persist(write: () => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      try {
        return await write();
      } catch (error) {
        this.#tools.report(error);
        await pause(this.#tools.times.checkIntervalMs);
      }
    }
  }

  async #append(text: string): Promise<void> {
    const entry = [keys.runChunks(this.#runId), "NOMKSTREAM", this.#newest(), "c", text];
    try {
      const id = await sendNow(this.#tools.redis, "xadd", entry);
      if (id === null) this.#stop(new RunLost("The run is gone."));
      else this.#postponeCheck();
    } catch (error) {
      if (!isKnownEntry(error)) throw error;
      // The stream has this id or a newer one: ended, claimed by another attempt, or stored by an earlier try whose reply was lost.
      await this.#learn();
    }
  }

  /** A stored chunk proves that the run is wanted: while chunks flow, every fourth check is enough. */
  #postponeCheck(): void {
    const { checkIntervalMs: check } = this.#tools.times;
    this.#checkAt = Math.min(performance.now() + check, this.#checkedAt + 4 * check);
  }

  async #finish(state: "done" | "failed", chunk: string | undefined): Promise<void> {
    const ending = { state, condition: "written", newest: this.#newest(), chunk } as const;
    const reply = await endRun(this.#tools.redis, this.#runId, ending);
    if (reply === "refused" || reply === "unknown") this.#stop(new RunLost(`The end was ${reply}.`));
    else this.release();
  }

  #newest(): string {
    return `${this.#generation}-${this.#sent}`;
  }

  async #watch(): Promise<void> {
    while (!this.#isOver) {
      await pause(this.#tools.times.checkIntervalMs);
      if (!this.#isOver && performance.now() >= this.#checkAt) await this.#check();
    }
  }

  /** Cancels a run that nobody reads. */
  async #check(): Promise<void> {
    try {
      const reply = await this.#learn();
      if (reply !== "unread" || performance.now() <= this.#lenientUntil) return;
      const ended = await endRun(this.#tools.redis, this.#runId, { state: "cancelled", condition: "unread" });
      if (ended !== "refused") this.#stop(new RunCancelled("Every reader left."));
    } catch (error) {
      this.#tools.report(error);
      if (performance.now() - this.#checkedAt > this.#tools.times.lostMs)
        this.#stop(new RunLost("Redis has been away for too long.", { cause: error }));
    }
  }

  /** Sends a heartbeat, and stops if the run has ended or is another attempt's. */
  async #learn(): Promise<string> {
    const { redis, times } = this.#tools;
    const input = { generation: this.#generation, lostMs: times.lostMs, keepMs: times.keepMs };
    const reply = await scripts.checkRun(redis, runKeys(this.#runId), input);
    const now = performance.now();
    // After an outage, leases of live readers have expired: they get time to renew.
    if (now - this.#checkedAt > 8 * times.checkIntervalMs) this.#lenientUntil = now + times.leaseMs;
    this.#checkedAt = now;
    const isOurs = reply === "read" || reply === "unread" || reply === this.#ending;
    if (!isOurs) this.#stop(reply === "cancelled" ? new RunCancelled("Stopped.") : new RunLost(`The run is ${reply}.`));
    return reply;
  }

  #stop(reason: RunLost | RunCancelled): void {
    if (this.#isOver) return;
    this.release();
    this.#abort.abort(reason);
  }
}

function mustBeChunk(chunk: string): void {
  if (chunk === "" || chunk.includes("\n")) throw new TypeError("A chunk is one line, not empty.");
}
