import type { Buffer } from "node:buffer";
import {
  type DeliveryReport,
  type Message,
  type MessageStatus,
  reportTypes,
  type SuppressionSource,
  statuses,
} from "../../schemas/email.ts";
import { isHardBounce, MAX_REPORT_BYTES, type MailReport, readReport } from "../engines/mail/mail.ts";
import { canonicalAddress, isAddress } from "../platform/address.ts";
import { clip, oneLine } from "../platform/characters.ts";
import { invalid } from "../platform/errors.ts";
import { asObject, parseSignedBody } from "../platform/json.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { digestTag, takeToken } from "../store/throttle.ts";
import { type DeliveryName, moveDelivery, type ReturnEvent, returnEffects } from "./events.ts";
import { findMessage } from "./messages.ts";
import { type DeliveryId, deliveryNamed, deliveryOfAddress } from "./return-path.ts";
import { type SignedRequest, signedBody } from "./signed-request.ts";
import { ERASED_ADDRESS, findSuppression } from "./suppressions.ts";

/**
 * `POST /v2/email/feedback`: a provider's delivery reports as JSON. An object with `type` (DELIVERED, BOUNCED, COMPLAINED, UNSUBSCRIBED),
 * `messageId`, `recipient` and optionally `reason`, `smtpCode`, `enhancedStatus`; or the same as `data` of a Standard Webhooks event; or
 * several as `events`. Returns how many changed something; the others were duplicates, late, or about unknown mails.
 */
export async function receiveDeliveryReports(runtime: Runtime, request: SignedRequest): Promise<{ applied: number }> {
  const reports = reportsIn(await signedBody(runtime.env, request, Number.POSITIVE_INFINITY));
  let applied = 0;
  for (const report of reports)
    if (await applyReport(runtime, await reportedDelivery(runtime, report), report)) applied++;
  return { applied };
}

/**
 * `POST /v2/email/inbound`: a mail to a return path, a complaint report, or a mail to an unsubscribe address. `invalid_request` for an
 * unreadable mail.
 */
export async function receiveInboundMail(runtime: Runtime, request: SignedRequest): Promise<{ applied: number }> {
  return readInbound(runtime, await signedBody(runtime.env, request, MAX_REPORT_BYTES));
}

/** Applies a mail from outside; a mail without a report is no error. */
export async function readInbound(runtime: Runtime, mail: Buffer): Promise<{ applied: number }> {
  const { addresses, originalMessageId = "", ...read } = await readReport(mail);
  const path = addresses.map((address) => deliveryOfAddress(runtime.env, address)).find(Boolean);
  const reports: MailReport[] = path?.kind === "u" ? [{ type: "UNSUBSCRIBED", reason: "mail" }] : read.reports;
  const delivery = await deliveryAt(runtime, path ?? deliveryNamed(runtime.env, "message id", originalMessageId));
  let applied = 0;
  for (const report of reports) if (await applyReport(runtime, delivery, report)) applied++;
  return { applied };
}

/** The contents of the unsubscribe page; undefined for a link that the service didn't issue, or whose message is gone. */
export interface UnsubscribeVisit {
  link:
    | {
        recipient: string;
        /** Display name of the sender, else its address. */
        from: string;
        state: "subscribed" | "unsubscribed" | "resubscribed";
        /** True if the recipient can undo it: bounces, complaints and the owner's suppressions stay. */
        canUndo: boolean;
      }
    | undefined;
}

/** The current state behind a link. Opening it changes nothing, since mail scanners open links too. */
export async function visitUnsubscribe(runtime: Runtime, { token }: { token: string }): Promise<UnsubscribeVisit> {
  const found = await deliveryAt(runtime, deliveryNamed(runtime.env, "unsubscribe", token));
  if (found === undefined) return { link: undefined };
  const { handle, recipient, message } = found;
  const suppression = await findSuppression(runtime, handle, recipient);
  const state = suppression ? "unsubscribed" : "subscribed";
  const from = message.fromEmail.replace(/ <[^<>]*>$/, "");
  return { link: { recipient, from, state, canUndo: suppression?.source === "UNSUBSCRIBE" } };
}

/** Unsubscribes the recipient at once (RFC 8058), without a login or a question, or undoes that. Idempotent. */
export async function answerUnsubscribe(
  runtime: Runtime,
  { token, undo }: { token: string; undo?: string | undefined },
): Promise<UnsubscribeVisit> {
  const delivery = await deliveryAt(runtime, deliveryNamed(runtime.env, "unsubscribe", token));
  if (undo) await resubscribe(runtime, delivery);
  else await applyReport(runtime, delivery, { type: "UNSUBSCRIBED", reason: "link" });
  const { link } = await visitUnsubscribe(runtime, { token });
  return { link: link && undo && link.state === "subscribed" ? { ...link, state: "resubscribed" } : link };
}

/** Undone unsubscriptions of one delivery: 5 at once, then 5 a day, so that nobody fills its timeline. */
const UNDO_LIMIT = { burst: 5, rate: 5 / 86_400 };

