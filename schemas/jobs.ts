import { triggerEvents } from "./campaigns.ts";
import { mailKinds } from "./scheduling.ts";
import * as s from "./schema.ts";

/** Every queue; each has its own hash tag. */
export const queueNames = ["generation", "knowledge", "campaigns", "email", "scheduling", "webhooks"] as const;
export type QueueName = (typeof queueNames)[number];

/** Every job that can happen later. Data contains ids only, never content. */
export const jobs = {
  "account.sign-in-code": row("email", [5, 2000], { signInId: s.id }),
  "assistant.answer": row("generation", [2, 200], { runId: s.id }),
  "email.check": row("email", [4, 5000], { domain: s.string(), account: s.string() }),
  "campaigns.trigger": row("campaigns", [10, 1000], {
    handle: s.string(),
    leadId: s.id,
    campaignId: s.id,
    trigger: s.oneOf(...triggerEvents),
    triggerId: s.id,
    at: s.integer(),
  }),
  "campaigns.send": row("campaigns", [12, 2000], { handle: s.string(), campaignId: s.id, ruleId: s.id, leadId: s.id }),
  "leads.send-code": row("campaigns", [6, 2000], { handle: s.string(), leadId: s.id, round: s.id }),
  // Jobs that may mail from the service's own address: 18 hours in all, as a mail server may be away for a night. They have the queue of
  // mail, so that a slow mail server holds up no rules, calendars or holds.
  "leads.notify": row("email", [16, 2000], { handle: s.string(), leadId: s.id }),
  "leads.digest": row("email", [16, 2000], { handle: s.string(), round: s.string() }),
  "leads.erase": row("campaigns", [10, 1000], { handle: s.string(), address: s.string() }),
  "scheduling.expire": row("scheduling", [10, 1000], { handle: s.string(), bookingUid: s.id }),
  "scheduling.mail": row("email", [16, 2000], {
    handle: s.string(),
    bookingUid: s.id,
    kind: s.oneOf(...mailKinds),
    sequence: s.integer(0),
    // How often the mail has waited for the link of its meeting.
    waited: s.optional(s.integer(0)),
    // Set unless a visitor caused it.
    by: s.optional(s.oneOf("owner")),
  }),
  // About nine hours in all; the calendar pull retries the rest.
  // `once`: a provider's failure ends the job, because the next pull retries.
  "scheduling.sync": row("scheduling", [15, 2000], {
    handle: s.string(),
    bookingUid: s.id,
    once: s.optional(s.boolean),
  }),
  // About a minute in all: the next pull is due five minutes after this one.
  "scheduling.pull": row("scheduling", [6, 2000], { handle: s.string() }),
  // About half an hour in all, in which the checkout ends by itself.
  "payments.close": row("scheduling", [11, 2000], { handle: s.string(), bookingUid: s.id }),
  // At least a day in all (docs/reference.md, "Payments").
  "payments.refund": row("scheduling", [17, 2000], { handle: s.string(), bookingUid: s.id }),
  "scheduling.digest": row("email", [16, 2000], { handle: s.string(), round: s.string() }),
  "payments.purchase-mail": row("email", [16, 2000], { handle: s.string(), sessionId: s.string() }),
  // `buyer` is the digest of an address that somebody named.
  "payments.access-mail": row("email", [16, 2000], {
    handle: s.string(),
    pageSlug: s.string(),
    buyer: s.string(),
    round: s.id,
  }),
  "webhooks.dispatch": row("webhooks", [10, 1000], { handle: s.string(), eventId: s.id }),
  "webhooks.dispatch-all": row("webhooks", [10, 1000], { handle: s.string(), eventIds: s.array(s.id) }),
  "webhooks.deliver": row("webhooks", [20, 500], { handle: s.string(), webhookId: s.id }),
  "knowledge.index": row("knowledge", [8, 1000], { handle: s.string(), documentId: s.id }),
} as const;

export type JobName = keyof typeof jobs;
export type JobData<N extends JobName> = s.Infer<(typeof jobs)[N]["data"]>;

/**
 * The job of one event and that of several: those of one handle that are enqueued together are merged, so that no event is sent while an
 * earlier one of the same change waits for another worker.
 */
export const mergeable = { one: "webhooks.dispatch", several: "webhooks.dispatch-all", maxItems: 20 } as const;

/** `backoff` is the first wait between attempts in ms; it doubles each time, with jitter. */
function row<P extends Record<string, s.Schema<unknown>>>(
  queue: QueueName,
  [attempts, backoff]: [attempts: number, backoff: number],
  data: P,
) {
  return { queue, data: s.object(data), attempts, backoff };
}
