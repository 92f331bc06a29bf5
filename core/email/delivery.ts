import type { Buffer } from "node:buffer";
import type { MessageStatus } from "../../schemas/email.ts";
import { findHandle } from "../account/face.ts";
import {
  classifySmtpFailure,
  composeMime,
  type Mail,
  type MimeFile,
  SmtpFailure,
  type SmtpFailureClass,
  type SmtpPool,
  signMime,
} from "../engines/mail/mail.ts";
import { asciiAddress } from "../platform/address.ts";
import { delayUntil, hour } from "../platform/clock.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { isRedisAway } from "../store/redis.ts";
import { retryWhileAway } from "../store/retry.ts";
import { type DeliveryName, type Move, moveDelivery, returnEffects, unsentStatuses } from "./events.ts";
import { dkimKey } from "./identity.ts";
import { ranks, scheduleHandle } from "./mail-queues.ts";
import type { StoredMessage } from "./messages.ts";
import { type DeliveryId, messageIdOf, returnAddress, unsubscribeUrl } from "./return-path.ts";
import { refusal, type SendingRights, sendingRights } from "./senders.ts";
import { findSuppression } from "./suppressions.ts";
import { type Rendered, renderTemplate, templateVersion, unsubscribeVariable } from "./templates.ts";

/** A delivery leased by a worker; only the holder of the token may settle it, except as sent. */
export interface LeasedDelivery extends DeliveryName {
  message: StoredMessage;
  content: StoredContent;
  /** The address as the request spelled it. */
  recipient: string;
  /** The domain of the sender as the message was accepted. */
  domain: string;
  /** 1 for the first. */
  attempt: number;
  /** Recipients that counted towards the handle's daily quota before this message. */
  quotaBefore: number;
  token: string;
}

/** The source of a message: variables for its template version, or a content made by the service itself. */
export interface StoredContent extends Partial<Rendered> {
  variables?: Record<string, string>;
  /** Where replies go instead of the sender's own reply address. */
  replyTo?: string;
  attachments?: MimeFile[];
  /** Real ms after which it is not sent any more. */
  expiresAt?: number;
}

/** How an attempt ended. `serverFailed` if the mail server may be unusable for everybody. */
export type Settlement = Omit<Move, "from" | "type"> & { to: MessageStatus; serverFailed?: boolean };

/**
 * One attempt at a delivery: checks again whether it may be sent, composes and signs the mail, hands it to the server, and records the
 * outcome with its event in one step. Redis errors propagate: the lease expires, and another attempt follows.
 */
export async function attemptDelivery(runtime: Runtime, pool: SmtpPool, delivery: LeasedDelivery): Promise<Settlement> {
  const settlement = await trySending(runtime, pool, delivery);
  await recordOutcome(runtime, delivery, settlement);
  return settlement;
}

async function trySending(runtime: Runtime, pool: SmtpPool, delivery: LeasedDelivery): Promise<Settlement> {
  const { handle, message, domain, attempt } = delivery;
  const rights = await sendingRights(runtime, { handle, senderId: message.senderId, domain });
  const denied = await denial(runtime, delivery, rights);
  if (denied !== undefined) return { to: "DENIED", reason: denied };
  const mail = await makeMail(runtime, delivery, rights.account);
  if ("to" in mail) return mail;
  try {
    await pool.send(mail.envelope, mail.bytes);
    return { to: "SENT" };
  } catch (error) {
    if (!(error instanceof SmtpFailure)) throw error;
    const progress = { attempt, purpose: message.purpose, age: runtime.now() - Date.parse(message.createdAt) };
    return afterFailure(runtime, delivery, classifySmtpFailure(error, progress));
  }
}

/** Attempts at a delivery whose stored message is damaged, one an hour: it may be restored from a backup meanwhile. */
const MAX_DAMAGED_ATTEMPTS = 24;

/** Defers a delivery whose stored message is damaged, and fails it at last: it would hold up those that were leased with it. */
export async function deferDamaged(
  runtime: Runtime,
  delivery: DeliveryName & Pick<LeasedDelivery, "attempt" | "token">,
  { message: error }: Error,
): Promise<void> {
  const { handle, messageId, attempt, token } = delivery;
  runtime.log.error({ handle, messageId, step: "read", error }, "email.message.unsendable");
  const isOver = attempt >= MAX_DAMAGED_ATTEMPTS;
  const next = isOver ? ({ to: "FAILED" } as const) : ({ to: "DEFERRED", due: Date.now() + hour } as const);
  const reason = "mail_not_made";
  await moveDelivery(runtime, delivery, { ...next, from: ["SENDING"], token, type: next.to, reason });
}

/** Why a delivery may no longer be sent. Sender, domain, suppression and quota are checked as they are now. */
async function denial(
  runtime: Runtime,
  { handle, message, content, n, recipient, quotaBefore }: LeasedDelivery,
  rights: SendingRights,
): Promise<string | undefined> {
  if (content.expiresAt !== undefined && content.expiresAt <= Date.now()) return "expired";
  if (!rights.active) return "handle_inactive";
  const code = refusal(rights, message.purpose);
  if (code !== undefined) return code;
  if (await findSuppression(runtime, handle, recipient)) return "email_recipient_suppressed";
  return quotaBefore + n + 1 > runtime.env.EMAIL_QUOTA_PER_DAY ? "email_quota_exceeded" : undefined;
}

