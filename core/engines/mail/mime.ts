import type { Buffer } from "node:buffer";
import MailComposer from "nodemailer/lib/mail-composer";

/** A file as a mail carries it; the content is base64. */
export interface MimeFile {
  filename: string;
  contentType: string;
  content: string;
}

/** A mail to one recipient. */
export interface Mail {
  from: { name: string; address: string };
  to: string;
  replyTo: string | null;
  subject: string;
  /** Without the angle brackets. */
  messageId: string;
  date: Date;
  html: string | null;
  text: string;
  files: MimeFile[];
  /** Further header fields, in their order. Values are one line. */
  more: [name: string, value: string][];
}

/**
 * Writes a mail as MIME (RFC 2045–2047) with CRLF throughout. Text, HTML and an invitation are alternatives of one another; files
 * come beside them. Nothing in a mail can name a file or an address for the composer to read.
 */
export function composeMime(mail: Mail): Promise<Buffer> {
  const invitation = mail.files.find(({ contentType }) => contentType.startsWith("text/calendar"));
  return new MailComposer({
    ...{ from: mail.from, to: { name: "", address: mail.to } },
    ...(mail.replyTo ? { replyTo: { name: "", address: mail.replyTo } } : {}),
    ...{ subject: mail.subject, date: mail.date },
    headers: [
      // Prepared, since folding would part a long id from its name, which some readers don't expect.
      { key: "Message-ID", value: { prepared: true, value: `<${mail.messageId}>` } },
      ...mail.more.map(([key, value]) => ({ key, value })),
    ],
    text: crlf(mail.text),
    ...(mail.html === null ? {} : { html: crlf(mail.html) }),
    alternatives: invitation ? [partOf(invitation)] : [],
    attachments: mail.files.map(attachmentOf),
    ...{ disableFileAccess: true, disableUrlAccess: true },
  })
    .compile()
    .build();
}

function crlf(text: string): string {
  return text.replace(/\r\n|\r|\n/g, "\r\n");
}

function partOf({ contentType, content }: MimeFile): object {
  return { contentType, content, encoding: "base64", contentTransferEncoding: "base64" };
}

/** Beside the alternative that calendars read, an invitation is a file, as people expect one. */
function attachmentOf({ filename, contentType, content }: MimeFile): object {
  return {
    filename: filename.replace(/[\p{Cc}/\\]/gu, "_"),
    contentType: contentType.startsWith("text/calendar") ? "application/ics" : contentType,
    content,
    encoding: "base64",
  };
}
