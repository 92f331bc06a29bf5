import { Buffer } from "node:buffer";
import PostalMime, { type Email } from "postal-mime";
import type { DeliveryReport } from "../../../schemas/email.ts";
import { Fail } from "../../platform/errors.ts";

/** What became of a delivery. */
export type MailReport = Pick<DeliveryReport, "type" | "reason" | "smtpCode" | "enhancedStatus">;

/** An incoming mail about a sent one: a bounce (RFC 3464, RFC 6533, or plain text), a complaint (RFC 5965) or an unsubscription. */
interface IncomingMail {
  /** Its recipients: one of them may be a return path. */
  addresses: string[];
  /** The Message-ID of the mail that it is about, if it includes that. */
  originalMessageId: string | undefined;
  /** Empty if it is no report. */
  reports: MailReport[];
}

/** Header fields that name the recipients, in common mail systems. */
const recipientFields = ["to", "delivered-to", "x-original-to", "envelope-to", "x-envelope-to", "x-forwarded-to"];

/**
 * Parses an incoming mail. A delay report is ignored, since the sender's server keeps trying.
 * `invalid_request` for a mail with too large headers or too deep nesting; a retry would not help.
 */
export async function readReport(bytes: Buffer): Promise<IncomingMail> {
  const mail = await parsed(bytes);
  return {
    addresses: addressesOf(mail),
    originalMessageId: originalOf(mail),
    reports: [...bounces(mail), ...textBounces(mail), ...complaints(mail)].slice(0, MAX_REPORTS),
  };
}

/**
 * Bytes and lines of a mail to parse; a report says everything at its start. postal-mime takes up to 15 µs and 1 KB per line: 5 MB of empty
 * lines would take 90 s and 5 GB.
 */
export const MAX_REPORT_BYTES = 262_144;
const MAX_LINES = 5_000;
const MAIL_LIMITS = { maxHeadersSize: 65_536, maxNestingDepth: 20 };
const MAX_REPORTS = 100;

async function parsed(bytes: Buffer): Promise<Email> {
  try {
    return await PostalMime.parse(beginning(bytes), { forceRfc822Attachments: true, ...MAIL_LIMITS });
  } catch (error) {
    throw new Fail("invalid_request", { detail: `The mail cannot be read: ${(error as Error).message}.` }, error);
  }
}

function beginning(bytes: Buffer): Buffer {
  const first = bytes.subarray(0, MAX_REPORT_BYTES);
  let end = 0;
  for (let lines = 0; lines < MAX_LINES; lines++) {
    const at = first.indexOf(10, end);
    if (at < 0) return first;
    end = at + 1;
  }
  return first.subarray(0, end);
}

