import { mailKinds } from "./scheduling.ts";
import * as s from "./schema.ts";

/** One kind of job: its queue, the shape of its data, its attempts and the wait between them. */
interface JobRow<T = unknown> {
  queue: QueueName;
  data: s.Schema<T>;
  attempts: number;
  /** First wait between attempts in milliseconds; doubles each time, with jitter. */
  backoff: number;
}

/** Every queue; each has its own hash tag. */
export const queueNames = ["generation", "knowledge", "campaigns", "email", "scheduling", "webhooks"] as const;
export type QueueName = (typeof queueNames)[number];

/** Every job that can happen later. Data contains ids only, never content. */
export const jobs = {
  "account.sign-in-code": row("email", s.object({ signInId: s.id }), 5, 2000),
  "assistant.answer": row("generation", s.object({ runId: s.id }), 2, 200),
  "email.check": row("email", s.object({ domain: s.string(), account: s.string() }), 4, 5000),
  "campaigns.trigger": row(
    "campaigns",
    s.object({
      handle: s.string(),
      leadId: s.id,
      campaignId: s.id,
      trigger: s.oneOf("LEAD_CAPTURED", "CONVERSION"),
      triggerId: s.id,
      at: s.integer(),
    }),
    10,
    1000,
  ),
  "campaigns.send": row(
    "campaigns",
    s.object({ handle: s.string(), campaignId: s.id, ruleId: s.id, leadId: s.id }),
    12,
    2000,
  ),
  "leads.send-code": row("campaigns", s.object({ handle: s.string(), leadId: s.id, round: s.id }), 6, 2000),
  "leads.notify": row("campaigns", s.object({ handle: s.string(), leadId: s.id }), 12, 2000),
  "leads.digest": row("campaigns", s.object({ handle: s.string(), round: s.string() }), 12, 2000),
  "leads.erase": row("campaigns", s.object({ handle: s.string(), address: s.string() }), 10, 1000),
  "scheduling.expire": row("scheduling", s.object({ handle: s.string(), bookingUid: s.id }), 10, 1000),
  "scheduling.mail": row(
    "scheduling",
    // `waited`: how often the mail has waited for the link of its meeting.
    s.object({
      handle: s.string(),
      bookingUid: s.id,
      kind: s.oneOf(...mailKinds),
      sequence: s.integer(0),
      waited: s.optional(s.integer(0)),
      // Set unless a visitor caused it.
      by: s.optional(s.oneOf("owner")),
    }),
    8,
    2000,
  ),
  // About nine hours in all; the calendar pull retries the rest.
  // `once`: a provider's failure ends the job, because the next pull retries.
  "scheduling.sync": row(
    "scheduling",
    s.object({ handle: s.string(), bookingUid: s.id, once: s.optional(s.boolean) }),
    15,
    2000,
  ),
  // About a minute in all: the next pull is due five minutes after this one.
  "scheduling.pull": row("scheduling", s.object({ handle: s.string() }), 6, 2000),
  "payments.refund": row("scheduling", s.object({ handle: s.string(), bookingUid: s.id }), 15, 2000),
  "payments.purchase-mail": row("scheduling", s.object({ handle: s.string(), sessionId: s.string() }), 12, 2000),
  // `buyer` is the digest of an address that somebody named.
  "payments.access-mail": row(
    "scheduling",
    s.object({ handle: s.string(), pageSlug: s.string(), buyer: s.string(), round: s.id }),
    12,
    2000,
  ),
  "webhooks.dispatch": row("webhooks", s.object({ handle: s.string(), eventId: s.id }), 10, 1000),
  "webhooks.dispatch-all": row("webhooks", s.object({ handle: s.string(), eventIds: s.array(s.id) }), 10, 1000),
  "webhooks.deliver": row("webhooks", s.object({ handle: s.string(), webhookId: s.id }), 20, 500),
  "knowledge.index": row("knowledge", s.object({ handle: s.string(), documentId: s.id }), 8, 1000),
} as const;

export type JobName = keyof typeof jobs;
export type JobData<N extends JobName> = s.Infer<(typeof jobs)[N]["data"]>;

/** The job of one event and that of several: those of one handle that a burst enqueues are merged, in their order. */
export const joint = { one: "webhooks.dispatch", several: "webhooks.dispatch-all", maxItems: 20 } as const;

function row<T>(queue: QueueName, data: s.Schema<T>, attempts: number, backoff: number): JobRow<T> {
  return { queue, data, attempts, backoff };
}
