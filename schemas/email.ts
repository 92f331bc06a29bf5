// Over 300 lines: the shapes of one noun, which share their fields; each is read on its own.
import {
  anything,
  array,
  boolean,
  documented,
  email,
  handle,
  type Infer,
  id,
  ignored,
  instant,
  instantOrDate,
  integer,
  line,
  listing,
  map,
  merge,
  nullable,
  object,
  oneOf,
  optional,
  partial,
  type Schema,
  string,
  text,
  withCode,
  withDefault,
} from "./schema.ts";

/** The purposes of messages; a sender lists those that it may be used for. */
export const purposes = ["PRODUCT_NOTIFICATION", "LEAD_VERIFICATION", "TRANSACTIONAL_API", "CALENDAR"] as const;
export type Purpose = (typeof purposes)[number];

/** Local parts that a sender's address may have (docs/reference.md, "Senders"). */
const localParts = ["noreply", "notifications", "calendar", "support", "hello"] as const;

/** Statuses of a delivery and of a message (docs/reference.md, "Delivery statuses and events"). */
export const statuses = [
  "QUEUED",
  "SENDING",
  "DEFERRED",
  "SENT",
  "DELIVERED",
  "BOUNCED",
  "COMPLAINED",
  "DENIED",
  "FAILED",
  "CANCELLED",
] as const;
export type MessageStatus = (typeof statuses)[number];

/** Types of event: every status, and a recipient's unsubscription and resubscription. */
export const eventTypes = [...statuses, "UNSUBSCRIBED", "RESUBSCRIBED"] as const;
export type MailEventType = (typeof eventTypes)[number];

/** Most recipients of one message. */
export const MAX_RECIPIENTS = 50;
/** Most addresses in a request, including duplicates. */
const mostNamed = 1000;

const purpose = oneOf(...purposes);
const status = oneOf(...statuses);

// domains and their identities

/** A domain name of at least two labels, in ASCII; case is folded by the functions. */
export const domainName = string({
  maxLength: 253,
  pattern:
    "^(?=.*[A-Za-z])(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\\.)+[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$",
});

/** `GET …/email-identity` and `POST …/reconcile`; any name is accepted, an unknown one is not found. */
export const domainPath = object({ domain: string() });

/** `POST /v2/account/domains`. */
export const newDomain = object({
  domain: domainName,
  handle: optional(nullable(handle)),
  accountId: optional(id),
  ...ignored("owned", "status", "requiredDnsRecords", "createdAt"),
});

/** `GET /v2/account/domains`. */
export const domainListing = object({ ...listing });

const recordPurposes = ["OWNERSHIP", "DKIM", "SPF", "MAIL_FROM_MX", "DMARC"] as const;
export type RecordPurpose = (typeof recordPurposes)[number];
const recordStatuses = ["FOUND", "MISSING", "MISMATCH", "UNKNOWN"] as const;
export type RecordStatus = (typeof recordStatuses)[number];

/** A DNS record that the domain's owner publishes. Names are absolute; an MX value is preference and host. */
export const dnsRecord = object({
  type: oneOf("TXT", "MX"),
  name: string(),
  value: string(),
  purpose: oneOf(...recordPurposes),
  required: boolean,
  status: oneOf(...recordStatuses),
});
export type DnsRecord = Infer<typeof dnsRecord>;

const identityStatuses = ["PENDING", "READY", "FAILED"] as const;
export type IdentityStatus = (typeof identityStatuses)[number];

/** The email identity of a domain. */
export const identity = object({
  identityKey: string(),
  region: string(),
  domain: string(),
  status: oneOf(...identityStatuses),
  mailFromDomain: string(),
  requiredDnsRecords: array(dnsRecord),
  lastCheckedAt: nullable(instant),
});
export type Identity = Infer<typeof identity>;

/** A domain of an account. `owned` once its OWNERSHIP record was found; only then it shows pages and excludes other accounts. */
export const accountDomain = object({
  domain: string(),
  accountId: string(),
  handle: nullable(string()),
  owned: boolean,
  status: oneOf(...identityStatuses),
  requiredDnsRecords: array(dnsRecord),
  createdAt: instant,
});
export type AccountDomain = Infer<typeof accountDomain>;
export const domainAnswer = object({ domain: accountDomain });
export const domainList = object({ domains: array(accountDomain), nextCursor: nullable(string()) });

