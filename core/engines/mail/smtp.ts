import type { Buffer } from "node:buffer";
import type { Readable } from "node:stream";
import { createTransport, type SendMailOptions } from "nodemailer";
import type { Envelope, Mailer } from "../../platform/runtime.ts";

/**
 * How far a sending got: `connect` until the login is done, which says something of the server and nothing of the mail; then the
 * commands; `content` once bytes of the mail have left, when the outcome of a broken connection is not known.
 */
export type SmtpPhase = "connect" | "mail" | "recipient" | "data" | "content";

/** A refusal or a broken conversation. */
export class SmtpFailure extends Error {
  override readonly name = "SmtpFailure";
  readonly phase: SmtpPhase;
  /** The reply's code, absent where the connection broke. */
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

/** What SMTP_URL may set by query, with the names that nodemailer uses for the same; times in ms. */
export interface SmtpSettings {
  host: string;
  port: number;
  secure: boolean;
  auth: { user: string; pass: string } | undefined;
  maxConnections: number;
  maxMessages: number;
  connectionTimeout: number;
  greetingTimeout: number;
  socketTimeout: number;
  /** Messages that all processes together may send in `rateDelta` ms; 0 for no limit. */
  rateLimit: number;
  rateDelta: number;
  requireTLS: boolean;
  ignoreTLS: boolean;
  rejectUnauthorized: boolean;
  /** The name of EHLO. */
  name: string | undefined;
}

/** Reads SMTP_URL: server, login, and what its query sets. */
export function smtpSettings(url: string): SmtpSettings {
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

/** A mail under way. `mail` is there from the login on; the connection reads it only after the server's 354. */
interface Sending extends SendMailOptions {
  progress: { mail?: Readable };
}

/** Connections to the mail server, kept open between mails by nodemailer's pool. How many mails come at a time is its user's matter. */
export class SmtpPool implements Mailer {
  readonly settings: SmtpSettings;
  readonly #transport: ReturnType<typeof poolOf>;

  constructor(url: string) {
    this.settings = smtpSettings(url);
    this.#transport = poolOf(this.settings);
    // Errors of nodemailer don't say how far a broken conversation got; whether it read the mail does.
    this.#transport.use("stream", ({ data, message }, done) => {
      const { progress } = data as Sending;
      message.processFunc((stream) => {
        progress.mail = stream as Readable;
        return stream;
      });
      done();
    });
  }

  /** Sends a mail to one recipient; resolves with the server's words once it has taken it. Throws SmtpFailure. */
  async send({ from, to }: Envelope, content: Buffer): Promise<string> {
    const sending: Sending = { raw: content, envelope: { from, to, size: content.length }, progress: {} };
    try {
      return (await this.#transport.sendMail(sending)).response;
    } catch (error) {
      throw new SmtpFailure(phaseOf(error as { command?: string }, sending.progress.mail), error as Error);
    }
  }

  /** Opens a connection and logs in, to see whether the server can be reached. */
  async probe(): Promise<void> {
    try {
      await this.#transport.verify();
    } catch (error) {
      throw new SmtpFailure("connect", error as Error);
    }
  }

  /** Closes all connections, those in use too. */
  close(): void {
    this.#transport.close({ force: true });
  }
}

/** The rate limit is the dispatcher's, which knows of the other processes. A connection that the server left unused is replaced once. */
function poolOf({ rejectUnauthorized, rateLimit: _limit, rateDelta: _delta, ...settings }: SmtpSettings) {
  const own = { pool: true as const, maxRequeues: 1, idleTimeout: 30_000, socketCloseTimeout: 1000 };
  return createTransport({ ...settings, ...own, tls: { rejectUnauthorized } });
}

function phaseOf({ command = "" }: { command?: string }, mail: Readable | undefined): SmtpPhase {
  if (mail === undefined) return "connect";
  if (mail.readableDidRead) return "content";
  return command === "MAIL FROM" ? "mail" : command === "RCPT TO" ? "recipient" : "data";
}
