import type { Buffer } from "node:buffer";
import { Readable } from "node:stream";
import type { Envelope, Mailer } from "../../platform/runtime.ts";
import SMTPConnection from "nodemailer/lib/smtp-connection";

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

/** Ms after which a connection without work is closed. */
const idleLasts = 30_000;

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

/** A logged-in connection and what it has done. */
interface Line {
  connection: SMTPConnection;
  sent: number;
  idleTimer?: NodeJS.Timeout;
}

/** Connections to the mail server, kept open between mails. How many there are at a time is its user's matter. */
export class SmtpPool implements Mailer {
  readonly settings: SmtpSettings;
  readonly #idle: Line[] = [];
  readonly #open = new Set<Line>();

  constructor(url: string) {
    this.settings = smtpSettings(url);
  }

  /** Sends a mail to one recipient; resolves with the server's words once it has taken it. Throws SmtpFailure. */
  async send(envelope: Envelope, content: Buffer): Promise<string> {
    const known = this.#idle.pop();
    if (known === undefined) return this.#sendOver(await this.#connect(), envelope, content);
    try {
      return await this.#sendOver(known, envelope, content);
    } catch (error) {
      // A server may close an idle connection at the moment at which it is used: that is no failure of this mail.
      if (
        !(error instanceof SmtpFailure) ||
        error.code !== undefined ||
        error.phase === "content" ||
        error.phase === "connect"
      )
        throw error;
      return this.#sendOver(await this.#connect(), envelope, content);
    }
  }

  /** Opens a connection and logs in, to see whether the server can be reached; it is kept for the next mail. */
  async probe(): Promise<void> {
    if (this.#idle.length === 0) this.#keep(await this.#connect());
  }

  /** Closes all connections. */
  close(): void {
    for (const line of this.#open) this.#drop(line);
  }

  async #connect(): Promise<Line> {
    const { auth, rejectUnauthorized, ...options } = this.settings;
    const connection = new SMTPConnection({ ...options, tls: { rejectUnauthorized }, socketCloseTimeout: 1000 });
    const line: Line = { connection, sent: 0 };
    this.#open.add(line);
    try {
      await answered((done) => {
        connection.once("error", done);
        connection.once("end", () => done(new Error("The server closed the connection.")));
        connection.connect((error) =>
          error || !auth || !connection.allowsAuth
            ? done(error ?? null)
            : connection.login(auth, (refused) => done(refused)),
        );
      });
    } catch (error) {
      this.#drop(line);
      throw new SmtpFailure("connect", error as Error);
    }
    connection.removeAllListeners("error");
    connection.on("error", () => this.#drop(line));
    connection.on("end", () => this.#drop(line));
    return line;
  }

  async #sendOver(line: Line, envelope: Envelope, content: Buffer): Promise<string> {
    clearTimeout(line.idleTimer);
    const stream = new Content(content);
    try {
      const reply = await answered<{ response: string }>((done) =>
        line.connection.send({ from: envelope.from, to: [envelope.to], size: content.length }, stream, (error, info) =>
          done(error, info),
        ),
      );
      line.sent++;
      this.#keep(line);
      return reply.response;
    } catch (error) {
      this.#afterFailure(line, error as Error);
      throw new SmtpFailure(phaseOf(error as { command?: string }, stream.started), error as Error);
    }
  }

  #keep(line: Line): void {
    if (!this.#open.has(line)) return;
    if (line.sent >= this.settings.maxMessages) {
      this.#quit(line);
      return;
    }
    line.idleTimer = setTimeout(() => this.#quit(line), idleLasts);
    line.idleTimer.unref();
    this.#idle.push(line);
  }

  /** A refused recipient leaves a usable session; RSET makes it a fresh one. */
  #afterFailure(line: Line, error: Error): void {
    const usable = Boolean((error as { responseCode?: number }).responseCode) && this.#open.has(line);
    if (usable) line.connection.reset((failed) => (failed ? this.#drop(line) : this.#keep(line)));
    else this.#drop(line);
  }

  #quit(line: Line): void {
    this.#forget(line);
    line.connection.quit();
  }

  #drop(line: Line): void {
    this.#forget(line);
    line.connection.close();
  }

  #forget(line: Line): void {
    clearTimeout(line.idleTimer);
    this.#open.delete(line);
    const at = this.#idle.indexOf(line);
    if (at !== -1) this.#idle.splice(at, 1);
  }
}

/** The content as a stream that knows whether it was asked for: the connection reads it only after the server's 354. */
class Content extends Readable {
  started = false;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    super();
    this.#bytes = bytes;
  }

  override _read(): void {
    this.started = true;
    this.push(this.#bytes);
    this.push(null);
  }
}

function phaseOf({ command = "" }: { command?: string }, started: boolean): SmtpPhase {
  if (started) return "content";
  return command === "MAIL FROM" ? "mail" : command === "RCPT TO" ? "recipient" : "data";
}

function answered<T = void>(start: (done: (error: Error | null | undefined, result?: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => start((error, result) => (error ? reject(error) : resolve(result as T))));
}