// senders

/** A sender id as clients choose it. */
export const senderId = withCode(string({ pattern: "^sender_[A-Za-z0-9_.:-]{1,121}$" }), "invalid_sender_id");

const senderBody = {
  domain: domainName,
  localPart: withCode(oneOf(...localParts), "sender_local_part_not_allowed"),
  displayName: withDefault(text(120, { pattern: "^[^\\u0000-\\u001f\\u007f]*$" }), ""),
  replyTo: optional(nullable(email)),
  purposes: array(purpose, { minItems: 1, maxItems: purposes.length, uniqueItems: true }),
  enabled: withDefault(boolean, true),
};
const senderDerived = ignored("fromEmail", "status", "identityKey", "version", "createdAt", "updatedAt");

/** `PUT …/senders/{senderId}`: the first one needs domain, localPart and purposes. */
export const senderChange = merge(object({ handle, senderId, ...senderDerived }), partial(object(senderBody)));

/** A sender as its owner reads it. */
export const sender = object({
  senderId: string(),
  handle,
  domain: string(),
  localPart: oneOf(...localParts),
  fromEmail: string(),
  displayName: string(),
  replyTo: nullable(string()),
  purposes: array(purpose),
  enabled: boolean,
  status: oneOf("PENDING", "READY", "PAUSED"),
  identityKey: string(),
  createdAt: instant,
  updatedAt: instant,
});
export type Sender = Infer<typeof sender>;
/** A sender as it is stored. */
export type StoredSender = Omit<Sender, "handle" | "fromEmail" | "status" | "identityKey">;
export const senderAnswer = object({ sender });
export const senderList = object({ senders: array(sender), nextCursor: nullable(string()) });
export const identityAnswer = object({ identity, senderProfiles: array(sender) });

/** A list of something of a handle. */
export const handleListing = object({ handle, ...listing });

// templates

/** Longest subject in characters and longest body in bytes of UTF-16 code units. */
const longestSubject = 500;
const longestBody = 262_144;

const templateBody = {
  name: line(200),
  subject: line(longestSubject),
  html: optional(nullable(text(longestBody))),
  text: optional(nullable(text(longestBody))),
};
const templateDerived = ignored("activeVersion", "version", "url", "createdAt", "updatedAt");

/** `POST …/templates`. */
export const newTemplate = object({
  handle,
  templateId: withCode(string({ pattern: "^tmpl_[A-Za-z0-9_.:-]{1,123}$" }), "invalid_template_id"),
  ...templateBody,
  ...ignored("status"),
  ...templateDerived,
});

/** `PUT …/templates/{templateId}`: `expectedVersion` is the `activeVersion` that the caller has seen. */
export const templateChange = merge(
  object({ handle, templateId: string(), ...templateDerived, expectedVersion: optional(integer(0)) }),
  partial(object({ ...templateBody, status: oneOf("ACTIVE", "PAUSED") })),
);

export const templatePath = object({ handle, templateId: string() });
export const templateVersionPath = object({ handle, templateId: string(), version: string() });

const variables = map(text(20_000), { maxProperties: 200 });

/** `POST …/templates/{templateId}/preview`. */
export const templatePreview = object({ handle, templateId: string(), variables: withDefault(variables, {}) });

/** A template as its owner reads it. */
export const template = object({
  templateId: string(),
  handle,
  name: string(),
  subject: string(),
  html: nullable(string()),
  text: nullable(string()),
  activeVersion: integer(1),
  status: oneOf("ACTIVE", "PAUSED"),
  createdAt: instant,
  updatedAt: instant,
});
export type Template = Infer<typeof template>;
/** The content of one version of a template. `text` is derived from `html` where the owner gave none. */
export type TemplateContent = Pick<Template, "subject" | "html" | "text">;
export const templateAnswer = object({ template });
export const templateList = object({ templates: array(template), nextCursor: nullable(string()) });
export const previewAnswer = object({ subject: string(), html: nullable(string()), text: string() });

// messages

