import { mailKinds } from "./scheduling.ts";
import { array, boolean, type Infer, id, integer, object, oneOf, optional, type Schema, string } from "./schema.ts";

/** One kind of job: its queue, the shape of its data, its attempts and the wait between them. */
interface JobRow<T = unknown> {
  queue: QueueName;
  data: Schema<T>;
  attempts: number;
  /** First wait between attempts in milliseconds; doubles each time, with jitter. */
  backoff: number;
}

/** Every queue; each has its own hash tag. */
export const queueNames = ["generation", "knowledge", "campaigns", "email", "scheduling", "webhooks"] as const;
export type QueueName = (typeof queueNames)[number];

/** Every job that can happen later. Data contains ids only, never content. */
export const jobs = {
  "account.sign-in-code": row("email", object({ signInId: id }), 5, 2000),
  "assistant.answer": row("generation", object({ runId: id }), 2, 200),
  "email.check": row("email", object({ domain: string(), account: string() }), 4, 5000),
  "campaigns.trigger": row(
    "campaigns",
    object({
      handle: string(),
      leadId: id,
      campaignId: id,
      trigger: oneOf("LEAD_CAPTURED", "CONVERSION"),
      triggerId: id,
      at: integer(),
    }),
    10,
    1000,
  ),
  "campaigns.send": row("campaigns", object({ handle: string(), campaignId: id, ruleId: id, leadId: id }), 12, 2000),
  "leads.send-code": row("campaigns", object({ handle: string(), leadId: id, round: id }), 6, 2000),
  "leads.notify": row("campaigns", object({ handle: string(), leadId: id }), 12, 2000),
  "leads.digest": row("campaigns", object({ handle: string(), round: string() }), 12, 2000),
  "leads.erase": row("campaigns", object({ handle: string(), address: string() }), 10, 1000),
  "scheduling.expire": row("scheduling", object({ handle: string(), bookingUid: id }), 10, 1000),
  "scheduling.mail": row(
    "scheduling",
    // `waited`: how often the mail has waited for the link of its meeting.
    object({
      handle: string(),
      bookingUid: id,
      kind: oneOf(...mailKinds),
      sequence: integer(0),
      waited: optional(integer(0)),
      // Set unless a visitor caused it.
      by: optional(oneOf("owner")),
    }),
    8,
    2000,
  ),
  // About nine hours in all; the calendar pull retries the rest.
  // `once`: a provider's failure ends the job, because the next pull retries.
  "scheduling.sync": row("scheduling", object({ handle: string(), bookingUid: id, once: optional(boolean) }), 15, 2000),
  "scheduling.pull": row("scheduling", object({ handle: string() }), 10, 2000),
  "payments.refund": row("scheduling", object({ handle: string(), bookingUid: id }), 15, 2000),
  "payments.purchase-mail": row("scheduling", object({ handle: string(), sessionId: string() }), 12, 2000),
  // `buyer` is the digest of an address that somebody named.
  "payments.access-mail": row(
    "scheduling",
    object({ handle: string(), pageSlug: string(), buyer: string(), round: id }),
    12,
    2000,
  ),
  "webhooks.dispatch": row("webhooks", object({ handle: string(), eventId: id }), 10, 1000),
  "webhooks.dispatch-all": row("webhooks", object({ handle: string(), eventIds: array(id) }), 10, 1000),
  "webhooks.deliver": row("webhooks", object({ handle: string(), webhookId: id }), 20, 500),
  "knowledge.index": row("knowledge", object({ handle: string(), documentId: id }), 8, 1000),
} as const;

export type JobName = keyof typeof jobs;
export type JobData<N extends JobName> = Infer<(typeof jobs)[N]["data"]>;

/** The job of one event and that of several: those of one handle that a burst enqueues are merged, in their order. */
export const joint = { one: "webhooks.dispatch", several: "webhooks.dispatch-all", maxItems: 20 } as const;

function row<T>(queue: QueueName, data: Schema<T>, attempts: number, backoff: number): JobRow<T> {
  return { queue, data, attempts, backoff };
}
