import type { Buffer } from "node:buffer";
import { setTimeout } from "node:timers/promises";
import type { MessageStatus } from "../../schemas/email.ts";
import {
  classifySmtpFailure,
  composeMime,
  type Mail,
  type MimeFile,
  SmtpFailure,
  type SmtpFailureClass,
  signMime,
} from "../engines/mail/mail.ts";
import { asciiAddress } from "../platform/address.ts";
import { delayUntil } from "../platform/clock.ts";
import { Fail } from "../platform/errors.ts";
import type { Envelope, Mailer, Runtime } from "../platform/runtime.ts";
import { isRedisAway } from "../store/redis.ts";
import { type DeliveryName, type Move, moveDelivery, returned } from "./events.ts";
import { dkimKey } from "./identity.ts";
import type { StoredMessage } from "./messages.ts";
import { messageIdOf, returnAddress, unsubscribeUrl } from "./return-path.ts";
import { refusal, type SendingRights, sendingRights } from "./senders.ts";
import { isSuppressed } from "./suppressions.ts";
import { type Rendered, renderTemplate, templateVersion, textOf, unsubscribeVariable } from "./templates.ts";
import { ranks, scheduleHandle } from "./turns.ts";

/** A delivery leased by a worker; only the holder of the token may settle it. */
export interface LeasedDelivery extends DeliveryName {
  message: StoredMessage;
  content: StoredContent;
  /** 1 for the first. */
  attempt: number;
  /** Recipients that counted towards the handle's daily quota before this message. */
  quotaBefore: number;
  token: string;
}

/** The source of a message: variables for its template version, or a content made by the service itself. */
export interface StoredContent {
  variables?: Record<string, string>;
  subject?: string;
  html?: string | null;
  text?: string | null;
  /** Where replies go instead of the sender's own reply address. */
  replyTo?: string | null;
  attachments?: MimeFile[];
}

/** How an attempt ended: settled, or given back because the server is unusable for everybody now. */
type AttemptOutcome = "settled" | "provider";

/**
 * One attempt at a delivery: checks again whether it may be sent, composes and signs the mail, hands it to the server, and records the
 * outcome with its event in one step. Redis errors propagate: the lease expires, and another attempt follows.
 */
export async function attemptDelivery(runtime: Runtime, pool: Mailer, taken: LeasedDelivery): Promise<AttemptOutcome> {
  const { handle, message } = taken;
  const rights = await sendingRights(runtime, { handle, senderId: message.senderId, domain: domainOf(message) });
  const denied = await denial(runtime, taken, rights);
  if (denied !== undefined) return recordOutcome(runtime, taken, { to: "DENIED", reason: denied });
  const made = await makeMail(runtime, taken, rights.account);
  if ("refused" in made) return recordOutcome(runtime, taken, made.refused);
  try {
    await pool.send(made.envelope, made.bytes);
  } catch (error) {
    if (!(error instanceof SmtpFailure)) throw error;
    const { attempt } = taken;
    const progress = { attempt, purpose: message.purpose, age: runtime.now() - Date.parse(message.createdAt) };
    return settleFailure(runtime, taken, classifySmtpFailure(error, progress));
  }
  return recordOutcome(runtime, taken, { to: "SENT" });
}

/** Why a delivery may no longer be sent. Sender, domain, suppression and quota are checked as they are now. */
async function denial(
  runtime: Runtime,
  { handle, message, n, quotaBefore }: LeasedDelivery,
  rights: SendingRights,
): Promise<string | undefined> {
  if (!rights.active) return "handle_inactive";
  const code = refusal(rights, message.purpose);
  if (code !== undefined) return code;
  if (await isSuppressed(runtime, handle, message.recipients[n] as string)) return "email_recipient_suppressed";
  return quotaBefore + n + 1 > runtime.env.EMAIL_QUOTA_PER_DAY ? "email_quota_exceeded" : undefined;
}

function domainOf({ from }: StoredMessage): string {
  return from.address.split("@")[1] ?? "";
}

type Settlement = Pick<Move, "reason" | "smtpCode" | "due" | "attemptBack" | "suppression" | "caused"> & {
  to: MessageStatus;
};
type ComposedMail = { envelope: Envelope; bytes: Buffer } | { refused: Settlement };

/** The signed mail as bytes. One that can't be composed is denied; one that can't be signed fails, since a retry would end the same. */
async function makeMail(runtime: Runtime, taken: LeasedDelivery, account: string): Promise<ComposedMail> {
  const { message, n, messageId } = taken;
  const domain = domainOf(message);
  let step: "render" | "sign" = "render";
  try {
    const mime = composeMime(mailOf(runtime, taken, await renderedOf(runtime, taken)));
    step = "sign";
    const bytes = await signMime(mime, await dkimKey(runtime, { domain, account }));
    return {
      envelope: {
        from: returnAddress(runtime.env, { kind: "b", messageId, n }, domain),
        to: recipientOf(taken),
      },
      bytes,
    };
  } catch (error) {
    if (isRedisAway(error)) throw error;
    if (error instanceof Fail) return { refused: { to: "DENIED", reason: error.code } };
    runtime.log.error(
      { handle: taken.handle, messageId, step, error: (error as Error).message },
      "email.message.unsendable",
    );
    return { refused: { to: "FAILED", reason: step === "sign" ? "dkim_signing_failed" : "mail_not_made" } };
  }
}

