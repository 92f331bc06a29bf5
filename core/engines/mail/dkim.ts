import { Buffer } from "node:buffer";
import { createHash, type KeyObject, sign } from "node:crypto";
import { promisify } from "node:util";
import { foldLines } from "nodemailer/lib/mime-funcs";

/** What signs the mail of a domain (RFC 6376): the names of its public key and the private one. */
export interface DkimKey {
  domain: string;
  selector: string;
  key: KeyObject;
}

/** Fields under the signature, where a mail has them. Both fields of a one-click unsubscription must be (RFC 8058, 4). */
const signedFields = [
  ...["from", "to", "reply-to", "subject", "message-id", "date", "mime-version", "content-type"],
  ...["content-transfer-encoding", "list-unsubscribe", "list-unsubscribe-post", "auto-submitted"],
];

/**
 * A mail as bytes with its DKIM signature in front (RFC 6376, rsa-sha256, relaxed/relaxed). Throws rather than leave it unsigned.
 * The signer of nodemailer can't replace this: it names From once, so that a second From could be added on the way (RFC 6376, 5.4.2),
 * sends unsigned if the key fails, and signs on the process's one thread.
 */
export async function signMime(mime: Buffer, dkim: DkimKey): Promise<Buffer> {
  if (dkim.key.asymmetricKeyType !== "rsa") throw new Error("The DKIM key is not an RSA key.");
  const text = mime.toString("latin1");
  const end = text.indexOf("\r\n\r\n");
  const fields = fieldsOf(text.slice(0, end));
  const names = signedFields.filter((name) => fields.has(name));
  const unsigned = foldLines(
    [
      `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=${dkim.domain};`,
      `s=${dkim.selector}; t=${Math.floor(Date.now() / 1000)}; h=${[...names, "from"].join(": ")};`,
      `bh=${createHash("sha256")
        .update(relaxedBody(text.slice(end + 4)), "latin1")
        .digest("base64")}; b=`,
    ].join(" "),
    76,
  );
  const lines = names.map((name) => `${name}:${fields.get(name)}\r\n`).join("");
  const signed = `${lines}dkim-signature:${relaxed(unsigned.slice("DKIM-Signature:".length))}`;
  const signature = (await signInPool("sha256", Buffer.from(signed, "latin1"), dkim.key)).toString("base64");
  return Buffer.concat([Buffer.from(`${unsigned}\r\n ${signature.replace(/.{70}(?=.)/g, "$&\r\n ")}\r\n`), mime]);
}

/** The callback form signs in the thread pool. */
const signInPool = promisify(sign);

/** The header fields by their names in lower case, their values in relaxed form. */
function fieldsOf(head: string): Map<string, string> {
  const lines = head.split(/\r\n(?![ \t])/);
  return new Map(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), relaxed(line.slice(line.indexOf(":") + 1))]),
  );
}

/** A value in relaxed canonical form (RFC 6376, 3.4.2): unfolded, white space runs as one space, none at the ends. */
function relaxed(value: string): string {
  return value
    .replace(/\r\n/g, "")
    .replace(/[ \t]+/g, " ")
    .trim();
}

/** A body in relaxed canonical form (RFC 6376, 3.4.4): white space runs as one space, none at line ends, no empty lines at the end. */
function relaxedBody(body: string): string {
  const even = body.replace(/[ \t]+/g, " ").replace(/ \r\n/g, "\r\n");
  let end = even.length;
  while (even.endsWith("\r\n", end) && end > 0) end -= 2;
  return end === 0 ? "" : `${even.slice(0, end)}\r\n`;
}
