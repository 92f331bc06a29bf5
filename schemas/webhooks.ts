import { conversion } from "./campaigns.ts";
import { purposes } from "./email.ts";
import { lead } from "./leads.ts";
import { purchase } from "./payments.ts";
import { booking } from "./scheduling.ts";
import * as s from "./schema.ts";

const bookingData = s.object({ handle: s.handle, booking });
const span = s.object({ start: s.instant, end: s.instant });
const leadData = s.object({ handle: s.handle, lead });
const returnedMail = s.component("ReturnedMail", {
  messageId: s.string(),
  recipient: s.string(),
  purpose: s.oneOf(...purposes),
  reason: s.nullable(s.string()),
  /** SMTP reply code; null if the report has none. */
  smtpCode: s.nullable(s.integer()),
  /** True if the address is suppressed because of it. */
  suppressed: s.boolean,
});
const emailData = s.object({ handle: s.handle, email: returnedMail });

/** The type of a test event: no endpoint can subscribe to it, and each gets its own tests. */
export const testEventType = "webhook.test";

/** What each type of event says, and its `data` (docs/reference.md, "Webhook events"). */
export const webhookData = {
  "scheduling.booking.created": { summary: "A booking was saved, in whatever status", data: bookingData },
  "scheduling.booking.confirmed": { summary: "A booking became ACCEPTED", data: bookingData },
  "scheduling.booking.cancelled": { summary: "A booking became CANCELLED or REJECTED", data: bookingData },
  "scheduling.booking.rescheduled": {
    summary: "A booking was moved",
    data: s.object({ handle: s.handle, booking, previous: span }),
  },
  "scheduling.payment.required": { summary: "A booking waits for its payment", data: bookingData },
  "scheduling.payment.succeeded": { summary: "A booking was paid", data: bookingData },
  "scheduling.sync.degraded": {
    summary: "A provider failed: its calendar can't be read, or a booking's event could not be written",
    data: s.object({
      handle: s.handle,
      providerKey: s.nullable(s.string()),
      credentialId: s.nullable(s.string()),
      booking: s.optional(s.nullable(booking)),
      reason: s.string(),
      detail: s.optional(s.string()),
    }),
  },
  "lead.captured": { summary: "A lead was captured, or captured again, in whatever status", data: leadData },
  "lead.verified": { summary: "The address of a lead was verified", data: leadData },
  "conversion.recorded": { summary: "A conversion was recorded", data: s.object({ handle: s.handle, conversion }) },
  "email.bounced": {
    summary: "A mail came back, or a server refused its recipient as unknown or disabled",
    data: emailData,
  },
  "email.complained": { summary: "A recipient reported a mail as unwanted", data: emailData },
  "page.purchased": { summary: "A paid page was bought", data: s.object({ handle: s.handle, purchase }) },
  [testEventType]: {
    summary: "A test that the owner asked for",
    data: s.object({ handle: s.handle, webhookId: s.string() }),
  },
} satisfies Record<string, { summary: string; data: s.Schema<unknown> }>;

export type WebhookEventType = Exclude<keyof typeof webhookData, typeof testEventType>;
/** Types of event that an endpoint may subscribe to, and those of scheduling among them. */
export const webhookEventTypes = (Object.keys(webhookData) as (keyof typeof webhookData)[]).filter(
  (type) => type !== testEventType,
);
export const schedulingEventTypes = webhookEventTypes.filter((type) => type.startsWith("scheduling."));

const derived = s.ignored("webhookId", "secret", "status", "createdAt");

/** `POST …/webhooks`; without `events` the endpoint gets all, at the older path `…/scheduling/webhooks` all of scheduling. */
export const newWebhook = s.object({
  url: s.webAddress,
  events: s.optional(s.array(s.oneOf(...webhookEventTypes), { minItems: 1, uniqueItems: true })),
  description: s.optional(s.nullable(s.line(200))),
  ...derived,
});

const webhookFields = {
  webhookId: s.string(),
  url: s.string({ format: "uri" }),
  events: s.array(s.oneOf(...webhookEventTypes)),
  description: s.nullable(s.string()),
  status: s.oneOf("ACTIVE", "DISABLED"),
  createdAt: s.instant,
};

export const webhook = s.component("Webhook", webhookFields);
export type Webhook = s.Infer<typeof webhook>;
/** An endpoint with its secret, which is shown only once. */
export const webhookWithSecret = s.component("NewWebhook", {
  ...webhookFields,
  secret: s.string({ pattern: "^whsec_" }),
});
export type WebhookWithSecret = s.Infer<typeof webhookWithSecret>;

/** A secret, and the real ms until which it signs. */
export interface SigningSecret {
  secret: string;
  until: number;
}

/** A stored endpoint; its secrets are sealed. */
export interface StoredWebhook extends Webhook {
  secret: string;
  /** The former secrets of the last 24 hours, newest first. */
  previous: SigningSecret[] | SigningSecret | null;
}

const attempt = s.component("WebhookAttempt", {
  at: s.instant,
  durationMs: s.integer(0),
  /** HTTP status; null without a response. */
  status: s.nullable(s.integer(100, 599)),
  error: s.nullable(s.string()),
  /** The first bytes of the response. */
  responseSnippet: s.string(),
});
export type DeliveryAttempt = s.Infer<typeof attempt>;

export const webhookDelivery = s.component("WebhookDelivery", {
  deliveryId: s.string(),
  webhookId: s.string(),
  eventId: s.string(),
  type: s.string(),
  status: s.oneOf("PENDING", "SUCCEEDED", "FAILED"),
  attempts: s.array(attempt),
  nextAttemptAt: s.nullable(s.instant),
  createdAt: s.instant,
});
export type Delivery = s.Infer<typeof webhookDelivery>;

/**
 * A stored delivery. `asked` deliveries were requested by the owner and go to disabled endpoints too. Deliveries of one subject, such as a
 * booking, are sent in sequence.
 */
export type StoredDelivery = Delivery & { asked: boolean; subject?: string };
