// Over 300 lines: the acceptance of a mail from its first check to its script, in the order of the checks.
import {
  MAX_RECIPIENTS,
  type Message,
  type MessageStatus,
  type newMessage,
  type Purpose,
} from "../../schemas/email.ts";
import type { Input } from "../../schemas/schema.ts";
import type { MimeFile } from "../engines/mail/mail.ts";
import { addressDigest, distinctAddresses, isAddress, mailboxDigest } from "../platform/address.ts";
import { day, delayUntil } from "../platform/clock.ts";
import { Fail, insteadOf, invalid } from "../platform/errors.ts";
import { withOutcome } from "../platform/outcome.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";
import { bodyDigest, keyDigest } from "../store/idempotency.ts";
import { keys } from "../store/keys.ts";
import { isRedisAway } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";
import type { StoredContent } from "./delivery.ts";
import { mailKeys } from "./events.ts";
import { mustFitSubject } from "./grammar.ts";
import { ranks, scheduleHandle } from "./mail-queues.ts";
import { findMessage, type StoredMessage, viewOf } from "./messages.ts";
import { refusal, type SendingRights, sendingRights } from "./senders.ts";
import { mustHaveAll, renderTemplate, type TemplateState, templateRecords, templateVersion } from "./templates.ts";

/** A mail to send: a template with variables, or a content made by the service itself. */
export interface MailRequest {
  handle: string;
  senderId: string;
  /** As given: duplicates, in any case, are one recipient. */
  to: readonly string[];
  purpose: Purpose;
  templateId?: string | undefined;
  variables?: Readonly<Record<string, string>>;
  content?: Omit<StoredContent, "variables" | "attachments"> & Record<"subject" | "text", string>;
  /** A `text/calendar` one is also an alternative part, so that clients show the invitation. */
  attachments?: MimeFile[];
  /**
   * True for a client's own mail, whose refusal throws. The refusal of any other is recorded: a message whose deliveries are DENIED with the
   * code as reason.
   */
  isDirect?: boolean;
  /** A once-only key, remembered for 400 days: a second call with the same key changes nothing and returns the first message. */
  key?: string | undefined;
  /** Limits per recipient and UTC day that apply; mails beyond them are DENIED as `visitor_mail_limit`. */
  caps?: readonly MailCap[];
  /** Ids of the leads that it is about: `lead_not_found` from the moment at which the erasure of one begins. */
  leads?: readonly string[];
  /** True for a mail to owners about the leads: their records name it, so that their erasure can withdraw it. */
  isNotice?: boolean | undefined;
  /** Why the requester no longer wants it sent; recorded as a message whose deliveries are DENIED with this reason. */
  denied?: string | undefined;
  /** A client's idempotency key with the digest of its body (docs/reference.md, "Idempotency"), kept for 24 hours. */
  idempotency?: { key: string; digest: string } | undefined;
}

/** `visitor`: mails that visitors cause, except those to the handle's owners; `rule`: those of rules among them. */
type MailCap = "visitor" | "rule";

/** Most mails of a kind per mailbox of a handle and UTC day of domain time. */
const MAX_MAILS_A_DAY: Record<MailCap, number> = { visitor: 20, rule: 5 };

/** Real ms after which a handle that is about to get mail is claimed, even if the process dies before it wakes the dispatcher. */
const WAKE_UP_MS = 2000;
/** Seconds for `Retry-After` while mail can't be accepted. */
const RETRY_AFTER_SECONDS = 30;
/** Real seconds for which links and reports find a message by its id. Its record may last longer, since events prolong it. */
const OWNER_TTL_SECONDS = 7_776_000;

/**
 * Accepts a mail. Checks in this order: sender, domain, purpose, template, variables, suppression, quota, queue (docs/reference.md,
 * "Messages"). Then one step writes the message, its deliveries with their events, and their queue entries, so that an
 * accepted mail survives any crash. Throws `transactional_email_queue_unavailable` without a mail server or if Redis can't store it.
 */
export async function acceptMessage(runtime: Runtime, request: MailRequest): Promise<{ message: Message }> {
  const { handle, senderId, to, templateId = "" } = request;
  mustBeRecipients(to);
  const [rights, template] = await Promise.all([
    sendingRights(runtime, { handle, senderId }),
    request.content ? undefined : templateRecords.find(runtime, handle, templateId),
  ]);
  const { content, fault } = await contentOrFault(runtime, request, { rights, template });
  // A repeated request gets its first answer, even if it would be refused now.
  if (fault && request.isDirect && request.idempotency === undefined) throw fault;
  const denied = request.denied ?? fault?.code;
  const message = messageOf(runtime, request, { rights, template: denied === undefined ? template : undefined });
  return write(runtime, request, { message, content, denied, fault });
}

/** Sends a mail about leads, or returns "erased" if one of them has been erased since it was read. */
export async function unlessErased<T>(send: () => Promise<T>): Promise<T | "erased"> {
  return send().catch(insteadOf("lead_not_found", "erased" as const));
}

