import { composeMime, type Mail, type MimeFile, mimeBytes, type SmtpFailure, SmtpPool } from "../engines/mail/mail.ts";
import { asciiAddress } from "../platform/address.ts";
import type { Env } from "../platform/env.ts";
import { Fail } from "../platform/errors.ts";
import { keyDigest } from "../store/idempotency.ts";

/** The content of a mail; replies go to `replyTo` if it is set. Repeated sends with one `key` have one Message-ID. */
interface ServiceMail extends Pick<Mail, "subject" | "text" | "html"> {
  key: string;
  replyTo?: string;
  attachments?: MimeFile[];
}

/**
 * Sends a mail from the installation's own address, outside any handle's senders, over a separate connection. It stores no message and no
 * event. `transactional_email_queue_unavailable` without a mail server.
 */
export async function sendServiceMail(env: Env, to: string, mail: ServiceMail): Promise<void> {
  if (env.SMTP_URL === undefined) throw new Fail("transactional_email_queue_unavailable");
  const composed = mailOf(senderOf(env), asciiAddress(to) ?? to, mail);
  // An idle connection ends by QUIT (RFC 5321, section 4.1.1.10).
  const pool = new SmtpPool(env.SMTP_URL, { idleTimeout: 1 });
  try {
    await pool.send({ from: composed.from.address, to: composed.to }, mimeBytes(composeMime(composed)));
  } catch (error) {
    pool.close();
    // The server's reply may contain the address, and failures are logged.
    const { code, cause } = error as SmtpFailure & { cause?: NodeJS.ErrnoException };
    throw new Error(`The mail server did not accept the mail: ${code ?? cause?.code ?? "no answer"}.`);
  }
}

function mailOf(
  from: Mail["from"],
  to: string,
  { key, replyTo, attachments: files = [], ...content }: ServiceMail,
): Mail {
  return {
    ...{ from, to, ...content, files, date: new Date() },
    replyTo: replyTo && (asciiAddress(replyTo) ?? replyTo),
    messageId: `${keyDigest(key)}@${from.address.split("@")[1]}`,
    headers: { "Auto-Submitted": "auto-generated" },
  };
}

function senderOf({ LOGIN_MAIL_FROM, PUBLIC_DOMAIN, BASE_URL }: Env): Mail["from"] {
  const domain = PUBLIC_DOMAIN?.replace(/:\d+$/, "") ?? new URL(BASE_URL).hostname;
  const address = `noreply@${/^[\d.]+$|^\[/.test(domain) ? "localhost" : domain}`;
  return LOGIN_MAIL_FROM ?? { name: "", address };
}
