import { Buffer } from "node:buffer";
import { createHash, type KeyObject, sign } from "node:crypto";
import { promisify } from "node:util";
import { foldLines } from "nodemailer/lib/mime-funcs";
import type { Mime } from "./mime.ts";

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
export async function signMime(mime: Mime, dkim: DkimKey): Promise<Buffer> {
  if (dkim.key.asymmetricKeyType !== "rsa") throw new Error("The DKIM key is not an RSA key.");
  const fields = new Map(mime.headers.map(([name, value]) => [name.toLowerCase(), value]));
  const names = signedFields.filter((name) => fields.has(name));
  const unsigned = foldLines(
    [
      `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=${dkim.domain};`,
      `s=${dkim.selector}; t=${Math.floor(Date.now() / 1000)}; h=${[...names, "from"].join(": ")};`,
      `bh=${createHash("sha256").update(relaxedBody(mime.body)).digest("base64")}; b=`,
    ].join(" "),
    76,
  );
  const lines = names.map((name) => `${name}:${relaxed(fields.get(name) as string)}\r\n`).join("");
  const signature = await asyncSign(
    "sha256",
    Buffer.from(`${lines}dkim-signature:${relaxed(unsigned.slice("DKIM-Signature:".length))}`),
    dkim.key,
  );
  const value = signature.toString("base64").replace(/.{70}(?=.)/g, "$&\r\n ");
  const headers = mime.headers.map(([name, text]) => `${name}: ${text}\r\n`).join("");
  return Buffer.from(`${unsigned}\r\n ${value}\r\n${headers}\r\n${mime.body}`, "latin1");
}

// The callback form signs in the thread pool: that is half of a mail's CPU time.
const asyncSign = promisify(sign);

/** The relaxed canonical form of a header value (RFC 6376, section 3.4.2): unfolded, white space collapsed, trimmed. */
function relaxed(value: string): string {
  return value
    .replace(/\r\n/g, "")
    .replace(/[ \t]+/g, " ")
    .trim();
}

/** The relaxed canonical form of a body (RFC 6376, section 3.4.4): white space collapsed, none at line ends, no empty lines at the end. */
function relaxedBody(body: string): string {
  const even = body.replace(/[ \t]+/g, " ").replace(/ \r\n/g, "\r\n");
  let end = even.length;
  while (even.endsWith("\r\n", end) && end > 0) end -= 2;
  return end === 0 ? "" : `${even.slice(0, end)}\r\n`;
}