/** `POST …/messages`. The consent is checked after the body, so its value may be anything here. */
export const newMessage = object({
  handle,
  senderId,
  to: array(email, { minItems: 1, maxItems: mostNamed }),
  purpose,
  templateId: string({ minLength: 1, maxLength: 128 }),
  variables: withDefault(variables, {}),
  idempotencyKey: optional(nullable(string({ minLength: 1, maxLength: 255 }))),
  consentAttestation: documented(optional(anything), { type: "boolean", const: true }),
  ...ignored("messageId", "status", "recipientCount", "fromEmail", "templateVersion", "deliveries", "createdAt"),
});

export const messagePath = object({ handle, messageId: string() });

/** One recipient of a message. */
export const mailDelivery = object({ recipient: string(), status });

/** A message as its owner reads it. */
export const message = object({
  messageId: string(),
  handle,
  status,
  purpose,
  senderId: string(),
  recipientCount: integer(1, MAX_RECIPIENTS),
  fromEmail: string(),
  templateId: nullable(string()),
  templateVersion: nullable(integer(1)),
  deliveries: array(mailDelivery),
  createdAt: instant,
});
export type Message = Infer<typeof message>;

/** An event of a recipient's delivery. `attempt` is 0 before the first. */
export const messageEvent = object({
  eventId: string(),
  messageId: string(),
  type: oneOf(...eventTypes),
  recipient: string(),
  purpose,
  at: instant,
  reason: optional(string()),
  smtpCode: optional(integer()),
  attempt: integer(0),
});
export type MessageEvent = Infer<typeof messageEvent>;
export const messageAnswer = object({ message });
export const messageDetail = object({ message, timeline: array(messageEvent) });
export const messageList = object({ messages: array(message), nextCursor: nullable(string()) });

/** `GET …/events`: at least one of the four filters. */
export const eventListing = object({
  handle,
  messageId: optional(string({ maxLength: 128 })),
  recipient: optional(email),
  purpose: optional(purpose),
  since: optional(instantOrDate),
  ...listing,
});
export const eventList = object({ events: array(messageEvent), nextCursor: nullable(string()) });

// suppressions

/** Sources of suppressions. */
const suppressionSources = ["HARD_BOUNCE", "COMPLAINT", "UNSUBSCRIBE", "OWNER"] as const;
export type SuppressionSource = (typeof suppressionSources)[number];

/** `POST …/suppressions`. */
export const newSuppression = object({
  handle,
  email,
  reason: optional(nullable(line(200))),
  ...ignored("source", "messageId", "createdAt"),
});
export const suppressionPath = object({ handle, email: string() });

/** A suppressed address. `messageId` is the message that caused it, if any. */
export const suppression = object({
  email: string(),
  reason: string(),
  source: oneOf(...suppressionSources),
  messageId: nullable(string()),
  createdAt: instant,
});
export type Suppression = Infer<typeof suppression>;
export const suppressionAnswer = object({ suppression });
export const suppressionList = object({ suppressions: array(suppression), nextCursor: nullable(string()) });

// feedback

/** Types of delivery reports. */
export const reportTypes = ["DELIVERED", "BOUNCED", "COMPLAINED", "UNSUBSCRIBED"] as const;

/** A provider's delivery report, with or without the envelope of Standard Webhooks. */
export const feedback = object({
  type: oneOf(...reportTypes),
  messageId: string({ minLength: 1, maxLength: 128 }),
  recipient: email,
  reason: optional(nullable(text(500))),
  smtpCode: optional(nullable(integer(200, 599))),
  /** The enhanced status code (RFC 3463), for example 5.1.1. */
  enhancedStatus: optional(nullable(string({ pattern: "^[245]\\.\\d{1,3}\\.\\d{1,3}$" }))),
});
export type Feedback = Infer<typeof feedback>;

/** A signed request: the signature covers its raw bytes. */
export const signedRequest = object({ body: optional(anything), headers: anything });
/** How many reports changed something. */
export const feedbackAnswer = object({ applied: integer(0) });

/** A visitor's unsubscribe link. */
export const unsubscribeLink: Schema<{ token: string }> = object({ token: string() });
/** The form of that link: mail programs post `List-Unsubscribe=One-Click` (RFC 8058), the page's second button posts `undo`. */
export const unsubscribeForm = object({ token: string(), undo: optional(text(10)) });
