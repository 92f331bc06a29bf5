import { conversion } from "./campaigns.ts";
import { purposes } from "./email.ts";
import { lead } from "./leads.ts";
import { purchase } from "./payments.ts";
import { booking } from "./scheduling.ts";
import {
  array,
  boolean,
  handle,
  type Infer,
  ignored,
  instant,
  integer,
  line,
  listing,
  nullable,
  object,
  oneOf,
  optional,
  type Schema,
  string,
  webAddress,
} from "./schema.ts";

/** Types of scheduling events. */
export const schedulingEventTypes = [
  "scheduling.booking.created",
  "scheduling.booking.confirmed",
  "scheduling.booking.cancelled",
  "scheduling.booking.rescheduled",
  "scheduling.payment.required",
  "scheduling.payment.succeeded",
  "scheduling.sync.degraded",
] as const;
/** Types of event that an endpoint may subscribe to (docs/reference.md, "Webhook events"). */
export const webhookEventTypes = [
  ...schedulingEventTypes,
  "lead.captured",
  "lead.verified",
  "conversion.recorded",
  "email.bounced",
  "email.complained",
  "page.purchased",
] as const;
export type WebhookEventType = (typeof webhookEventTypes)[number];

/** The type of a test event: no endpoint can subscribe to it, and each gets its own tests. */
export const testEventType = "webhook.test";

const derived = ignored("webhookId", "secret", "status", "createdAt");

/** `POST …/scheduling/webhooks`; without `events` the endpoint gets all. */
export const newWebhook = object({
  handle,
  url: webAddress,
  events: optional(array(oneOf(...webhookEventTypes), { minItems: 1, uniqueItems: true })),
  description: optional(nullable(line(200))),
  ...derived,
});

/** The path of one endpoint. */
export const webhookPath = object({ handle, webhookId: string() });
/** `GET …/scheduling/webhooks`. */
export const webhookListing = object({ handle, ...listing });
/** `GET …/deliveries`. */
export const deliveryListing = object({ handle, webhookId: string(), ...listing });
/** The path of one delivery. */
export const deliveryPath = object({ handle, webhookId: string(), deliveryId: string() });

const webhookFields = {
  webhookId: string(),
  url: string({ format: "uri" }),
  events: array(oneOf(...webhookEventTypes)),
  description: nullable(string()),
  status: oneOf("ACTIVE", "DISABLED"),
  createdAt: instant,
};

/** An endpoint without its secret. */
export const webhook = object(webhookFields);
export type Webhook = Infer<typeof webhook>;
/** An endpoint with its secret, which is shown only once. */
export const shownWebhook = object({ ...webhookFields, secret: string({ pattern: "^whsec_" }) });
export type ShownWebhook = Infer<typeof shownWebhook>;
export const shownWebhookAnswer = object({ webhook: shownWebhook });
export const webhookAnswer = object({ webhook });
export const webhookList = object({ webhooks: array(webhook), nextCursor: nullable(string()) });

/** A former secret. */
export interface FormerSecret {
  secret: string;
  until: number;
}

/** A stored endpoint; its secrets are sealed. */
export interface StoredWebhook extends Webhook {
  secret: string;
  /** The former secrets of the last 24 hours, newest first, each with the real ms until which it signs. */
  previous: FormerSecret[] | FormerSecret | null;
}

export const attempt = object({
  at: instant,
  durationMs: integer(0),
  /** HTTP status; null without a response. */
  status: nullable(integer(100, 599)),
  error: nullable(string()),
  /** The first bytes of the response. */
  responseSnippet: string(),
});
export type DeliveryAttempt = Infer<typeof attempt>;

/** One event on its way to one endpoint. */
export const webhookDelivery = object({
  deliveryId: string(),
  webhookId: string(),
  eventId: string(),
  type: string(),
  status: oneOf("PENDING", "SUCCEEDED", "FAILED"),
  attempts: array(attempt),
  nextAttemptAt: nullable(instant),
  createdAt: instant,
});
export type Delivery = Infer<typeof webhookDelivery>;
export const deliveryAnswer = object({ delivery: webhookDelivery });
export const deliveryList = object({ deliveries: array(webhookDelivery), nextCursor: nullable(string()) });

/**
 * A stored delivery. `asked` deliveries were requested by the owner and go to disabled endpoints too. Deliveries of one subject, such as a
 * booking, are sent in sequence.
 */
export type StoredDelivery = Delivery & { asked: boolean; subject?: string };

const bookingData = object({ handle, booking });
const span = object({ start: instant, end: instant });
const leadData = object({ handle, lead });
/** A returned delivery. */
export const returnedMail = object({
  messageId: string(),
  recipient: string(),
  purpose: oneOf(...purposes),
  reason: nullable(string()),
  /** SMTP reply code; null if the report has none. */
  smtpCode: nullable(integer()),
  /** True if the address is suppressed because of it. */
  suppressed: boolean,
});
export type ReturnedMail = Infer<typeof returnedMail>;
const emailData = object({ handle, email: returnedMail });

/** The `data` of each kind of event. */
export const webhookData: Record<WebhookEventType | typeof testEventType, { summary: string; data: Schema<unknown> }> =
  {
    "scheduling.booking.created": { summary: "A booking was saved, in whatever status", data: bookingData },
    "scheduling.booking.confirmed": { summary: "A booking became ACCEPTED", data: bookingData },
    "scheduling.booking.cancelled": { summary: "A booking became CANCELLED or REJECTED", data: bookingData },
    "scheduling.booking.rescheduled": {
      summary: "A booking was moved",
      data: object({ handle, booking, previous: span }),
    },
    "scheduling.payment.required": { summary: "A booking waits for its payment", data: bookingData },
    "scheduling.payment.succeeded": { summary: "A booking was paid", data: bookingData },
    "scheduling.sync.degraded": {
      summary: "A provider failed: its calendar can't be read, or a booking's event could not be written",
      data: object({
        handle,
        providerKey: nullable(string()),
        credentialId: nullable(string()),
        booking: optional(nullable(booking)),
        reason: string(),
        detail: optional(string()),
      }),
    },
    "lead.captured": { summary: "A lead was captured, or captured again, in whatever status", data: leadData },
    "lead.verified": { summary: "The address of a lead was verified", data: leadData },
    "conversion.recorded": { summary: "A conversion was recorded", data: object({ handle, conversion }) },
    "email.bounced": { summary: "A mail came back, or a server refused its recipient for good", data: emailData },
    "email.complained": { summary: "A recipient reported a mail as unwanted", data: emailData },
    "page.purchased": { summary: "A paid page was bought", data: object({ handle, purchase }) },
    [testEventType]: { summary: "A test that the owner asked for", data: object({ handle, webhookId: string() }) },
  };
