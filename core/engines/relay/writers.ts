import { randomUUID } from "node:crypto";
import { clearInterval, setImmediate, setInterval } from "node:timers";
import type { ClaimRefusal } from "../../platform/runtime.ts";
import { scripts } from "../../store/scripts.ts";
import { endRun, type RelayTools, runKeys, sendNow, toInbox } from "./runs.ts";
import { type Publisher, RunWriter } from "./writer.ts";

/**
 * All runs that a worker process writes, over its one command connection. The writes of one tick of the event loop leave as one packet: an
 * entry per run's stream, and one entry per web process's inbox with the records of all runs.
 */
export class RunWriters implements Publisher {
  readonly #tools: RelayTools;
  readonly #open = new Set<RunWriter>();
  readonly #parcels = new Map<string, string[]>();
  #ready = new Set<RunWriter>();
  #scheduled = false;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(tools: RelayTools) {
    this.#tools = tools;
  }

  async claim(runId: string, generation: number): Promise<RunWriter | ClaimRefusal> {
    const { redis, times } = this.#tools;
    const input = { generation, token: randomUUID(), lostMs: times.lost, keepMs: times.keep };
    const [word, ...inboxes] = await scripts.claimRun(redis, runKeys(runId), input);
    if (word === "claimed")
      return this.#enter(new RunWriter(this, this.#tools, { runId, generation, inboxes: inboxes.map(String) }));
    if (word === "sent") await endRun(redis, runId, { end: "lost", condition: "anyway" });
    if (word === "unread") await endRun(redis, runId, { end: "cancelled", condition: "unread" });
    return word as ClaimRefusal;
  }

  schedule(writer: RunWriter): void {
    this.#ready.add(writer);
    this.#flushSoon();
  }

  send(inboxes: string[], runId: string, record: string): void {
    for (const inbox of inboxes) {
      const parcel = this.#parcels.get(inbox);
      if (parcel) parcel.push(runId, record);
      else this.#parcels.set(inbox, [runId, record]);
    }
    this.#flushSoon();
  }

  leave(writer: RunWriter): void {
    this.#open.delete(writer);
    if (this.#open.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #enter(writer: RunWriter): RunWriter {
    this.#open.add(writer);
    // Finer than the check interval, so that the checks of many runs spread out.
    this.#timer ??= setInterval(() => this.#checkDue(), this.#tools.times.check / 10);
    return writer;
  }

  #checkDue(): void {
    const now = performance.now();
    for (const writer of this.#open) if (writer.due <= now) void writer.check();
  }

  #flushSoon(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#flush());
  }

  /** One packet: the socket is corked meanwhile. */
  #flush(): void {
    const { stream } = this.#tools.redis as { stream?: { cork(): void; uncork(): void } };
    stream?.cork();
    const ready = this.#ready;
    this.#ready = new Set();
    for (const writer of ready) writer.flush();
    for (const [inbox, records] of this.#parcels) this.#deliver(inbox, records);
    this.#parcels.clear();
    stream?.uncork();
    this.#scheduled = false;
    if (this.#ready.size > 0) this.#flushSoon();
  }

  /** A lost record is harmless: its readers notice the gap and read the run's stream. */
  #deliver(inbox: string, records: string[]): void {
    sendNow(this.#tools.redis, "xadd", toInbox(inbox, records)).catch(this.#tools.report);
  }
}
