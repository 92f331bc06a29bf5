import type { Buffer } from "node:buffer";
import { Readable } from "node:stream";
import type MailMessage from "nodemailer/lib/mailer/mail-message";
import { parseConnectionUrl } from "nodemailer/lib/shared";
import SMTPPool, { type SMTPPoolSentMessageInfo } from "nodemailer/lib/smtp-pool";
import type { Envelope, Mailer } from "../../platform/runtime.ts";

/**
 * How far a send got: `connect` until the login is done, which blames the server and not the mail; then the commands; `content` once bytes
 * of the mail have left, so that the outcome of a broken connection is unknown.
 */
export type SmtpPhase = "connect" | "mail" | "recipient" | "data" | "content";

/** A refusal or a broken connection. */
export class SmtpFailure extends Error {
  override readonly name = "SmtpFailure";
  readonly phase: SmtpPhase;
  /** The reply code; absent if the connection broke. */
  readonly code: number | undefined;
  /** The reply's enhanced status code (RFC 3463). */
  readonly enhanced: string | undefined;

  constructor(phase: SmtpPhase, cause: Error) {
    const { response, responseCode } = cause as { response?: string; responseCode?: number };
    super(response ?? cause.message, { cause });
    this.phase = phase;
    this.code = responseCode || (/larger than allowed/.test(cause.message) ? 552 : undefined);
    this.enhanced = /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})\b/.exec(response ?? "")?.[1];
  }
}

/** Options that SMTP_URL may change by query parameters with nodemailer's names; times in ms. */
const defaults = {
  host: "localhost",
  maxConnections: 10,
  maxMessages: 100,
  connectionTimeout: 15_000,
  greetingTimeout: 30_000,
  socketTimeout: 60_000,
  socketCloseTimeout: 1000,
  idleTimeout: 30_000,
  // A connection that the server closed while idle is replaced once.
  maxRequeues: 1,
  rateLimit: 0,
  rateDelta: 1000,
};

/** Connections to the mail server, which nodemailer's pool keeps open between mails. The caller limits the concurrency. */
export class SmtpPool implements Mailer {
  readonly settings: Mailer["settings"];
  readonly #pool: SMTPPool;

  constructor(url: string) {
    const options = Object.assign({}, defaults, parseConnectionUrl(url));
    this.settings = options;
    // The dispatcher applies the rate limit, since it covers all processes.
    this.#pool = new SMTPPool({ ...options, rateLimit: 0 });
  }

  /** Sends a mail to one recipient; resolves once the server has accepted it. Throws SmtpFailure. */
  send({ from, to }: Envelope, content: Buffer): Promise<void> {
    const envelope = { from, to: [to], size: content.length };
    // Set once a connection has logged in, and read only after the server's 354: nodemailer's errors don't tell the phase.
    let stream: Readable | undefined;
    // The interface that the pool needs; nodemailer's own message would copy the bytes through three streams.
    const message = {
      getEnvelope: () => envelope,
      getHeader: () => "",
      messageId: () => "",
      createReadStream() {
        stream = Readable.from([content], { objectMode: false });
        return stream;
      },
    };
    return new Promise((resolve, reject) => {
      this.#pool.send({ data: {}, message } as unknown as MailMessage<SMTPPoolSentMessageInfo>, (error) =>
        error ? reject(new SmtpFailure(phaseOf(error, stream), error)) : resolve(),
      );
    });
  }

  /** Connects and logs in, to check that the server works. */
  async probe(): Promise<void> {
    try {
      await this.#pool.verify();
    } catch (error) {
      throw new SmtpFailure("connect", error as Error);
    }
  }

  /** Closes all connections, including those in use. */
  close(): void {
    this.#pool.close({ force: true });
  }
}

function phaseOf({ command }: { command?: string | undefined }, stream: Readable | undefined): SmtpPhase {
  if (stream === undefined) return "connect";
  if (stream.readableDidRead) return "content";
  return command === "MAIL FROM" ? "mail" : command === "RCPT TO" ? "recipient" : "data";
}
