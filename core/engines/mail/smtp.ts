import type { Buffer } from "node:buffer";
import { Readable } from "node:stream";
import type MailMessage from "nodemailer/lib/mailer/mail-message";
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

/** Query parameters of SMTP_URL, with the names that nodemailer uses; times in ms. */
interface SmtpSettings {
  host: string;
  port: number;
  secure: boolean;
  auth: { user: string; pass: string } | undefined;
  maxConnections: number;
  maxMessages: number;
  connectionTimeout: number;
  greetingTimeout: number;
  socketTimeout: number;
  /** Messages that all processes together may send per `rateDelta` ms; 0 for no limit. */
  rateLimit: number;
  rateDelta: number;
  requireTLS: boolean;
  ignoreTLS: boolean;
  rejectUnauthorized: boolean;
  /** The EHLO name. */
  name: string | undefined;
}

/** Parses SMTP_URL: server, login, and query parameters. */
function smtpSettings(url: string): SmtpSettings {
  const { protocol, hostname, port, username, password, searchParams } = new URL(url);
  const secure = protocol === "smtps:";
  const number = (name: string, fallback: number) => Number(searchParams.get(name) ?? fallback) || fallback;
  const flag = (name: string, fallback: boolean) =>
    searchParams.has(name) ? /^(1|true|yes)$/i.test(searchParams.get(name) ?? "") : fallback;
  return {
    host: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port) || (secure ? 465 : 587),
    secure,
    auth: username === "" ? undefined : { user: decodeURIComponent(username), pass: decodeURIComponent(password) },
    maxConnections: number("maxConnections", 10),
    maxMessages: number("maxMessages", 100),
    connectionTimeout: number("connectionTimeout", 15_000),
    greetingTimeout: number("greetingTimeout", 30_000),
    socketTimeout: number("socketTimeout", 60_000),
    rateLimit: number("rateLimit", 0),
    rateDelta: number("rateDelta", 1000),
    requireTLS: flag("requireTLS", false),
    ignoreTLS: flag("ignoreTLS", false),
    rejectUnauthorized: flag("tls.rejectUnauthorized", true),
    name: searchParams.get("name") ?? undefined,
  };
}

/** Connections to the mail server, which nodemailer's pool keeps open between mails. The caller limits the concurrency. */
export class SmtpPool implements Mailer {
  readonly settings: SmtpSettings;
  readonly #pool: SMTPPool;

  constructor(url: string) {
    this.settings = smtpSettings(url);
    this.#pool = poolOf(this.settings);
  }

  /** Sends a mail to one recipient; resolves with the server's reply once it has accepted the mail. Throws SmtpFailure. */
  send({ from, to }: Envelope, content: Buffer): Promise<string> {
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
      this.#pool.send({ data: {}, message } as unknown as MailMessage<SMTPPoolSentMessageInfo>, (error, info) =>
        error ? reject(new SmtpFailure(phaseOf(error, stream), error)) : resolve(info?.response ?? ""),
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

/**
 * The dispatcher applies the rate limit, since it covers all processes. A connection that the server closed while idle is replaced once.
 */
function poolOf({ rejectUnauthorized, rateLimit: _limit, rateDelta: _delta, ...settings }: SmtpSettings): SMTPPool {
  const own = { maxRequeues: 1, idleTimeout: 30_000, socketCloseTimeout: 1000 };
  return new SMTPPool({ ...settings, ...own, tls: { rejectUnauthorized } });
}

function phaseOf({ command }: { command?: string | undefined }, stream: Readable | undefined): SmtpPhase {
  if (stream === undefined) return "connect";
  if (stream.readableDidRead) return "content";
  return command === "MAIL FROM" ? "mail" : command === "RCPT TO" ? "recipient" : "data";
}
