import type { Purpose } from "../../schemas/email.ts";
import { sendServiceMail } from "../account/face.ts";
import { insteadOf } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keyDigest } from "../store/idempotency.ts";
import { keys } from "../store/keys.ts";
import { acceptMessage, type MailRequest } from "./acceptance.ts";
import { ranks } from "./mail-queues.ts";
import { findSender } from "./senders.ts";
import { findSuppression } from "./suppressions.ts";

/** Seconds for which a mail that the service itself sent is remembered. */
const SENT_RETENTION_SECONDS = 400 * 86_400;
/** Purposes of usable senders, best first. */
const purposes = Object.keys(ranks) as Purpose[];

/** A mail that the service writes for a handle, to one person. */
interface HandleMail extends Pick<MailRequest, "handle" | "attachments" | "caps" | "denied" | "leads" | "isNotice"> {
  to: string;
  content: { subject: string; text: string; html: string; replyTo?: string };
  /** Identifies the mail, so that it is sent once. */
  key: string;
}

/**
 * Sends a mail through a sender of the handle, or from the service's own address if the handle has no usable one. A denied mail is never
 * sent; it is recorded if the handle has a sender.
 */
export async function sendForHandle(runtime: Runtime, mail: HandleMail): Promise<void> {
  const sender = await findSender(runtime, mail.handle, ...purposes);
  const purpose = purposes.find((one) => sender?.purposes.includes(one));
  if (sender && purpose) await acceptOnce(runtime, { ...mail, senderId: sender.senderId, purpose, to: [mail.to] });
  else if (mail.denied === undefined) await sendByService(runtime, mail);
}

/** Accepts a mail of a job, which may be repeated: one that was sent and erased since is not sent again, and stops no other. */
export async function acceptOnce(runtime: Runtime, mail: MailRequest): Promise<void> {
  await acceptMessage(runtime, mail).catch(insteadOf("message_not_found", undefined));
}

/** True for a handle without a usable sender: the service mails for it from its own address. */
export async function mailsByService(runtime: Runtime, handle: string): Promise<boolean> {
  return (await findSender(runtime, handle, ...purposes)) === undefined;
}

/** A crash after the mail was accepted may repeat it, but never loses one. */
async function sendByService(
  runtime: Runtime,
  { handle, to, content, attachments = [], key }: HandleMail,
): Promise<void> {
  const { env, redis } = runtime;
  const sent = keys.emailOnce(handle, keyDigest(key));
  if ((await redis.exists(sent)) || (await findSuppression(runtime, handle, to))) return;
  await sendServiceMail(env, to, { key: `${handle} ${key}`, ...content, attachments });
  await redis.set(sent, "service", "EX", SENT_RETENTION_SECONDS);
}
