import { Buffer } from "node:buffer";
import { createHash, type KeyObject, sign } from "node:crypto";
import { promisify } from "node:util";
import { wrap as wrapBase64 } from "nodemailer/lib/base64";
import MailComposer from "nodemailer/lib/mail-composer";
import { encodeWord, foldLines } from "nodemailer/lib/mime-funcs";
import type MimeNode from "nodemailer/lib/mime-node";
import { encode, wrap } from "nodemailer/lib/qp";

/** An attachment; the content is base64. */
export interface MimeFile {
  filename: string;
  contentType: string;
  content: string;
}

/** A mail to one recipient. */
export interface Mail {
  from: { name: string; address: string };
  to: string;
  replyTo: string | undefined;
  subject: string;
  /** Without the angle brackets. */
  messageId: string;
  date: Date;
  html: string | null;
  text: string;
  files: MimeFile[];
  /** Further header fields; values are ASCII and single lines. */
  headers: Record<string, string>;
}

/** A mail ready for signing and sending, in ASCII with CRLF: folded header fields without the last line break, and the body. */
interface Mime {
  headers: string;
  body: string;
}

/**
 * Writes a mail as MIME (RFC 2045–2047): ASCII only, and no header injection. Text, HTML and an invitation are alternatives; files are
 * attached. nodemailer writes the headers of all parts. The contents are encoded here: its streams take three times the CPU time, which
 * costs a fifth of the mails per second (`npm run bench -- email`).
 */
export function composeMime({ html, text, subject, files, ...mail }: Mail): Mime {
  const base64 = { encoding: "base64", contentTransferEncoding: "base64" } as const;
  const invitation = files.find(isInvitation);
  const root = new MailComposer({
    ...mail,
    // Encoded if a reader would decode it (RFC 2047, section 5), or if a word is too long to fold.
    subject: /=\?|\S{60}/.test(subject) ? encodeWord(subject, "B", 52) : subject,
    text: withLineEnds(text),
    ...(html === null ? {} : { html: withLineEnds(html) }),
    ...(invitation
      ? { alternatives: [{ contentType: invitation.contentType, content: invitation.content, ...base64 }] }
      : {}),
    attachments: files.map((file) => ({
      ...file,
      ...(isInvitation(file) ? { contentType: "application/ics" } : {}),
      ...base64,
    })),
  }).compile();
  return partOf(root);
}

function isInvitation({ contentType }: MimeFile): boolean {
  return contentType.startsWith("text/calendar");
}

function withLineEnds(text: string): string {
  const lines = text.replace(/\r\n|\r|\n/g, "\r\n");
  return lines.endsWith("\r\n") ? lines : `${lines}\r\n`;
}

function partOf(node: MimeNode): Mime {
  // A long first word stays on the line of the name: some readers reject a field whose first line is empty.
  const headers = node.buildHeaders().replace(/^([\w-]+:) *\r\n(?= )/gm, "$1");
  if (!node.boundary) return { headers, body: contentOf(node) };
  const parts = node.childNodes
    .map(partOf)
    .map((part) => `--${node.boundary}\r\n${part.headers}\r\n\r\n${part.body}\r\n`);
  return { headers, body: `${parts.join("")}--${node.boundary}--\r\n` };
}

function contentOf(node: MimeNode): string {
  const content = node.content as string | Buffer;
  const encoding = node.getHeader("Content-Transfer-Encoding");
  if (encoding === "base64") return wrapBase64(Buffer.from(content as string).toString("base64"));
  return encoding === "quoted-printable" ? wrap(encode(content)) : String(content);
}

/** The signing key of a domain (RFC 6376): the DNS name of its public key, and the private key. */
export interface DkimKey {
  domain: string;
  selector: string;
  key: KeyObject;
}

/**
 * Signed fields, if a mail has them. Both fields of one-click unsubscription must be signed (RFC 8058, section 4). From is listed once more
 * than it occurs, so that nobody can add a second one (RFC 6376, section 5.4.2).
 */
const signedFields = [
  ..."from to reply-to subject message-id date mime-version content-type content-transfer-encoding".split(" "),
  ...["list-unsubscribe", "list-unsubscribe-post", "auto-submitted"],
];

/**
 * A mail as bytes with its DKIM signature in front (RFC 6376, rsa-sha256, relaxed/relaxed). Throws instead of leaving it unsigned.
 * nodemailer's signer would send it unsigned, lists From only once, and signs on the event loop.
 */
export async function signMime({ headers, body }: Mime, dkim: DkimKey): Promise<Buffer> {
  if (dkim.key.asymmetricKeyType !== "rsa") throw new Error("The DKIM key is not an RSA key.");
  const fields = new Map(headers.split(/\r\n(?! )/).map(nameAndValue));
  const names = signedFields.filter((name) => fields.has(name));
  const unsigned = foldLines(
    [
      `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=${dkim.domain};`,
      `s=${dkim.selector}; t=${Math.floor(Date.now() / 1000)}; h=${[...names, "from"].join(": ")};`,
      `bh=${createHash("sha256").update(relaxedBody(body)).digest("base64")}; b=`,
    ].join(" "),
  );
  const lines = names.map((name) => `${name}:${fields.get(name)}\r\n`).join("");
  const signed = `${lines}${nameAndValue(unsigned).join(":")}`;
  const signature = await asyncSign("sha256", Buffer.from(signed), dkim.key);
  const value = wrapBase64(signature.toString("base64"), 70).replaceAll("\r\n", "\r\n ");
  return Buffer.from(`${unsigned}\r\n ${value}\r\n${headers}\r\n\r\n${body}`, "latin1");
}

// The callback form signs in the thread pool: that is half of a mail's CPU time.
const asyncSign = promisify(sign);

/** The relaxed canonical form of a header field (RFC 6376, section 3.4.2): lower case; unfolded, white space collapsed, trimmed. */
function nameAndValue(field: string): [name: string, value: string] {
  const [, name = "", value = ""] = /^([^:]*):(.*)$/s.exec(field) ?? [];
  return [name.toLowerCase(), value.replace(/\s+/g, " ").trim()];
}

/** The relaxed canonical form of a body (RFC 6376, section 3.4.4): white space collapsed, none at line ends, no empty lines at the end. */
function relaxedBody(body: string): string {
  const even = body.replace(/[ \t]+/g, " ").replace(/ \r\n/g, "\r\n");
  let end = even.length;
  while (even.endsWith("\r\n", end) && end > 0) end -= 2;
  return end === 0 ? "" : `${even.slice(0, end)}\r\n`;
}
