import type { RunPublisher } from "../../platform/runtime.ts";
import { keys } from "../../store/keys.ts";
import { scripts } from "../../store/scripts.ts";
import {
  endRun,
  formatRecord,
  type RelayTools,
  RunCancelled,
  RunLost,
  type RunRecord,
  runKeys,
  sendNow,
} from "./runs.ts";

/** Sends what a worker process writes, packed once per tick of the event loop for all of its runs. */
export interface Publisher {
  /** Calls the writer's `flush` in this tick. */
  schedule(writer: RunWriter): void;
  /** Adds a record to the next packet for each inbox. */
  send(inboxes: string[], runId: string, record: string): void;
  /** The writer's run has ended. */
  leave(writer: RunWriter): void;
}

/** A claimed run and the inboxes of its readers. */
export interface Claim {
  runId: string;
  generation: number;
  inboxes: string[];
}

/**
 * Writes one run. The first chunks go to the run's stream only; once Redis has stored them, no other attempt can claim the run. From then
 * on chunks go to the stream and to the readers at the same time, without waiting for replies.
 */
export class RunWriter implements RunPublisher {
  readonly #outlet: Publisher;
  readonly #tools: RelayTools;
  readonly #claim: Claim;
  readonly #abort = new AbortController();
  #over = false;
  #buffer: string[] = [];
  #unconfirmed: RunRecord[] = [];
  #sent = 0;
  /** Why nothing is sent now: the first chunks, or a failure, must be settled first. */
  #held: "starting" | "repairing" | undefined;
  #checking = false;
  #ending: { end: "done" | "failed"; resolve: () => void; reject: (reason: unknown) => void } | undefined;
  #finishing = false;
  #lastCheck = performance.now();
  #lastSign = performance.now();
  #lenientUntil = 0;
  /** When the next check is due, on the clock of `performance.now`. */
  due = 0;

  constructor(outlet: Publisher, tools: RelayTools, claim: Claim) {
    this.#outlet = outlet;
    this.#tools = tools;
    this.#claim = claim;
    this.#planCheck();
  }