/** A client's direct send: checks the consent first, then calls `acceptMessage`. A key in the body wins over the header's. */
export async function sendMessage(
  runtime: Runtime,
  input: Input<"handle", typeof newMessage>,
  caller: Pick<Caller, "idempotencyKey"> = {},
): Promise<{ message: Message }> {
  const { idempotencyKey, ...body } = input;
  const { consentAttestation, ...mail } = body;
  mustBeRecipients(mail.to);
  if (consentAttestation !== true)
    throw new Fail("consent_attestation_required", {
      errors: [{ path: "/consentAttestation", message: "must be true" }],
    });
  const key = idempotencyKey ?? caller.idempotencyKey;
  const idempotency = key === undefined ? undefined : { key, digest: bodyDigest(body) };
  return acceptMessage(runtime, { ...mail, isDirect: true, idempotency });
}

function mustBeRecipients(to: readonly string[]): void {
  const wrong = to.findIndex((address) => !isAddress(address));
  if (wrong !== -1) throw invalid(`/to/${wrong}`, "must be an email address");
  const { length } = distinctAddresses(to);
  if (length === 0 || length > MAX_RECIPIENTS) throw invalid("/to", `must contain 1 to ${MAX_RECIPIENTS} addresses`);
}

interface SendingState {
  rights: SendingRights;
  template: TemplateState | undefined;
}

/** The source of the content, or why the mail may not be sent. */
async function contentOrFault(
  runtime: Runtime,
  request: MailRequest,
  { rights, template }: SendingState,
): Promise<{ content: StoredContent; fault?: Fail }> {
  const { content, attachments = [], denied } = request;
  if (denied !== undefined) return { content: {} };
  const code = refusal(rights, request.purpose);
  if (code !== undefined) return { content: {}, fault: new Fail(code) };
  if (content) return { content: { ...content, attachments } };
  try {
    return { content: await fromTemplate(runtime, request, template) };
  } catch (error) {
    if (!(error instanceof Fail) || !error.permanent) throw error;
    return { content: {}, fault: error };
  }
}

/** The variables, after a check that the template can be rendered with them. */
async function fromTemplate(
  runtime: Runtime,
  { handle, purpose, isDirect, variables = {} }: MailRequest,
  template: TemplateState | undefined,
): Promise<StoredContent> {
  if (template === undefined) throw new Fail("email_template_not_found");
  const { templateId, status, activeVersion: version } = template;
  if (status !== "ACTIVE") throw new Fail("email_template_not_active");
  const parsed = await templateVersion(runtime, { handle, templateId, version, purpose });
  mustHaveAll(parsed, variables);
  // Visitors wrote the values of a rule: they become one line instead.
  if (isDirect) mustFitSubject(parsed.subject, variables);
  // A value that its context forbids is refused now, not at the delivery.
  renderTemplate(parsed, variables);
  return { variables: Object.fromEntries(parsed.names.map((name) => [name, variables[name] as string])) };
}

function messageOf(runtime: Runtime, request: MailRequest, { rights, template }: SendingState): StoredMessage {
  const { handle, purpose, senderId, to } = request;
  const { localPart = "", domain = "", displayName: name = "", replyTo = null } = rights.sender ?? {};
  const address = rights.sender ? `${localPart}@${domain}` : "";
  return {
    messageId: runtime.id("msg_"),
    handle,
    purpose,
    senderId,
    fromEmail: name ? `${name} <${address}>` : address,
    from: { name, address, replyTo },
    templateId: template?.templateId ?? request.templateId ?? null,
    templateVersion: template?.activeVersion ?? null,
    createdAt: new Date(runtime.now()).toISOString(),
    recipients: distinctAddresses(to),
  };
}

/** A message ready to be written: the source of its content, or why it is denied. */
interface ReadyMessage {
  message: StoredMessage;
  content: StoredContent;
  denied: string | undefined;
  fault: Fail | undefined;
}

/** Writes the message and wakes the dispatcher. */
async function write(runtime: Runtime, request: MailRequest, ready: ReadyMessage): Promise<{ message: Message }> {
  const { redis } = runtime;
  const { handle, messageId, purpose } = ready.message;
  const rank = ranks[purpose];
  const reply = await accept(runtime, request, ready).catch((error: unknown) => {
    throw isRedisAway(error) ? closed(error) : error;
  });
  if (reply[0] !== "accepted") {
    await redis.del(keys.messageOwner(messageId));
    return otherwise(runtime, request, { reply, fault: ready.fault });
  }
  if (!ready.denied)
    scheduleHandle(redis, handle, rank).catch((error: Error) =>
      runtime.log.warn({ error: error.message }, "email.dispatch.wake_failed"),
    );
  const [, status, ...statuses] = reply as ["accepted", MessageStatus, ...MessageStatus[]];
  return { message: viewOf(ready.message, status, statuses) };
}

/**
 * Writes the message. Its owner and a delayed wake-up are written first, on the same connection: a crash before the other one delays the
 * mail and loses nothing. On a cluster they are on other nodes, which may be away alone.
 */