type ComposedMail = { envelope: { from: string; to: string }; bytes: Buffer };

/** The signed mail as bytes. One that can't be composed is denied; one that can't be signed fails, since a retry would end the same. */
async function makeMail(
  runtime: Runtime,
  delivery: LeasedDelivery,
  account: string,
): Promise<ComposedMail | Settlement> {
  const { handle, messageId, n, domain } = delivery;
  let step: "render" | "sign" = "render";
  try {
    const mail = mailOf(runtime, delivery, await renderMail(runtime, delivery));
    const mime = composeMime(mail);
    step = "sign";
    const bytes = await signMime(mime, await dkimKey(runtime, { domain, account }));
    return { envelope: { from: returnAddress(runtime.env, { kind: "b", messageId, n }, domain), to: mail.to }, bytes };
  } catch (error) {
    if (isRedisAway(error)) throw error;
    if (error instanceof Fail) return { to: "DENIED", reason: error.code };
    runtime.log.error({ handle, messageId, step, error: (error as Error).message }, "email.message.unsendable");
    return { to: "FAILED", reason: step === "sign" ? "dkim_signing_failed" : "mail_not_made" };
  }
}

async function renderMail(
  runtime: Runtime,
  { handle, message, content, messageId, n }: LeasedDelivery,
): Promise<Rendered> {
  const { subject, html = null, text = "" } = content;
  if (subject !== undefined) return { subject, html, text };
  const { purpose } = message;
  const [templateId, version] = [message.templateId as string, message.templateVersion as number];
  const parsed = await templateVersion(runtime, { handle, templateId, version, purpose });
  const own = { [unsubscribeVariable]: unsubscribeUrl(runtime.env, { messageId, n }) };
  return renderTemplate(parsed, { ...own, ...content.variables });
}

function mailOf(runtime: Runtime, delivery: LeasedDelivery, rendered: Rendered): Mail {
  const { message, content, messageId, n, recipient, domain } = delivery;
  const { name, address } = message.from;
  const replyTo = content.replyTo ?? message.from.replyTo;
  const at = { messageId, n };
  return {
    ...rendered,
    from: { name, address },
    to: asciiAddress(recipient) ?? recipient,
    replyTo: replyTo ? (asciiAddress(replyTo) ?? replyTo) : undefined,
    messageId: messageIdOf(runtime.env, at, domain),
    date: new Date(message.createdAt),
    files: content.attachments ?? [],
    headers: {
      "Auto-Submitted": "auto-generated",
      ...(message.purpose === "PRODUCT_NOTIFICATION" ? unsubscribeHeaders(runtime, at, domain) : {}),
    },
  };
}

/** The header fields of one-click unsubscription (RFC 8058), with a mailto address for older clients (RFC 2369). */
function unsubscribeHeaders({ env }: Runtime, at: DeliveryId, domain: string): Mail["headers"] {
  const page = unsubscribeUrl(env, at);
  const address = returnAddress(env, { kind: "u", ...at }, domain);
  return {
    "List-Unsubscribe": `<${page}>, <mailto:${address}?subject=unsubscribe>`,
    "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
  };
}

function afterFailure(runtime: Runtime, delivery: LeasedDelivery, failure: SmtpFailureClass): Settlement {
  const { kind, reason, code: smtpCode } = failure;
  if (kind === "failed") {
    const { handle, messageId, recipient, message } = delivery;
    const mail = { handle, messageId, recipient, purpose: message.purpose, reason, smtpCode };
    // A permanent failure of the address is a bounce.
    const bounced = failure.hard ? returnEffects(runtime, "email.bounced", { ...mail, source: "HARD_BOUNCE" }) : {};
    return { to: "FAILED", reason, smtpCode, ...bounced };
  }
  const givesBack = failure.wait === undefined;
  const due = Date.now() + delayUntil(runtime, runtime.now() + (failure.wait ?? 0));
  return { to: "DEFERRED", reason, smtpCode, due, givesBack, serverFailed: kind === "provider" };
}

/**
 * Records an outcome. An accepted mail is recorded even if another worker has the lease now or the delivery was cancelled, since it is a
 * fact. Every other outcome needs the lease.
 */
async function recordOutcome(
  runtime: Runtime,
  delivery: LeasedDelivery,
  { to, due, serverFailed: _, ...more }: Settlement,
): Promise<void> {
  const allowed: Pick<Move, "from" | "token"> =
    to === "SENT" ? { from: [...unsentStatuses, "CANCELLED"] } : { from: ["SENDING"], token: delivery.token };
  const move: Move = { ...more, ...allowed, to, type: to, due };
  await retryWhileAway(() => moveDelivery(runtime, delivery, move));
  // An erased handle has left the fair queues.
  if (due === undefined || (await findHandle(runtime.redis, delivery.handle)) === undefined) return;
  await scheduleHandle(runtime.redis, delivery.handle, ranks[delivery.message.purpose], due);
}
