/** Fields of a log line that several events have. */
const error = "error";
const booking = ["handle", "bookingUid"] as const;

/**
 * Every event of the log: its level, its fields (those with `?` may be absent), and what it tells an operator. No field contains a
 * secret, a question, content or a person's data. docs/log.md is generated from this table.
 */
export const logEvents = {
  "web.ready": event("info", "The web process accepts requests.", "port"),
  "web.proxy_untrusted": event(
    "warn",
    "Production runs without TRUST_PROXY, so that all visitors share one limit.",
    "advice",
  ),
  "web.stopping": event("info", "The web process received a stop signal and drains its connections."),
  "web.stopped": event("info", "The web process has shut down."),
  "web.start_failed": event("fatal", "The web process can't start.", error),
  "worker.ready": event("info", "The worker fetches jobs from these queues.", "queues"),
  "worker.stopping": event("info", "The worker received a stop signal and finishes or gives back its jobs."),
  "worker.stopped": event("info", "The worker has shut down."),
  "worker.start_failed": event("fatal", "The worker can't start.", error),
  "worker.fetch_failed": event("warn", "A worker failed to fetch jobs of a queue; it retries.", "queue", error),
  "worker.task_failed": event(
    "warn",
    "A repeated task of a worker failed (heartbeat, outbox sweep); it retries.",
    error,
  ),
  "process.unhandled_error": event("error", "A promise was rejected without a handler: a defect.", error),
  "process.metrics_missing": event("warn", "The runtime lacks some metrics of the process.", error),

  "redis.opened": event("info", "The process is connected to this kind and version of Redis.", "kind", "version"),
  "redis.connection_failed": event("warn", "A connection to Redis failed; it reconnects.", error),
  "redis.persistence_off": event("warn", "Redis keeps no append-only file.", "advice"),
  "redis.eviction_unsafe": event("warn", "Redis may evict records when it is full.", "policy", "advice"),
  "redis.fsync_unsafe": event("warn", "Redis may lose the latest writes in a crash.", "policy", "advice"),
  "redis.fsync_unknown": event("warn", "Redis doesn't permit reading its fsync policy.", "advice"),
  "queue.connection_failed": event("error", "The connection of a queue failed; it reconnects.", "queue", error),
  "queue.job.failed": event("warn", "An attempt of a job failed.", "queue", "job", "attempt", error),
  "outbox.publish_failed": event(
    "warn",
    "Jobs could not be enqueued after their change; the sweeper enqueues them.",
    error,
  ),
  "audit.write_failed": event("warn", "A write succeeded, but its audit entry could not be stored.", "route", error),

  "http.request.completed": event(
    "info",
    "A request was answered.",
    "requestId",
    "method",
    "route?",
    "status",
    "tookMs",
  ),
  "http.request.failed": event("error", "A request failed with an internal error: a defect.", "requestId", error),
  "http.request.unavailable": event(
    "warn",
    "A request failed because a dependency is unavailable.",
    "requestId",
    error,
  ),
  "mcp.tool.failed": event("error", "A tool failed with an internal error: a defect.", "requestId", error),

  "session.touch_failed": event("warn", "The last use of a session could not be stored.", error),
  "assistant.answered": event(
    "info",
    "A visitor's question was answered.",
    ...(["handle", "pageSlug", "modelId", "retrievalMode", "degraded", "snippetCount", "tookMs"] as const),
  ),
  "assistant.answer.failed": event("warn", "The model failed to write an answer.", "modelId"),
  "assistant.attempt.failed": event("warn", "An attempt to answer a question failed."),
  "assistant.request.failed": event("error", "A visitor's request failed with an internal error: a defect."),
  "assistant.request.unavailable": event("warn", "A visitor's request failed because a dependency is unavailable."),
  "assistant.retrieval.degraded": event(
    "warn",
    "The knowledge of a handle could not be searched in full.",
    "handle",
    "degraded",
  ),
  "relay.command_failed": event(
    "warn",
    "The relay of running answers failed to reach Redis; it repairs itself.",
    error,
  ),
  "knowledge.index.opened": event("info", "The process uses this index, for this reason.", "kind", "reason?"),
  "knowledge.index.created": event("info", "An index of the search module was created.", "index"),
  "knowledge.index.create_failed": event("warn", "An index of the search module could not be created.", "index", error),
  "knowledge.index.dropped": event("info", "An outdated index of the search module was dropped.", "index"),
  "knowledge.index.drop_failed": event(
    "warn",
    "An outdated index of the search module could not be dropped.",
    "index",
    error,
  ),
  "knowledge.index.fallback": event(
    "warn",
    "The in-process index answers instead of the search module; at most one line per reason and 30 s.",
    ...(["reason", "count", "error?"] as const),
  ),

  "lead.verification_sender_missing": event(
    "warn",
    "A lead can't be verified: the handle has no sender for codes.",
    "handle",
  ),
  "campaign.promotion_failed": event("warn", "Delayed sends could not be enqueued; the worker retries.", error),
  "email.identity.checked": event("info", "The DNS records of a domain were checked.", "domain", "status"),
  "email.identity.check_failed": event(
    "warn",
    "The due checks of domains could not be started; the worker retries.",
    error,
  ),
  "email.dispatch.wake_failed": event(
    "warn",
    "A mail was accepted, but the dispatcher was not woken; it polls.",
    error,
  ),
  "email.dispatch.failed": event("warn", "The dispatcher failed; it retries.", error),
  "email.dispatch.redis_unavailable": event("warn", "The dispatcher can't reach Redis; it retries.", error),
  "email.server.unavailable": event("warn", "The mail server can't be used; sending pauses.", error),
  "email.server.available": event("info", "The mail server works again; sending continues."),
  "email.message.unsendable": event(
    "error",
    "A mail could not be composed or signed.",
    "handle",
    "messageId",
    "step",
    error,
  ),
  "email.mailbox.read_failed": event(
    "warn",
    "The bounce mailbox could not be read; the worker retries.",
    "failures",
    error,
  ),
  "email.bounce.malformed": event("warn", "A mail in the bounce mailbox is unreadable and stays there.", "uid", error),

  "calendar.pull_failed": event("warn", "The calendars of a handle could not be read.", "handle", error),
  "calendar.instances_exceeded": event(
    "warn",
    "A handle's calendars have too many events; one of them is left out for now.",
    "instances",
  ),
  "calendar.objects_unreadable": event(
    "warn",
    "Some events of a calendar are unreadable and block no time.",
    "objects",
    "fault",
  ),
  "integration.status_changed": event(
    "warn",
    "A connected account became degraded or healthy; a degraded one needs its owner.",
    ...(["handle", "providerKey", "status", "error?"] as const),
  ),
  "integration.revoke_failed": event("warn", "A provider did not revoke its grant.", "handle", "providerKey", error),
  "integration.refresh_failed": event("warn", "An access token could not be refreshed in the background.", error),
  "payment.checkout_failed": event("warn", "A checkout could not be opened.", "handle", error),
  "payment.settled": event("info", "A payment was settled.", ...booking, "settlement"),
  "payment.amount_mismatch": event("error", "A payment differs from the price of its booking.", ...booking),
  "payment.refund_failed": event("error", "A refund failed; repay it at the provider.", ...booking, "state"),
  "payment.refund_unknown": event("error", "The payment of a refund is unknown; check it at the provider.", ...booking),
  "webhook.status_changed": event("info", "An endpoint was enabled or disabled.", "handle", "webhookId", "status"),
  "webhook.status_update_failed": event("warn", "The status of an endpoint could not be stored.", error),
  "webhook.result_save_failed": event("warn", "The result of a delivery could not be stored; it is retried.", error),
} as const satisfies Record<string, LogEvent>;

type LogLevel = "info" | "warn" | "error" | "fatal";

/** A row of the table. */
export interface LogEvent {
  level: LogLevel;
  fields: readonly string[];
  /** One sentence for operators. */
  meaning: string;
}

type Events = typeof logEvents;
type EventAt<L extends LogLevel> = { [N in keyof Events]: Events[N]["level"] extends L ? N : never }[keyof Events];
type Value = string | number | boolean | readonly string[] | null | undefined;
type Fields<F extends string> = {
  readonly [K in F as K extends `${string}?` ? never : K]: Value;
} & { readonly [K in F as K extends `${infer Name}?` ? Name : never]?: Value };

/** Writes an event of the table with its fields. */
type LogMethod<L extends LogLevel> = <N extends EventAt<L>>(
  fields: Fields<Events[N]["fields"][number]>,
  event: N,
) => void;

/** The log of a process: JSON lines to stdout, one per event of the table. */
export type Log = { [L in LogLevel]: LogMethod<L> } & {
  /** Writes what is buffered. */
  flush(): void;
};

function event<L extends LogLevel, F extends string = never>(level: L, meaning: string, ...fields: F[]) {
  return { level, meaning, fields };
}