async function accept(runtime: Runtime, request: MailRequest, ready: ReadyMessage): Promise<string[]> {
  const { redis, redisKind } = runtime;
  const { handle, messageId, purpose } = ready.message;
  const prepared = Promise.all([
    ready.denied ? undefined : scheduleHandle(redis, handle, ranks[purpose], Date.now() + WAKE_UP_MS),
    redis.set(keys.messageOwner(messageId), handle, "EX", OWNER_TTL_SECONDS),
  ]);
  if (redisKind === "cluster") await prepared;
  const input = inputOf(runtime, request, ready);
  const [reply] = await Promise.all([scripts.acceptMessage(redis, keysOf(runtime, request), input), prepared]);
  return reply;
}

function keysOf({ now }: Runtime, { handle, key, idempotency }: MailRequest) {
  const day = new Date(now()).toISOString().slice(0, 10);
  return {
    ...mailKeys(handle),
    list: keys.messages(handle),
    suppressed: keys.suppressed(handle),
    quota: keys.emailQuota(handle, day),
    once: keys.emailOnce(handle, key === undefined ? "" : keyDigest(key)),
    idempotent: keys.idempotent(handle, "messages", idempotency === undefined ? "" : keyDigest(idempotency.key)),
    caps: keys.mailCaps(handle, day),
    leads: keys.lead(handle, ""),
  };
}

function inputOf(
  { env }: Runtime,
  { isDirect = false, key, idempotency, caps = [], leads = [], isNotice = false }: MailRequest,
  { message, content, denied }: ReadyMessage,
) {
  const { messageId, purpose, recipients, createdAt } = message;
  const queued = recipients.map(() => "QUEUED" as const);
  const answer = { message: viewOf(message, "QUEUED", queued) };
  return {
    ...{ messageId, json: JSON.stringify(message), content: JSON.stringify(content), purpose, rank: ranks[purpose] },
    ...{ instant: createdAt, at: Date.parse(createdAt), due: Date.now() },
    recipients: recipients.map((recipient) => ({
      about: JSON.stringify({ messageId, recipient, purpose }).slice(1, -1),
      digest: addressDigest(recipient),
      mailbox: mailboxDigest(recipient),
    })),
    quota: env.EMAIL_QUOTA_PER_DAY,
    answer: idempotency && JSON.stringify({ body: idempotency.digest, answer }),
    keyDigest: idempotency && keyDigest(idempotency.key),
    onceDigest: key && keyDigest(key),
    denied,
    refusesAll: isDirect,
    isClosed: !env.SMTP_URL,
    caps: caps.map((cap) => ({ name: cap, max: MAX_MAILS_A_DAY[cap] })),
    leads,
    isNotice,
  };
}

/** The answer to a request that was not accepted: the message of an earlier one, or a failure. */
async function otherwise(
  runtime: Runtime,
  request: MailRequest,
  { reply: [kind, ...rest], fault }: { reply: string[]; fault: Fail | undefined },
): Promise<{ message: Message }> {
  if (kind === "repeated") return replay(request, rest[0] as string);
  if (kind === "once") return messageOfKey(runtime.redis, request.handle, rest[0] as string);
  if (kind === "erased") throw new Fail("lead_not_found");
  if (kind === "denied") throw fault;
  if (kind === "closed") throw closed();
  throw kind === "suppressed" ? suppressed(request, rest.map(Number)) : overQuota(runtime);
}

function replay({ idempotency }: MailRequest, stored: string): { message: Message } {
  const { body, answer } = JSON.parse(stored) as { body: string; answer: { message: Message } };
  if (body !== idempotency?.digest) throw new Fail("idempotency_conflict");
  return withOutcome(answer, "replayed");
}

/** The message of a once-only key; `message_not_found` after 90 days or an erasure, when the message is gone but the key is not. */
async function messageOfKey(redis: Runtime["redis"], handle: string, messageId: string): Promise<{ message: Message }> {
  const message = await findMessage(redis, handle, messageId);
  if (message === undefined) throw new Fail("message_not_found");
  return withOutcome({ message }, "replayed");
}

function closed(cause?: unknown): Fail {
  return new Fail("transactional_email_queue_unavailable", { retryAfter: RETRY_AFTER_SECONDS }, cause);
}

function suppressed({ to }: MailRequest, refused: number[]): Fail {
  const recipients = distinctAddresses(to);
  const faults = refused.map((n) => ({
    path: `/to/${to.indexOf(recipients[n] as string)}`,
    message: `${recipients[n]} is suppressed`,
  }));
  return new Fail("email_recipient_suppressed", { errors: faults });
}

/** The quota counts per UTC day of domain time; Retry-After is in real seconds. */
function overQuota(runtime: Runtime): Fail {
  const midnight = (Math.floor(runtime.now() / day) + 1) * day;
  return new Fail("email_quota_exceeded", { retryAfter: Math.ceil(delayUntil(runtime, midnight) / 1000) });
}
