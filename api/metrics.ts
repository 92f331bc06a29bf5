import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { type Stats, stats } from "../core/operations/face.ts";
import { fallbackReasons, type IndexStatus, type Runtime } from "../core/platform/runtime.ts";
import { queueNames } from "../schemas/jobs.ts";
import type { Row } from "./route.ts";

/** Counters, latencies and queue depths of a web process for Prometheus; never content. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #requests: Counter<"method" | "route" | "status">;
  readonly #seconds: Histogram<"method" | "route">;
  readonly #memory: Gauge<"server" | "kind">;
  readonly #served: Gauge<"queue">;
  readonly #outboxAge: Gauge;
  readonly #index: Gauge<"kind" | "serving">;
  readonly #fallbacks: Counter<"reason">;
  /** Requests since the last scrape. Label lookups are the expensive part of counting, so they wait for the scrape. */
  readonly #tally = new Map<string, number>();
  readonly #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    const registers = [this.#registry];
    addProcessMetrics(this.#registry, runtime);
    this.#requests = new Counter({
      name: "http_requests_total",
      help: "HTTP requests answered",
      labelNames: ["method", "route", "status"],
      registers,
    });
    this.#seconds = new Histogram({
      name: "http_request_seconds",
      help: "Time to answer an HTTP request",
      labelNames: ["method", "route"],
      registers,
    });
    new Gauge({
      name: "queue_jobs",
      help: "Number of jobs in the queue, by state",
      labelNames: ["queue", "state"],
      registers,
      collect: depths(runtime),
    });
    this.#memory = new Gauge({
      name: "redis_memory_bytes",
      help: "Memory of each Redis server: used, and its limit (0 if unlimited)",
      labelNames: ["server", "kind"],
      registers,
    });
    new Gauge({
      name: "redis_kind",
      help: "Always 1; the label says how Redis is run: plain, module, cluster or sentinel",
      labelNames: ["kind"],
      registers,
      collect() {
        this.set({ kind: runtime.redisKind }, 1);
      },
    });
    this.#served = new Gauge({
      name: "queue_served",
      help: "1 if a live worker consumes the queue",
      labelNames: ["queue"],
      registers,
    });
    this.#outboxAge = new Gauge({
      name: "outbox_age_seconds",
      help: "Age of the oldest change whose jobs may not have been enqueued yet",
      registers,
    });
    this.#index = new Gauge({
      name: "knowledge_index",
      help: "Always 1; the labels name the knowledge index of this process and the one that is serving",
      labelNames: ["kind", "serving"],
      registers,
    });
    this.#fallbacks = new Counter({
      name: "knowledge_index_fallbacks_total",
      help: "Questions that the in-process index answered instead of the server's",
      labelNames: ["reason"],
      registers,
    });
  }

  /** Counts one finished request. */
  request(row: Row | undefined, method: string, status: number, ms: number): void {
    const route = row?.path ?? "none";
    this.#seconds.observe({ method, route }, ms / 1000);
    const name = `${method} ${status} ${route}`;
    this.#tally.set(name, (this.#tally.get(name) ?? 0) + 1);
  }

  /** The metrics in Prometheus text format. */
  async text(): Promise<string> {
    for (const [name, count] of this.#tally) {
      const [method = "", status = "", route = ""] = name.split(" ");
      this.#requests.inc({ method, route, status }, count);
    }
    this.#tally.clear();
    this.#show(await stats(this.#runtime));
    this.#showIndex(await this.#runtime.index.status());
    return this.#registry.metrics();
  }

  #show({ memory, served, outboxAge }: Stats): void {
    this.#outboxAge.set(outboxAge);
    for (const { server, used, limit } of memory) {
      this.#memory.set({ server, kind: "used" }, used);
      this.#memory.set({ server, kind: "limit" }, limit);
    }
    for (const { queue, living } of served) this.#served.set({ queue }, living ? 1 : 0);
  }

  #showIndex({ kind, serving }: IndexStatus): void {
    this.#index.reset();
    this.#index.set({ kind, serving }, 1);
    this.#fallbacks.reset();
    for (const reason of fallbackReasons)
      this.#fallbacks.inc({ reason }, this.#runtime.index.fallbacks.get(reason) ?? 0);
  }
}

/** Metrics of the process itself. The first versions of Deno 2 can't measure the event loop's delay; the metrics after it are missing there. */
function addProcessMetrics(register: Registry, { log }: Runtime): void {
  try {
    collectDefaultMetrics({ register });
  } catch (error) {
    log.warn({ error: String(error) }, "process.metrics_missing");
  }
}

function depths(runtime: Runtime): (this: Gauge<"queue" | "state">) => Promise<void> {
  return async function collect() {
    for (const queue of queueNames) {
      const counts = await runtime.queues
        .queue(queue)
        .getJobCounts("waiting", "active", "delayed", "failed", "prioritized");
      for (const [state, count] of Object.entries(counts)) this.set({ queue, state }, count);
    }
  };
}
