import nodemailer from "nodemailer";
import type { MimeFile } from "../engines/mail/mail.ts";
import type { Env } from "../platform/env.ts";
import { Fail } from "../platform/errors.ts";
import { keyDigest } from "../store/idempotency.ts";

/** The content of a mail; replies go to `replyTo` if it is set. Repeated sends with one `key` have one Message-ID. */
interface ServiceMail {
  key: string;
  subject: string;
  text: string;
  html: string;
  replyTo?: string;
  attachments?: MimeFile[];
}

/**
 * Sends a mail from the installation's own address, outside any handle's senders, over a separate connection. It stores no message and no
 * event. `transactional_email_queue_unavailable` without a mail server.
 */
export async function sendServiceMail(
  env: Env,
  to: string,
  { key, replyTo, attachments: files = [], ...content }: ServiceMail,
): Promise<void> {
  if (env.SMTP_URL === undefined) throw new Fail("transactional_email_queue_unavailable");
  const transport = nodemailer.createTransport(env.SMTP_URL);
  const from = senderOf(env);
  const envelope = { from, to: { name: "", address: to } };
  const messageId = `<${keyDigest(key)}@${from.address.split("@")[1]}>`;
  const attachments = files.map((file) => ({ ...file, encoding: "base64" }));
  const answers = replyTo === undefined ? {} : { replyTo: { name: "", address: replyTo } };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    await transport.sendMail({ ...envelope, ...answers, messageId, ...content, attachments, ...fixed, signal });
  } catch (error) {
    // The server's reply may contain the address, and failures are logged.
    const { responseCode, code } = error as { responseCode?: number; code?: string };
    throw new Error(`The mail server did not accept the mail: ${responseCode ?? code ?? "no answer"}.`);
  } finally {
    transport.close();
  }
}

/** Ms for a whole mail (RFC 5321, section 4.5.3.2.6): a server that trickles its replies is never silent. */
const TIMEOUT_MS = 600_000;

const fixed = { headers: { "Auto-Submitted": "auto-generated" }, disableFileAccess: true, disableUrlAccess: true };

function senderOf({ LOGIN_MAIL_FROM, PUBLIC_DOMAIN, BASE_URL }: Env): { name: string; address: string } {
  const domain = PUBLIC_DOMAIN?.replace(/:\d+$/, "") ?? new URL(BASE_URL).hostname;
  const address = `noreply@${/^[\d.]+$|^\[/.test(domain) ? "localhost" : domain}`;
  return LOGIN_MAIL_FROM ?? { name: "", address };
}
