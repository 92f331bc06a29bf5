const [info, warn, error, fatal] = [row("info"), row("warn"), row("error"), row("fatal")];
/** Fields of events about a booking. */
const booking = ["handle", "bookingUid"] as const;

/**
 * Every event of the log: its level, its fields (those with `?` may be absent), and what it tells an operator. No field contains a
 * secret, a question, content or a person's data. docs/log.md is generated from this table.
 */
export const logEvents = {
  "web.ready": info("The web process accepts requests.", "port"),
  "web.proxy_untrusted": warn("Production runs without TRUST_PROXY, so that all visitors share one limit.", "advice"),
  "web.stopping": info("The web process received a stop signal and drains its connections."),
  "web.stopped": info("The web process has shut down."),
  "web.start_failed": fatal("The web process can't start.", "error"),
  "worker.ready": info("The worker fetches jobs from these queues.", "queues"),
  "worker.stopping": info("The worker received a stop signal and finishes or gives back its jobs."),
  "worker.stopped": info("The worker has shut down."),
  "worker.start_failed": fatal("The worker can't start.", "error"),
  "worker.fetch_failed": warn("A worker failed to fetch jobs of a queue; it retries.", "queue", "error"),
  "worker.task_failed": warn("A repeated task of a worker failed (heartbeat, outbox sweep); it retries.", "error"),
  "process.unhandled_error": error("A promise was rejected without a handler: a defect.", "error"),
  "process.metrics_missing": warn("The runtime lacks some metrics of the process.", "error"),

  "redis.opened": info("The process is connected to this kind and version of Redis.", "kind", "version"),
  "redis.connection_failed": warn("A connection to Redis failed; it reconnects.", "error"),
  "redis.persistence_off": warn("Redis keeps no append-only file.", "advice"),
  "redis.eviction_unsafe": warn("Redis may evict records when it is full.", "policy", "advice"),
  "redis.fsync_unsafe": warn("Redis may lose the latest writes in a crash.", "policy", "advice"),
  "redis.fsync_unknown": warn("Redis doesn't permit reading its fsync policy.", "advice"),
  "queue.connection_failed": error("The connection of a queue failed; it reconnects.", "queue", "error"),
  "queue.job.failed": warn(
    "An attempt of a job failed, or only a newer deploy can read it.",
    ...(["queue", "job", "handle?", "attempt", "error"] as const),
  ),
  "outbox.publish_failed": warn("Jobs could not be enqueued after their change; the sweeper enqueues them.", "error"),
  "audit.write_failed": warn("A write succeeded, but its audit entry could not be stored.", "route", "error"),

  "http.request.completed": info("A request was answered.", "requestId", "method", "route?", "status", "tookMs"),
  "http.request.failed": error("A request failed with an internal error: a defect.", "requestId", "error"),
  "http.request.unavailable": warn("A request failed because a dependency is unavailable.", "requestId", "error"),
  "mcp.tool.failed": error("A tool failed with an internal error: a defect.", "requestId", "error"),

  "session.touch_failed": warn("The last use of a session could not be stored.", "error"),
  "assistant.answered": info(
    "A visitor's question was answered.",
    ...(["handle", "pageSlug", "modelId", "retrievalMode", "degraded", "snippetCount", "tookMs"] as const),
  ),
  "assistant.answer.failed": warn("The model failed to write an answer, or an answer broke off.", "modelId"),
  "assistant.attempt.failed": warn("An attempt to answer a question failed."),
  "assistant.request.failed": error("A visitor's request failed with an internal error: a defect."),
  "assistant.request.unavailable": warn("A visitor's request failed because a dependency is unavailable."),
  "assistant.retrieval.degraded": warn(
    "The knowledge of a handle could not be searched in full.",
    ...(["handle", "degraded"] as const),
  ),
  "relay.command_failed": warn("The relay of running answers failed to reach Redis; it repairs itself.", "error"),
  "knowledge.index.opened": info("The process uses this index, for this reason.", "kind", "reason?"),
  "knowledge.index.created": info("An index of the search module was created.", "index"),
  "knowledge.index.create_failed": warn("An index of the search module could not be created.", "index", "error"),
  "knowledge.index.dropped": info("An outdated index of the search module was dropped.", "index"),
  "knowledge.index.drop_failed": warn("An outdated index of the search module could not be dropped.", "index", "error"),
  "knowledge.index.fallback": warn(
    "The in-process index answers instead of the search module; at most one line per reason and 30 s.",
    ...(["reason", "count", "error?"] as const),
  ),

  "lead.verification_sender_missing": warn("A lead can't be verified: the handle has no sender for codes.", "handle"),
  "campaign.promotion_failed": warn("Delayed sends could not be enqueued; the worker retries.", "error"),
  "email.identity.checked": info("The DNS records of a domain were checked.", "domain", "status"),
  "email.dispatch.wake_failed": warn("A mail was accepted, but the dispatcher was not woken; it polls.", "error"),
  "email.dispatch.failed": warn("The dispatcher failed; it retries.", "error"),
  "email.dispatch.redis_unavailable": warn("The dispatcher can't reach Redis; it retries.", "error"),
  "email.server.unavailable": warn("The mail server can't be used; sending pauses.", "error"),
  "email.server.available": info("The mail server works again; sending continues."),
  "email.message.unsendable": error(
    "A mail could not be read, composed or signed.",
    ...(["handle", "messageId", "step", "error"] as const),
  ),
  "email.mailbox.read_failed": warn("The bounce mailbox could not be read; the worker retries.", "error"),
  "email.bounce.malformed": warn("A mail in the bounce mailbox is unreadable and stays there.", "uid", "error"),

  "calendar.pull_failed": warn("The calendars of a handle could not be read.", "handle", "error"),
  "calendar.instances_exceeded": warn(
    "A handle's calendars have too many events; one of them is left out for now.",
    "instances",
  ),
  "calendar.objects_unreadable": warn(
    "Some events of a calendar are unreadable and block no time.",
    "objects",
    "fault",
  ),
  "integration.status_changed": warn(
    "A connected account became degraded or healthy; a revoked one needs its owner.",
    ...(["handle", "providerKey", "status", "error?"] as const),
  ),
  "integration.revoke_failed": warn("A provider did not revoke its grant.", "handle", "providerKey", "error"),
  "integration.refresh_failed": warn("An access token could not be refreshed in the background.", "error"),
  "payment.checkout_failed": warn("A checkout could not be opened.", "handle", "error"),
  "payment.settled": info("A payment was settled.", ...booking, "settlement"),
  "payment.amount_mismatch": error("A payment differs from the price of its booking.", ...booking),
  "payment.refund_failed": error("A refund failed; its owners are asked to repay it.", ...booking, "reason"),
  "webhook.status_changed": info("An endpoint was enabled or disabled.", "handle", "webhookId", "status"),
  "webhook.status_update_failed": warn("The status of an endpoint could not be stored.", "error"),
  "webhook.result_save_failed": warn("The result of a delivery could not be stored; it is retried.", "error"),
} as const satisfies Record<string, LogEvent>;

type LogLevel = "info" | "warn" | "error" | "fatal";

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

/** Makes the rows of a level: what the event means, then its fields. */
function row<L extends LogLevel>(level: L) {
  return <F extends string = never>(meaning: string, ...fields: F[]) => ({ level, meaning, fields });
}
