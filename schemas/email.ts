import * as s from "./schema.ts";

/** The purposes of messages; a sender lists those that it may be used for. */
export const purposes = ["PRODUCT_NOTIFICATION", "LEAD_VERIFICATION", "TRANSACTIONAL_API", "CALENDAR"] as const;
export type Purpose = (typeof purposes)[number];

/** Local parts that a sender's address may have (docs/reference.md, "Senders"). */
export const localParts = ["noreply", "notifications", "calendar", "support", "hello"] as const;

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
const eventTypes = [...statuses, "UNSUBSCRIBED", "RESUBSCRIBED"] as const;

export const MAX_RECIPIENTS = 50;
/** Most addresses in a request, including duplicates. */
const MAX_ADDRESSES = 1000;

const purpose = s.oneOf(...purposes);
const status = s.oneOf(...statuses);

// domains and their identities

/** A domain name of at least two labels, in ASCII; case is folded by the functions. */
const domainName = s.formed(
  "^(?=.*[A-Za-z])(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\\.)+[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$",
  "must be a domain name, such as example.com",
  { maxLength: 253 },
);

export const newDomain = s.object({
  domain: domainName,
  handle: s.optional(s.nullable(s.handle)),
  accountId: s.optional(s.id),
  ...s.ignored("owned", "status", "requiredDnsRecords", "createdAt"),
});

/** A DNS record that the domain's owner publishes. Names are absolute; an MX value is preference and host. */
const dnsRecord = s.component("DnsRecord", {
  type: s.oneOf("TXT", "MX"),
  name: s.string(),
  value: s.string(),
  purpose: s.oneOf("OWNERSHIP", "DKIM", "SPF", "MAIL_FROM_MX", "DMARC"),
  required: s.boolean,
  status: s.oneOf("FOUND", "MISSING", "MISMATCH", "UNKNOWN"),
});
export type DnsRecord = s.Infer<typeof dnsRecord>;
export type RecordPurpose = DnsRecord["purpose"];
export type RecordStatus = DnsRecord["status"];

const identityStatus = s.oneOf("PENDING", "READY", "FAILED");
export type IdentityStatus = s.Infer<typeof identityStatus>;

const identity = s.component("EmailIdentity", {
  identityKey: s.string(),
  region: s.string(),
  domain: s.string(),
  status: identityStatus,
  mailFromDomain: s.string(),
  requiredDnsRecords: s.array(dnsRecord),
  lastCheckedAt: s.nullable(s.instant),
});
export type Identity = s.Infer<typeof identity>;

/** A domain of an account. `owned` once its OWNERSHIP record was found; only then it shows pages and excludes other accounts. */
export const accountDomain = s.component("Domain", {
  domain: s.string(),
  accountId: s.string(),
  handle: s.nullable(s.string()),
  owned: s.boolean,
  status: identityStatus,
  requiredDnsRecords: s.array(dnsRecord),
  createdAt: s.instant,
});
export type AccountDomain = s.Infer<typeof accountDomain>;

// senders

/** A sender id as clients choose it. */
const senderId = s.withCode(
  s.formed("^sender_[A-Za-z0-9_.:-]{1,121}$", "must be sender_ with 1 to 121 letters, digits, _, ., : and -"),
  "invalid_sender_id",
);

const senderBody = {
  domain: domainName,
  localPart: s.withCode(s.oneOf(...localParts), "sender_local_part_not_allowed"),
  displayName: s.withDefault(s.string({ maxLength: 120, format: "line" }), ""),
  replyTo: s.optional(s.nullable(s.email)),
  purposes: s.array(purpose, { minItems: 1, maxItems: purposes.length, uniqueItems: true }),
  enabled: s.withDefault(s.boolean, true),
};
const senderDerived = s.ignored("fromEmail", "status", "identityKey", "version", "createdAt", "updatedAt");

/** `PUT …/senders/{senderId}`: the first one needs domain, localPart and purposes. */
export const senderChange = s.object({ senderId, ...senderDerived, ...s.partial(senderBody) });

export const sender = s.component("Sender", {
  senderId: s.string(),
  handle: s.handle,
  domain: s.string(),
  localPart: s.oneOf(...localParts),
  fromEmail: s.string(),
  displayName: s.string(),
  replyTo: s.nullable(s.string()),
  purposes: s.array(purpose),
  enabled: s.boolean,
  status: s.oneOf("PENDING", "READY", "PAUSED"),
  identityKey: s.string(),
  createdAt: s.instant,
  updatedAt: s.instant,
});
export type Sender = s.Infer<typeof sender>;
export type StoredSender = Omit<Sender, "handle" | "fromEmail" | "status" | "identityKey">;
export const identityAnswer = s.object({ identity, senderProfiles: s.array(sender) });

// templates

/** Longest subject and longest body in characters. */
const MAX_SUBJECT_LENGTH = 500;
const MAX_BODY_LENGTH = 262_144;

const templateBody = {
  name: s.line(200),
  subject: s.line(MAX_SUBJECT_LENGTH),
  html: s.optional(s.nullable(s.text(MAX_BODY_LENGTH))),
  text: s.optional(s.nullable(s.text(MAX_BODY_LENGTH))),
};
const templateDerived = s.ignored("activeVersion", "version", "url", "createdAt", "updatedAt");

export const newTemplate = s.object({
  templateId: s.withCode(
    s.formed("^tmpl_[A-Za-z0-9_.:-]{1,123}$", "must be tmpl_ with 1 to 123 letters, digits, _, ., : and -"),
    "invalid_template_id",
  ),
  ...templateBody,
  ...s.ignored("status"),
  ...templateDerived,
});