/** Records that a recipient subscribes again and lifts the suppression of the unsubscription, if any; `rate_limited` after too many. */
async function resubscribe(runtime: Runtime, delivery: FoundDelivery | undefined): Promise<void> {
  const lifted = delivery && (await findSuppression(runtime, delivery.handle, delivery.recipient));
  if (delivery === undefined || lifted?.source !== "UNSUBSCRIBE") return;
  const tag = digestTag(runtime.env, delivery.messageId, String(delivery.n));
  await takeToken(runtime, { name: "resubscribe", tag, ...UNDO_LIMIT });
  await moveDelivery(runtime, delivery, { from: statuses, type: "RESUBSCRIBED", reason: "link", lifted });
}

interface FoundDelivery extends DeliveryName {
  message: Message;
  recipient: string;
}

/** The delivery of a message id and index; undefined if it doesn't exist (any more), or if its recipient has been erased. */
async function deliveryAt(runtime: Runtime, at: DeliveryId | undefined): Promise<FoundDelivery | undefined> {
  if (at === undefined) return undefined;
  const found = await messageAt(runtime, at.messageId);
  const recipient = found?.message.deliveries[at.n]?.recipient;
  return found && recipient && recipient !== ERASED_ADDRESS ? { ...at, ...found, recipient } : undefined;
}

async function messageAt({ redis }: Runtime, messageId: string) {
  const handle = await redis.get(keys.messageOwner(messageId));
  const message = handle === null ? undefined : await findMessage(redis, handle, messageId);
  return handle && message ? { handle, message } : undefined;
}

/**
 * By type of report: the statuses that it may change, since it may arrive before the worker has recorded that the server accepted the mail;
 * its webhook event; and why it suppresses the address.
 */
const effects: Record<
  DeliveryReport["type"],
  { from: readonly MessageStatus[]; event?: ReturnEvent; source?: SuppressionSource }
> = {
  DELIVERED: { from: ["SENDING", "DEFERRED", "SENT"] },
  BOUNCED: { from: ["SENDING", "DEFERRED", "SENT", "DELIVERED"], event: "email.bounced", source: "HARD_BOUNCE" },
  COMPLAINED: {
    from: ["SENDING", "DEFERRED", "SENT", "DELIVERED", "BOUNCED"],
    event: "email.complained",
    source: "COMPLAINT",
  },
  UNSUBSCRIBED: { from: statuses, source: "UNSUBSCRIBE" },
};

/** Most UTF-16 units of a report's reason that are stored. */
const MAX_REASON_LENGTH = 300;

/** Applies a report; false if it changes nothing. */
async function applyReport(
  runtime: Runtime,
  delivery: FoundDelivery | undefined,
  report: MailReport,
): Promise<boolean> {
  if (delivery === undefined) return false;
  const { type, enhancedStatus, smtpCode } = report;
  const { handle, messageId, recipient, message } = delivery;
  const leaves = type === "UNSUBSCRIBED";
  const { from, event, source } = effects[type];
  const isSoft = type === "BOUNCED" && !isHardBounce(enhancedStatus ?? undefined);
  // Without lone surrogates: the JSON decoder of Redis refuses them in the next event of the message.
  const reason = clip(oneLine(report.reason ?? ""), MAX_REASON_LENGTH) || undefined;
  const details = { reason, smtpCode: smtpCode ?? undefined };
  const mail = { handle, messageId, recipient, purpose: message.purpose, ...details };
  return moveDelivery(runtime, delivery, {
    ...{ from, ...(leaves ? {} : { to: type }), type, ...details },
    ...returnEffects(runtime, event, { ...mail, source: isSoft ? undefined : source }),
  });
}

/** The delivery of a report's message to its recipient; undefined if there is none. */
async function reportedDelivery(
  runtime: Runtime,
  { messageId, recipient }: DeliveryReport,
): Promise<FoundDelivery | undefined> {
  const found = await messageAt(runtime, messageId);
  const n =
    found?.message.deliveries.findIndex((one) => canonicalAddress(one.recipient) === canonicalAddress(recipient)) ?? -1;
  return found && n !== -1 ? { messageId, n, ...found, recipient } : undefined;
}

function reportsIn(body: Buffer): DeliveryReport[] {
  const { events, ...single } = asObject(parseSignedBody(body));
  if (!Array.isArray(events)) return [reportOf({ type: single.type, ...asObject(single.data ?? single) }, "")];
  return events.map((one, at) => reportOf({ type: single.type, ...asObject(one) }, `/events/${at}`));
}

function reportOf(given: Record<string, unknown>, path: string): DeliveryReport {
  const { messageId, recipient, reason, smtpCode, enhancedStatus } = given;
  const type = reportTypes.find((one) => one === String(given.type).toUpperCase().split(".").at(-1));
  if (type === undefined) throw invalid(`${path}/type`, `is not one of ${reportTypes.join(", ")}`);
  if (typeof messageId !== "string" || messageId === "") throw invalid(`${path}/messageId`, "is required");
  if (typeof recipient !== "string" || !isAddress(recipient))
    throw invalid(`${path}/recipient`, "must be an email address");
  return {
    ...{ type, messageId, recipient },
    reason: typeof reason === "string" ? reason : undefined,
    smtpCode: Number.isInteger(smtpCode) ? (smtpCode as number) : undefined,
    enhancedStatus: typeof enhancedStatus === "string" ? enhancedStatus : undefined,
  };
}