function addressesOf({ headers }: Email): string[] {
  const values = headers.filter(({ key }) => recipientFields.includes(key)).map(({ value }) => value);
  return values.flatMap((value) => value.split(/[\s<>,;:"()]+/).filter(isAddressLike));
}

/** Splits at the sign: a pattern with a part before and after it would backtrack over a long word. */
function isAddressLike(word: string): boolean {
  const at = word.indexOf("@");
  return at > 0 && at < word.length - 1;
}

function originalOf(mail: Email): string | undefined {
  const original =
    partsOf(mail, "message/rfc822", "message/global", "text/rfc822-headers", "message/global-headers")[0] ?? "";
  return fieldsOf(original.split(/\n\s*\n/)[0] ?? "").get("message-id");
}

/** One report per recipient of a delivery status (RFC 3464, section 2.3); the first block is about the whole message. */
function bounces(mail: Email): MailReport[] {
  const parts = partsOf(mail, "message/delivery-status", "message/global-delivery-status");
  const blocks = parts.flatMap((part) => part.split(/\n\s*\n/));
  return blocks.map(fieldsOf).flatMap((fields): MailReport[] => {
    const type = { failed: "BOUNCED" as const, delivered: "DELIVERED" as const }[firstWord(fields.get("action"))];
    return type === undefined ? [] : [{ type, ...diagnosis(fields) }];
  });
}

/**
 * The report of a mail system that writes bounces as text, as qmail and older Exims do: its first permanent status, else reply, above its copy
 * of the mail, else what it says about the recipient if it has given up. Delays name a transient one, and answers of people don't come from a
 * mail system.
 */
function textBounces({ from, text, attachments }: Email): MailReport[] {
  const isReport = attachments.some(({ mimeType }) => /^message\/.*(?:status|report)$/.test(mimeType));
  if (isReport || !/^(mailer-daemon|postmaster)@/i.test(from?.address ?? "")) return [];
  const [own = ""] = (text ?? "").split(/^(?:---|received:|return-path:|message-id:)/im, 1);
  const lines = own.split("\n");
  const hasStatus = (line: string) => ENHANCED_STATUS.exec(line)?.[0].startsWith("5");
  const about = GIVEN_UP.test(own) ? lines[lines.findIndex((line) => RECIPIENT.test(line)) + 1] : undefined;
  const line = lines.find(hasStatus) ?? lines.find((line) => REFUSAL.test(line)) ?? about;
  if (line === undefined) return [];
  return [{ type: "BOUNCED", ...diagnosis(new Map([["diagnostic-code", (REFUSAL.exec(line)?.[0] ?? line).trim()]])) }];
}

/** RFC 3463, section 2; no part of a network address. */
const ENHANCED_STATUS = /(?<![\d.])[245]\.\d{1,3}\.\d{1,3}\b(?!\.)/;
/** A reply that is final (RFC 5321, section 4.2.1), behind the name of the server that gave it. White space is read only before a code. */
const REFUSAL = /(?=5[0-5]\d(?:[ -]|: )\S)(?<=(?:^|[:>]|<<<)\s*).*/;
/** What qmail and Exim say of a mail that they return, whatever its last reply was. */
const GIVEN_UP = /\bthis is a permanent error\b/i;
/** The line of a recipient; the next one says what became of the mail. */
const RECIPIENT = /^\s*<?[^\s@<>]+@[^\s@<>:]+>?:?\s*$/;

function diagnosis(fields: Map<string, string>): Pick<MailReport, "reason" | "smtpCode" | "enhancedStatus"> {
  const words = (fields.get("diagnostic-code") ?? "").replace(/^[\w-]+\s*;\s*/, "");
  const [, code] = /^(\d{3})[ :-]/.exec(words) ?? [];
  const [given] = ENHANCED_STATUS.exec(fields.get("status") ?? "") ?? [];
  const [said] = ENHANCED_STATUS.exec(words) ?? [];
  // Many servers give the undefined status x.0.0 or none, and quote the code that they got from the next one.
  const enhancedStatus = given === undefined || given.endsWith(".0.0") ? (said ?? given) : given;
  return { reason: words || enhancedStatus, smtpCode: code === undefined ? undefined : Number(code), enhancedStatus };
}

/** Types of feedback that no recipient's objection causes: one withdrawn, and a failed authentication on the way (RFC 6591). */
const NO_COMPLAINTS = ["", "not-spam", "auth-failure"];

/** A recipient's complaint (RFC 5965). */
function complaints(mail: Email): MailReport[] {
  return partsOf(mail, "message/feedback-report").flatMap((part): MailReport[] => {
    const kind = firstWord(fieldsOf(part).get("feedback-type"));
    if (NO_COMPLAINTS.includes(kind)) return [];
    return [{ type: kind.startsWith("opt-out") ? "UNSUBSCRIBED" : "COMPLAINED", reason: kind }];
  });
}

function partsOf({ attachments }: Email, ...types: string[]): string[] {
  return attachments.filter(({ mimeType }) => types.includes(mimeType)).map(({ content }) => textOf(content));
}

function textOf(content: ArrayBuffer | Uint8Array | string): string {
  const text = typeof content === "string" ? content : Buffer.from(content as Uint8Array).toString("utf8");
  return text.replace(/\r\n/g, "\n");
}

/** Unfolded fields of a block, by lower-case name, which white space may follow (RFC 5322, section 4.5). */
function fieldsOf(block: string): Map<string, string> {
  const lines = block.replace(/\n[ \t]+/g, " ").split("\n");
  const pairs = lines.flatMap((line) => [...line.matchAll(/^([\w-]+)[ \t]*:\s*(.*)$/g)]);
  return new Map(pairs.map(([, name = "", value = ""]) => [name.toLowerCase(), value.trim()]));
}

/** The keyword of a field in lower case, without the comment that may follow it (RFC 5322, section 3.2.2). */
function firstWord(field = ""): string {
  return field.toLowerCase().split(/[\s(;]/, 1)[0] as string;
}