/** `PUT …/templates/{templateId}`: `expectedVersion` is the `activeVersion` that the caller has seen. */
export const templateChange = s.object({
  ...templateDerived,
  ...s.expected,
  ...s.partial({ ...templateBody, status: s.oneOf("ACTIVE", "PAUSED") }),
});

const variables = s.map(s.text(20_000), { maxProperties: 200 });

export const templatePreview = s.object({ variables: s.withDefault(variables, {}) });

export const template = s.component("Template", {
  templateId: s.string(),
  handle: s.handle,
  name: s.string(),
  subject: s.string(),
  html: s.nullable(s.string()),
  text: s.nullable(s.string()),
  activeVersion: s.integer(1),
  status: s.oneOf("ACTIVE", "PAUSED"),
  createdAt: s.instant,
  updatedAt: s.instant,
});
export type Template = s.Infer<typeof template>;
/** The content of one version of a template. `text` is derived from `html` where the owner gave none. */
export type TemplateContent = Pick<Template, "subject" | "html" | "text">;
export const previewAnswer = s.component("RenderedMail", {
  subject: s.string(),
  html: s.nullable(s.string()),
  text: s.string(),
});

// messages

/** `POST …/messages`. The consent is checked after the body, so its value may be anything here. */
export const newMessage = s.object({
  senderId,
  to: s.array(s.email, { minItems: 1, maxItems: MAX_ADDRESSES }),
  purpose,
  templateId: s.string({ minLength: 1, maxLength: 128 }),
  variables: s.withDefault(variables, {}),
  idempotencyKey: s.optional(s.nullable(s.string({ minLength: 1, maxLength: 255 }))),
  consentAttestation: s.unchecked({ type: "boolean", const: true }),
  ...s.ignored("messageId", "status", "recipientCount", "fromEmail", "templateVersion", "deliveries", "createdAt"),
});

const mailDelivery = s.component("MessageDelivery", { recipient: s.string(), status });

export const message = s.component("Message", {
  messageId: s.string(),
  handle: s.handle,
  status,
  purpose,
  senderId: s.string(),
  recipientCount: s.integer(1, MAX_RECIPIENTS),
  fromEmail: s.string(),
  templateId: s.nullable(s.string()),
  templateVersion: s.nullable(s.integer(1)),
  deliveries: s.array(mailDelivery),
  createdAt: s.instant,
});
export type Message = s.Infer<typeof message>;

/** An event of a recipient's delivery. `attempt` is 0 before the first. */
export const messageEvent = s.component("MessageEvent", {
  eventId: s.string(),
  messageId: s.string(),
  type: s.oneOf(...eventTypes),
  recipient: s.string(),
  purpose,
  at: s.instant,
  reason: s.optional(s.string()),
  smtpCode: s.optional(s.integer()),
  attempt: s.integer(0),
});
export type MessageEvent = s.Infer<typeof messageEvent>;
export const messageDetail = s.object({ message, timeline: s.array(messageEvent) });

/** `GET …/events`: at least one of the four filters. */
export const eventListing = s.object({
  messageId: s.optional(s.string({ maxLength: 128 })),
  recipient: s.optional(s.email),
  purpose: s.optional(purpose),
  since: s.optional(s.instantOrDate),
  ...s.listing,
});

// suppressions

export const newSuppression = s.object({
  email: s.email,
  reason: s.optional(s.nullable(s.line(200))),
  ...s.ignored("source", "messageId", "createdAt"),
});

/** A suppressed address. `messageId` is the message that caused it, if any. */
export const suppression = s.component("Suppression", {
  email: s.string(),
  reason: s.string(),
  source: s.oneOf("HARD_BOUNCE", "COMPLAINT", "UNSUBSCRIBE", "OWNER"),
  messageId: s.nullable(s.string()),
  createdAt: s.instant,
});
export type Suppression = s.Infer<typeof suppression>;
export type SuppressionSource = Suppression["source"];

// delivery reports

export const reportTypes = ["DELIVERED", "BOUNCED", "COMPLAINED", "UNSUBSCRIBED"] as const;

/** A provider's delivery report, with or without the envelope of Standard Webhooks. */
export const deliveryReport = s.component("DeliveryReport", {
  type: s.oneOf(...reportTypes),
  messageId: s.string({ minLength: 1, maxLength: 128 }),
  recipient: s.email,
  reason: s.optional(s.nullable(s.text(500))),
  smtpCode: s.optional(s.nullable(s.integer(200, 599))),
  /** The enhanced status code (RFC 3463), for example 5.1.1. */
  enhancedStatus: s.optional(
    s.nullable(s.formed("^[245]\\.\\d{1,3}\\.\\d{1,3}$", "must be a status code of RFC 3463, such as 5.1.1")),
  ),
});
export type DeliveryReport = s.Infer<typeof deliveryReport>;

/** A signed request: the signature covers its raw bytes. */
export const signedRequest = s.object({ body: s.optional(s.anything), headers: s.anything });
/** How many reports changed something. */
export const reportAnswer = s.object({ applied: s.integer(0) });

/** The form of a visitor's unsubscribe link: mail programs post `List-Unsubscribe=One-Click` (RFC 8058), the page's second button posts `undo`. */
export const unsubscribeForm = s.object({ undo: s.optional(s.text(10)) });
