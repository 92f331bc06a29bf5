import type { Buffer } from "node:buffer";
import { type Feedback, type Message, type MessageStatus, reportTypes, statuses } from "../../schemas/email.ts";
import type { ReturnedMail } from "../../schemas/webhooks.ts";
import { isHardBounce, MAX_REPORT_BYTES, type MailReport, readReport } from "../engines/mail/mail.ts";
import { isAddress, sameAddress } from "../platform/address.ts";
import { Fail, invalid } from "../platform/errors.ts";
import type { EventJob, Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { digestTag, takeToken } from "../store/throttle.ts";
import { type DeliveryName, type Move, moveDelivery, returnedMailEvent } from "./events.ts";
import { findMessage } from "./messages.ts";
import { deliveryOfAddress, deliveryOfMessageId } from "./return-path.ts";
import { type SignedRequest, signedBody } from "./signed-request.ts";
import { findSuppression, isSuppressed, suppressionOf } from "./suppressions.ts";

/** How many reports changed something; the others were duplicates, late, or about unknown mails. */
interface Applied {
  applied: number;
}

/**
 * `POST /v2/email/feedback`: a provider's delivery reports as JSON. An object with `type` (DELIVERED, BOUNCED, COMPLAINED, UNSUBSCRIBED),
 * `messageId`, `recipient` and optionally `reason`, `smtpCode`, `enhancedStatus`; or the same as `data` of a Standard Webhooks event; or
 * several as `events`.
 */
export async function receiveDeliveryReports(runtime: Runtime, request: SignedRequest): Promise<Applied> {
  const list = feedbackIn(await signedBody(runtime.env, request, Number.POSITIVE_INFINITY));
  let applied = 0;
  for (const one of list) applied += (await apply(runtime, await named(runtime, one), one)) ? 1 : 0;
  return { applied };
}

/**
 * `POST /v2/email/inbound`: a mail to a return path, a complaint report, or a mail to an unsubscribe address. `invalid_request` for an
 * unreadable mail.
 */
export async function receiveInboundMail(runtime: Runtime, request: SignedRequest): Promise<Applied> {
  return readInbound(runtime, await signedBody(runtime.env, request, MAX_REPORT_BYTES));
}

/** Applies a mail from outside; a mail without a report is no error. */
export async function readInbound(runtime: Runtime, mail: Buffer): Promise<Applied> {
  const report = await readReport(mail);
  const returned = report.addresses
    .map((address) => deliveryOfAddress(runtime.env, address))
    .find((one) => one !== undefined);
  const at = returned ?? deliveryOfMessageId(runtime.env, report.originalMessageId ?? "");
  if (at === undefined) return { applied: 0 };
  const notices: MailReport[] = returned?.kind === "u" ? [{ type: "UNSUBSCRIBED", reason: "mail" }] : report.notices;
  const delivery = await deliveryAt(runtime, at);
  let applied = 0;
  for (const notice of notices) applied += (await apply(runtime, delivery, notice)) ? 1 : 0;
  return { applied };
}

/** Records that a recipient unsubscribes from this handle, with the suppression; idempotent. False for unknown deliveries. */
export async function unsubscribe(
  runtime: Runtime,
  at: { messageId: string; n: number },
  reason: string,
): Promise<boolean> {
  const delivery = await deliveryAt(runtime, at);
  if (delivery === undefined) return false;
  await apply(runtime, delivery, { type: "UNSUBSCRIBED", reason });
  return true;
}

/** Undone unsubscriptions of one delivery: 5 at once, then 5 a day, so that nobody fills its timeline. */
const undoLimit = { burst: 5, rate: 5 / 86_400 };

/**
 * Records that a recipient subscribes again and lifts the suppression of the unsubscription; false if there is none, `rate_limited` after
 * too many.
 */
export async function resubscribe(runtime: Runtime, at: { messageId: string; n: number }): Promise<boolean> {
  const delivery = await deliveryAt(runtime, at);
  const suppression = delivery && (await findSuppression(runtime, delivery.handle, delivery.recipient));
  if (delivery === undefined || suppression?.source !== "UNSUBSCRIBE") return false;
  const tag = digestTag(runtime.env, at.messageId, String(at.n));
  await takeToken(runtime, { name: "resubscribe", tag, ...undoLimit });
  return moveDelivery(runtime, delivery, { from: statuses, type: "RESUBSCRIBED", reason: "link", lifted: suppression });
}

/** The delivery that a report is about. */
interface FoundDelivery extends DeliveryName {
  message: Message;
  recipient: string;
}

/** The delivery of a message id and index; undefined if it doesn't exist (any more). */
export async function deliveryAt(
  { redis }: Runtime,
  { messageId, n }: { messageId: string; n: number },
): Promise<FoundDelivery | undefined> {
  const handle = await redis.get(keys.messageOwner(messageId));
  const message = handle === null ? undefined : await findMessage(redis, handle, messageId);
  const recipient = message?.deliveries[n]?.recipient;
  return handle && message && recipient ? { handle, messageId, n, message, recipient } : undefined;
}

/** Statuses that a report may change. It may arrive before the worker has recorded that the server accepted the mail. */
const moves: Record<Feedback["type"], readonly MessageStatus[]> = {
  DELIVERED: ["SENDING", "DEFERRED", "SENT"],
  BOUNCED: ["SENDING", "DEFERRED", "SENT", "DELIVERED"],
  COMPLAINED: ["SENDING", "DEFERRED", "SENT", "DELIVERED", "BOUNCED"],
  UNSUBSCRIBED: statuses,
};

async function apply(runtime: Runtime, delivery: FoundDelivery | undefined, notice: MailReport): Promise<boolean> {
  if (delivery === undefined) return false;
  const { type, reason, smtpCode } = notice;
  const leaves = type === "UNSUBSCRIBED";
  if (leaves && (await isSuppressed(runtime, delivery.handle, delivery.recipient))) return false;
  const details = { reason: reason?.replace(/\s+/g, " ").slice(0, 300), smtpCode: smtpCode ?? undefined };
  const suppression = suppressionFor(runtime, delivery, notice);
  return moveDelivery(runtime, delivery, {
    from: moves[type],
    ...(leaves ? {} : { to: type }),
    type,
    ...details,
    suppression,
    caused: eventsOf(runtime, delivery, { type, ...details, suppressed: suppression !== undefined }),
  });
}

/** The webhook events of a report: only bounces and complaints have one. */
function eventsOf(
  runtime: Runtime,
  { handle, messageId, recipient, message: { purpose } }: FoundDelivery,
  notice: Pick<ReturnedMail, "suppressed"> & Pick<Move, "type" | "reason" | "smtpCode">,
): EventJob[] {
  const { type, reason = null, smtpCode = null, suppressed } = notice;
  if (type !== "BOUNCED" && type !== "COMPLAINED") return [];
  const email = { messageId, recipient, purpose, reason, smtpCode, suppressed };
  return [
    returnedMailEvent(runtime, handle, { type: type === "BOUNCED" ? "email.bounced" : "email.complained", email }),
  ];
}

function suppressionFor(
  runtime: Runtime,
  { recipient, messageId }: FoundDelivery,
  { type, enhancedStatus }: MailReport,
) {
  const source = {
    COMPLAINED: "COMPLAINT",
    UNSUBSCRIBED: "UNSUBSCRIBE",
    BOUNCED: isHardBounce(enhancedStatus ?? undefined) ? "HARD_BOUNCE" : undefined,
    DELIVERED: undefined,
  } as const;
  const cause = source[type];
  return cause === undefined ? undefined : suppressionOf(recipient, { source: cause, messageId, at: runtime.now() });
}

async function named(runtime: Runtime, { messageId, recipient }: Feedback): Promise<FoundDelivery | undefined> {
  const first = await deliveryAt(runtime, { messageId, n: 0 });
  const n = first?.message.deliveries.findIndex((one) => sameAddress(one.recipient) === sameAddress(recipient)) ?? -1;
  return first === undefined || n === -1 ? undefined : { ...first, n, recipient };
}

function feedbackIn(body: Buffer): Feedback[] {
  const parsed = jsonIn(body);
  const list = Array.isArray(parsed.events) ? parsed.events : [parsed.data ?? parsed];
  return list.map((one, at) =>
    feedbackOf({ type: parsed.type, ...(one as object) }, Array.isArray(parsed.events) ? `/events/${at}` : ""),
  );
}

function jsonIn(body: Buffer): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(body.toString("utf8"));
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed))
      return parsed as Record<string, unknown>;
  } catch (error) {
    throw new Fail("invalid_request", { detail: "The body cannot be parsed." }, error);
  }
  throw invalid("", "must be an object");
}

function feedbackOf(given: Record<string, unknown>, path: string): Feedback {
  const { type, messageId, recipient, reason, smtpCode, enhancedStatus } = given;
  const known = reportTypes.find((one) => one === String(type).toUpperCase().split(".").at(-1));
  if (known === undefined) throw invalid(`${path}/type`, `is not one of ${reportTypes.join(", ")}`);
  if (typeof messageId !== "string" || messageId === "") throw invalid(`${path}/messageId`, "is required");
  if (typeof recipient !== "string" || !isAddress(recipient))
    throw invalid(`${path}/recipient`, "must be an email address");
  return {
    ...{ type: known, messageId, recipient },
    ...(typeof reason === "string" ? { reason } : {}),
    ...(Number.isInteger(smtpCode) ? { smtpCode: smtpCode as number } : {}),
    ...(typeof enhancedStatus === "string" ? { enhancedStatus } : {}),
  };
}
