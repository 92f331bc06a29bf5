import type { Redis } from "ioredis";
import type { Log } from "../../platform/log-events.ts";
import type {
  ClaimRefusal,
  RunPublisher,
  RunRelay,
  RunSubscription,
  SubscribeOptions,
} from "../../platform/runtime.ts";
import { RunReaders } from "./reader.ts";
import { type RelayTools, type RunTimes, runTimes } from "./runs.ts";
import { RunWriters } from "./writers.ts";

export { cancelRun, createRun, RunLost, readRun, runEnding } from "./runs.ts";

/** The parts of a relay. */
interface RelayParts {
  /** The process's command connection, with the scripts loaded. */
  redis: Redis;
  /** Opens a connection for blocking reads; called once, by the first `follow`. */
  connect: () => Redis;
  /** Receives failures, most of which repair themselves. */
  log: Pick<Log, "warn">;
  times?: RunTimes;
}

/** Carries the chunks of answers from workers to readers through Redis. One per process; a worker claims, a web process follows. */
export class Relay implements RunRelay {
  readonly #writers: RunWriters;
  readonly #readers: RunReaders;

  constructor({ redis, connect, log, times = runTimes }: RelayParts) {
    const report = (error: unknown): void =>
      log.warn({ error: error instanceof Error ? error.message : String(error) }, "relay.command_failed");
    const tools: RelayTools = { redis, report, times };
    this.#writers = new RunWriters(tools);
    this.#readers = new RunReaders(tools, connect);
  }

  claim(runId: string, generation: number): Promise<RunPublisher | ClaimRefusal> {
    return this.#writers.claim(runId, generation);
  }

  follow(runId: string, options?: SubscribeOptions): RunSubscription {
    return this.#readers.follow(runId, options);
  }

  close(): Promise<void> {
    return this.#readers.close();
  }
}