  /** Aborted with RunCancelled if nobody wants the answer any more, with RunLost if it can't be written any more. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  write(chunk: string): void {
    if (chunk === "" || chunk.includes("\n")) throw new TypeError("A chunk is one line, not empty.");
    if (this.#over || this.#ending) return;
    this.#buffer.push(chunk);
    this.#outlet.schedule(this);
  }

  /** Rejects with RunLost. */
  end(end: "done" | "failed" = "done"): Promise<void> {
    if (this.#over)
      return this.signal.reason instanceof RunLost ? Promise.reject(this.signal.reason) : Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#ending = { end, resolve, reject };
      this.#outlet.schedule(this);
    });
  }

  release(): void {
    if (!this.#over) this.#leave();
  }

  /** Called by the publisher once per tick if there is something to send. */
  flush(): void {
    if (this.#held || this.#over) return;
    if (this.#buffer.length > 0) this.#send();
    else if (this.#ending && !this.#finishing) void this.#finish(this.#ending.end);
  }

  /** Sends a heartbeat, and learns whether the run is still wanted and who reads it. Called by the publisher when due. */
  async check(): Promise<void> {
    if (this.#checking || this.#over) return;
    this.#checking = true;
    const repairing = this.#held === "repairing";
    try {
      await this.#learn(await this.#ask(), repairing);
    } catch (error) {
      this.#endure(error);
    } finally {
      this.#checking = false;
      this.#planCheck();
    }
  }

  #send(): void {
    const chunks = this.#buffer;
    this.#buffer = [];
    const first = this.#sent === 0;
    this.#sent += chunks.length;
    const record = { generation: this.#claim.generation, last: this.#sent, chunks };
    this.#unconfirmed.push(record);
    this.#store(record);
    if (first) this.#held = "starting";
    else this.#hand(formatRecord(record));
    if (this.#ending) this.#outlet.schedule(this);
  }

  #store({ generation, last, chunks }: RunRecord): void {
    const entry = [keys.runChunks(this.#claim.runId), "NOMKSTREAM", `${generation}-${last}`, "c", chunks.join("\n")];
    sendNow(this.#tools.redis, "xadd", entry).then(
      (id) => (id === null ? this.#stop(new RunLost("The run is gone.")) : this.#confirm(last)),
      (error) => this.#repair(error),
    );
  }

  #confirm(last: number): void {
    while (this.#unconfirmed[0] && this.#unconfirmed[0].last <= last) {
      const record = this.#unconfirmed.shift()!;
      if (this.#held === "starting") this.#hand(formatRecord(record));
    }
    if (this.#held === "starting") this.#proceed();
    else this.#postponeCheck();
  }

  /** A stored chunk proves as much as a check, except who reads: while chunks flow, every fourth check is enough. */
  #postponeCheck(): void {
    const { check } = this.#tools.times;
    if (this.#held || this.#claim.inboxes.length === 0) return;
    this.due = Math.min(performance.now() + check, this.#lastCheck + 4 * check);
  }

  #hand(record: string): void {
    this.#lastSign = performance.now();
    this.#outlet.send(this.#claim.inboxes, this.#claim.runId, record);
  }

  #proceed(): void {
    this.#held = undefined;
    if (this.#claim.inboxes.length === 0) this.due = 0;
    this.#outlet.schedule(this);
  }

  async #finish(end: "done" | "failed"): Promise<void> {
    this.#finishing = true;
    const { runId, generation } = this.#claim;
    const newest = `${generation}-${this.#sent}`;
    try {
      const word = await endRun(this.#tools.redis, runId, { end, condition: "written", newest });
      if (word === "refused") this.#repair(new Error("Chunks are missing before the end."));
      else if (word === "unknown") this.#stop(new RunLost("The run is gone."));
      else this.#close();
    } catch (error) {
      this.#repair(error);
    } finally {
      this.#finishing = false;
    }
  }

  /** A write failed or was rejected: a check finds out which, and what is stored. */
  #repair(error: unknown): void {
    if (this.#over) return;
    if (this.#held !== "repairing" && !isRefusal(error)) this.#tools.report(error);
    this.#held = "repairing";
    this.due = 0;
  }

  #ask(): Promise<[string, ...unknown[]]> {
    const { runId, generation } = this.#claim;
    const { redis, times } = this.#tools;
    return scripts.checkRun(redis, runKeys(runId), { generation, lostMs: times.lost, keepMs: times.keep });
  }

  async #learn([word, known, ...inboxes]: [string, ...unknown[]], repairing: boolean): Promise<void> {
    if (this.#over) return;
    if (word === "ended") return this.#learnEnd(known);
    if (word !== "read" && word !== "unread") return this.#stop(new RunLost(`The run is ${word}.`));
    this.#extendLeases();
    if (word === "unread" && performance.now() > this.#lenientUntil) return this.#stopUnread();
    this.#informReaders(inboxes.map(String));
    if (repairing) this.#sendAgain(Number(known));
    if (!this.#held && performance.now() - this.#lastSign > this.#tools.times.heartbeat) this.#hand(this.#place());
  }

  #learnEnd(end: unknown): void {
    if (end === this.#ending?.end) this.#close();
    else this.#stop(end === "cancelled" ? new RunCancelled("Stopped.") : new RunLost("Given up."));
  }

  /** After an outage, leases of live readers have expired: give them time to renew. */
  #extendLeases(): void {
    const now = performance.now();
    if (now - this.#lastCheck > 8 * this.#tools.times.check) this.#lenientUntil = now + this.#tools.times.lease;
    this.#lastCheck = now;
  }

  async #stopUnread(): Promise<void> {
    const { redis } = this.#tools;
    const word = await endRun(redis, this.#claim.runId, { end: "cancelled", condition: "unread" });
    if (word !== "refused") this.#stop(new RunCancelled("Every reader left."));
  }

  /** Sends a new reader the run's position, so that it fetches what it lacks. */
  #informReaders(inboxes: string[]): void {
    const strangers = inboxes.filter((inbox) => !this.#claim.inboxes.includes(inbox));
    this.#claim.inboxes = inboxes;
    if (strangers.length > 0 && !this.#held) this.#outlet.send(strangers, this.#claim.runId, this.#place());
  }

  #sendAgain(stored: number): void {
    this.#unconfirmed = this.#unconfirmed.filter((record) => record.last > stored);
    for (const record of this.#unconfirmed) this.#store(record);
    if (stored === 0 && this.#unconfirmed.length > 0) this.#held = "starting";
    else this.#proceed();
    // Chunks that this check confirmed may never have reached the inboxes.
    if (!this.#held) this.#hand(this.#place());
  }

  #place(): string {
    return formatRecord({ generation: this.#claim.generation, last: this.#sent, chunks: [] });
  }

  #endure(error: unknown): void {
    this.#tools.report(error);
    if (performance.now() - this.#lastCheck < this.#tools.times.lost) return;
    this.#stop(new RunLost("Redis has been away for too long.", { cause: error }));
  }

  #planCheck(): void {
    const { check } = this.#tools.times;
    const soon = this.#held === "repairing" || this.#claim.inboxes.length === 0;
    this.due = performance.now() + (soon ? check / 10 : check * (0.7 + 0.2 * Math.random()));
  }

  #stop(reason: RunLost | RunCancelled): void {
    if (this.#over) return;
    this.#leave();
    this.#abort.abort(reason);
    if (reason instanceof RunLost) this.#ending?.reject(reason);
    else this.#ending?.resolve();
  }

  #close(): void {
    this.#leave();
    this.#ending?.resolve();
  }

  #leave(): void {
    this.#over = true;
    this.#outlet.leave(this);
  }
}

/** True if the stream has a newer entry: the run has ended, another attempt has claimed it, or the chunk is already stored. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && error.message.includes("equal or smaller");
}
