import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { type Stats, stats } from "../core/operations/face.ts";
import { fallbackReasons, type IndexStatus, type Runtime } from "../core/platform/runtime.ts";
import type { MessageStatus } from "../schemas/email.ts";
import { queueNames } from "../schemas/jobs.ts";
import type { Row } from "./route.ts";

/** The statuses of a delivery with which an attempt to send it ends. */
const attemptOutcomes = ["SENT", "DEFERRED", "FAILED", "DENIED"] as const satisfies MessageStatus[];

/** Counters, latencies and queue depths of a web process for Prometheus; never content. */
export class Metrics {
  readonly #runtime: Runtime;
  readonly #registry = new Registry();
  readonly #requests = new Counter(
    this.#row("http_requests_total", "HTTP requests answered", "method", "route", "status"),
  );
  readonly #seconds = new Histogram(
    this.#row("http_request_seconds", "Time to answer an HTTP request", "method", "route"),
  );
  readonly #fallbacks = new Counter(
    this.#row(
      "knowledge_index_fallbacks_total",
      "Questions that the in-process index answered instead of the server's",
      "reason",
    ),
  );
  readonly #jobs = this.#gauge("queue_jobs", "Number of jobs in the queue, by state", "queue", "state");
  readonly #served = this.#gauge("queue_served", "1 if a live worker consumes the queue", "queue");
  readonly #outboxAge = this.#gauge(
    "outbox_age_seconds",
    "Age of the oldest change whose jobs may not have been enqueued yet",
  );
  readonly #mailWait = this.#gauge("mail_wait_seconds", "Time for which due mail has waited for the mail server");
  readonly #mailAttempts = new Counter(
    this.#row("mail_attempts_total", "Attempts of all workers to send a mail, by their outcome", "outcome"),
  );
  readonly #dataLost = this.#gauge("redis_data_lost", "1 if Redis has lost the data that this process started with");
  readonly #memory = this.#gauge(
    "redis_memory_bytes",
    "Memory of each Redis server: used, and its limit (0 if unlimited)",
    ...["server", "kind"],
  );
  readonly #evicts = this.#gauge("redis_evicts", "1 if the Redis server may evict records when it is full", "server");
  readonly #index = this.#gauge(
    "knowledge_index",
    "Always 1; the labels name the knowledge index of this process and the one that is serving",
    ...["kind", "serving"],
  );

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    const help = "Always 1; the label says how Redis is run: plain, module, cluster or sentinel";
    this.#gauge("redis_kind", help, "kind").set({ kind: runtime.redisKind }, 1);
    addProcessMetrics(this.#registry, runtime);
  }

  request(row: Row | undefined, method: string, status: number, ms: number): void {
    const route = row?.path ?? "none";
    this.#seconds.observe({ method, route }, ms / 1000);
    this.#requests.inc({ method, route, status });
  }

  async text(): Promise<string> {
    this.#show(await stats(this.#runtime));
    this.#showIndex(await this.#runtime.index.status());
    await this.#showJobs();
    return this.#registry.metrics();
  }

  #show({ memory, served, outboxAgeSeconds, mailWaitSeconds, mailAttempts, isDataLost }: Stats): void {
    this.#outboxAge.set(outboxAgeSeconds);
    this.#mailWait.set(mailWaitSeconds);
    this.#mailAttempts.reset();
    for (const outcome of attemptOutcomes) this.#mailAttempts.inc({ outcome }, Number(mailAttempts[outcome] ?? 0));
    this.#dataLost.set(isDataLost ? 1 : 0);
    for (const { server, used, limit, evicts } of memory) {
      this.#evicts.set({ server }, evicts ? 1 : 0);
      this.#memory.set({ server, kind: "used" }, used);
      this.#memory.set({ server, kind: "limit" }, limit);
    }
    for (const { queue, isAlive } of served) this.#served.set({ queue }, isAlive ? 1 : 0);
  }

  #showIndex({ kind, serving }: IndexStatus): void {
    this.#index.reset();
    this.#index.set({ kind, serving }, 1);
    this.#fallbacks.reset();
    for (const reason of fallbackReasons)
      this.#fallbacks.inc({ reason }, this.#runtime.index.fallbacks.get(reason) ?? 0);
  }

  async #showJobs(): Promise<void> {
    for (const name of queueNames) {
      const queue = this.#runtime.queues.queue(name);
      const counts = await queue.getJobCounts("waiting", "active", "delayed", "failed", "prioritized");
      for (const [state, count] of Object.entries(counts)) this.#jobs.set({ queue: name, state }, count);
    }
  }

  #gauge(name: string, help: string, ...labelNames: string[]): Gauge {
    return new Gauge(this.#row(name, help, ...labelNames));
  }

  #row(name: string, help: string, ...labelNames: string[]) {
    return { name, help, labelNames, registers: [this.#registry] };
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