/** The recipient in the form that SMTP needs. */
function recipientOf({ message, n }: LeasedDelivery): string {
  const recipient = message.recipients[n] as string;
  return asciiAddress(recipient) ?? recipient;
}

async function renderedOf(
  runtime: Runtime,
  { handle, message, content, messageId, n }: LeasedDelivery,
): Promise<Rendered> {
  if (content.subject !== undefined) {
    const { subject, html = null, text } = content;
    return { subject, html, text: text ?? textOf(html ?? "") };
  }
  const { templateId, templateVersion: version, purpose } = message;
  const parsed = await templateVersion(runtime, {
    handle,
    templateId: templateId as string,
    version: version as number,
    purpose,
  });
  const own =
    purpose === "PRODUCT_NOTIFICATION" ? { [unsubscribeVariable]: unsubscribeUrl(runtime.env, { messageId, n }) } : {};
  return renderTemplate(parsed, { ...content.variables, ...own });
}

function mailOf(runtime: Runtime, taken: LeasedDelivery, { subject, html, text }: Rendered): Mail {
  const { message, content, messageId, n } = taken;
  const { name, address } = message.from;
  const replyTo = content.replyTo ?? message.from.replyTo;
  const domain = domainOf(message);
  return {
    from: { name, address },
    to: recipientOf(taken),
    replyTo: replyTo ? (asciiAddress(replyTo) ?? replyTo) : undefined,
    subject,
    messageId: messageIdOf(runtime.env, { messageId, n }, domain),
    date: new Date(message.createdAt),
    html,
    text,
    files: content.attachments ?? [],
    headers: {
      "Auto-Submitted": "auto-generated",
      ...(message.purpose === "PRODUCT_NOTIFICATION" ? unsubscription(runtime, { messageId, n }, domain) : {}),
    },
  };
}

/** The header fields of one-click unsubscription (RFC 8058), with a mailto address for older clients (RFC 2369). */
function unsubscription({ env }: Runtime, at: { messageId: string; n: number }, domain: string): Mail["headers"] {
  const page = unsubscribeUrl(env, at);
  const address = returnAddress(env, { kind: "u", ...at }, domain);
  return {
    "List-Unsubscribe": `<${page}>, <mailto:${address}?subject=unsubscribe>`,
    "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
  };
}

async function settleFailure(
  runtime: Runtime,
  taken: LeasedDelivery,
  verdict: SmtpFailureClass,
): Promise<AttemptOutcome> {
  const { kind, reason, code: smtpCode } = verdict;
  if (kind === "failed") {
    const { handle, messageId, message, n } = taken;
    const recipient = message.recipients[n] as string;
    const mail = { handle, messageId, recipient, purpose: message.purpose, reason, smtpCode };
    // A permanent failure of the address is a bounce.
    const bounced = verdict.hard ? returned(runtime, "email.bounced", { ...mail, source: "HARD_BOUNCE" }) : {};
    return recordOutcome(runtime, taken, { to: "FAILED", reason, smtpCode, ...bounced });
  }
  const { wait } = verdict;
  const due = wait === undefined ? Date.now() : Date.now() + delayUntil(runtime, runtime.now() + wait);
  await recordOutcome(runtime, taken, { to: "DEFERRED", reason, smtpCode, due, attemptBack: wait === undefined });
  return kind === "provider" ? "provider" : "settled";
}

/** Real ms between two attempts to record an outcome without Redis, and their number. */
const RECORD_RETRY_MS = 500;
const MAX_ATTEMPTS = 60;

/**
 * Records an outcome. An accepted mail is recorded even if another worker has the lease now, since it is a fact. Every other outcome needs
 * the lease.
 */
async function recordOutcome(
  runtime: Runtime,
  taken: LeasedDelivery,
  { to, due, ...more }: Settlement,
): Promise<AttemptOutcome> {
  const sent = to === "SENT";
  const move: Move = {
    from: sent ? ["SENDING", "QUEUED", "DEFERRED"] : ["SENDING"],
    to,
    type: to,
    due,
    ...more,
    ...(sent ? {} : { token: taken.token }),
  };
  for (let tries = 1; ; tries++) {
    try {
      await moveDelivery(runtime, taken, move);
      break;
    } catch (error) {
      if (!isRedisAway(error) || tries === MAX_ATTEMPTS) throw error;
      await setTimeout(RECORD_RETRY_MS);
    }
  }
  if (due !== undefined) await scheduleHandle(runtime.redis, taken.handle, ranks[taken.message.purpose], due);
  return "settled";
}
