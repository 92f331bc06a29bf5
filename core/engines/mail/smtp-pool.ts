import type { Buffer } from "node:buffer";
import { Readable } from "node:stream";
import { clearTimeout, setTimeout } from "node:timers";
import { setImmediate as nextTurn } from "node:timers/promises";
import { parseConnectionUrl } from "nodemailer/lib/shared";
import SMTPConnection, { type SMTPError } from "nodemailer/lib/smtp-connection";
import type { Envelope, Mailer } from "../../platform/runtime.ts";
import { SmtpFailure, type SmtpPhase } from "./smtp.ts";

/**
 * Options that SMTP_URL may change by query parameters with nodemailer's names; times in ms. `sendTimeout` is ours: the time for a whole mail
 * (RFC 5321, section 4.5.3.2.6), since a server that trickles its replies is never silent.
 */
const defaults = {
  host: "localhost",
  maxConnections: 10,
  maxMessages: 100,
  connectionTimeout: 15_000,
  greetingTimeout: 30_000,
  socketTimeout: 60_000,
  socketCloseTimeout: 1000,
  idleTimeout: 30_000,
  sendTimeout: 600_000,
  rateLimit: 0,
  rateDelta: 1000,
};

type SmtpOptions = typeof defaults & { auth?: { user: string; pass: string } | undefined; authMethod?: string };

/** Connections to the mail server that stay open between mails. The caller limits the concurrency. */
export class SmtpPool implements Mailer {
  readonly settings: Mailer["settings"];
  readonly #options: SmtpOptions;
  readonly #open = new Set<Session>();
  readonly #idle = new Map<Session, ReturnType<typeof setTimeout>>();
  #isClosed = false;

  constructor(url: string) {
    this.settings = this.#options = Object.assign({}, defaults, parseConnectionUrl(url));
  }

  /** Sends a mail to one recipient; resolves once the server has accepted it. Throws SmtpFailure. */
  async send(envelope: Envelope, content: Buffer): Promise<void> {
    const idle = this.#takeIdle();
    try {
      await this.#sendBy(idle ?? (await this.#connect()), envelope, content);
    } catch (error) {
      // Meanwhile the server may have closed an idle connection, or sent a reply that nothing asked for.
      const { phase, code = 421 } = error as SmtpFailure;
      if (!idle || phase === "content" || code !== 421 || this.#isClosed) throw error;
      await this.#sendBy(await this.#connect(), envelope, content);
    }
  }

  /** Connects and logs in, to check that the server works. */
  async probe(): Promise<void> {
    this.#release(await this.#connect());
  }

  /** Closes all connections, including those in use. */
  close(): void {
    this.#isClosed = true;
    for (const session of this.#open) session.close();
  }

  #takeIdle(): Session | undefined {
    const [session, timer] = [...this.#idle].at(-1) ?? [];
    clearTimeout(timer);
    if (session) this.#idle.delete(session);
    return session;
  }

  async #connect(): Promise<Session> {
    const session = new Session(this.#options, () => {
      this.#open.delete(session);
      this.#idle.delete(session);
    });
    this.#open.add(session);
    await session.logIn();
    return session;
  }

  async #sendBy(session: Session, envelope: Envelope, content: Buffer): Promise<void> {
    try {
      await session.send(envelope, content);
    } finally {
      this.#release(session);
    }
  }

  /** Keeps a usable connection for the next mail, for a while. */
  #release(session: Session): void {
    if (session.isBroken) return;
    const isSpent = session.mails >= this.#options.maxMessages;
    const leave = (): void => {
      this.#idle.delete(session);
      session.quit();
    };
    const timer = setTimeout(leave, isSpent ? 0 : this.#options.idleTimeout).unref();
    if (!isSpent) this.#idle.set(session, timer);
  }
}

/**
 * A connection to the mail server. nodemailer matches replies to commands by their order alone, so after a reply that no command asked for,
 * each command would get the reply to an earlier one. Such a connection is closed before it sends a content.
 */
class Session {
  readonly #options: SmtpOptions;
  readonly #connection: SMTPConnection;
  /** Ends the current step. */
  #fail: (cause: Error) => void = () => undefined;
  /** Mails that it was given. */
  mails = 0;

  constructor(options: SmtpOptions, ended: () => void) {
    this.#options = options;
    this.#connection = new SMTPConnection(options);
    this.#connection.on("error", (error) => this.#fail(error));
    this.#connection.once("end", () => {
      this.#fail(new Error("The connection was closed."));
      ended();
    });
  }

  get isBroken(): boolean {
    return this.#connection.destroyed;
  }

  /** Connects and logs in. */
  async logIn(): Promise<void> {
    const { auth, authMethod } = this.#options;
    try {
      await this.#step((done) => this.#connection.connect(done));
      if (auth && this.#connection.allowsAuth)
        await this.#step((done) => this.#connection.login({ ...auth, method: authMethod }, done));
      if (this.isBroken) throw new Error(OUT_OF_STEP);
    } catch (error) {
      this.close();
      throw new SmtpFailure("connect", error as Error);
    }
  }

  /** Sends a mail; resolves once the server has accepted it. After a refusal the connection is usable. */
  async send({ from, to }: Envelope, content: Buffer): Promise<void> {
    const stream = Readable.from(this.#contentOnceAsked(content), { objectMode: false });
    const envelope = { from, to: [to], size: content.length };
    this.mails++;
    try {
      await this.#step((done) => this.#connection.send(envelope, stream, done));
      if (!stream.readableEnded) throw new Error(OUT_OF_STEP);
    } catch (error) {
      const failure = new SmtpFailure(phaseOf(error as SMTPError, stream), error as Error);
      if (failure.code === undefined || stream.readableDidRead !== stream.readableEnded) this.close();
      else await this.#step((done) => this.#connection.reset(done)).catch(() => this.close());
      throw failure;
    }
  }

  quit(): void {
    this.#connection.quit();
  }

  close(cause?: Error): void {
    if (cause) this.#fail(cause);
    this.#connection.close();
  }

  /** The content, if the reply to DATA is what it must be (nodemailer takes 250, too) and no other reply came with it. */
  async *#contentOnceAsked(content: Buffer): AsyncGenerator<Buffer> {
    const reply = this.#connection.lastServerResponse;
    await nextTurn();
    if (!/^354/.test(String(reply)) || this.#connection.lastServerResponse !== reply) throw new Error(OUT_OF_STEP);
    yield content;
  }

  /** Takes a step of the conversation, which may take as long as a mail, and reads a further reply that came with its last one. */
  async #step(start: (done: (error?: Error | null) => void) => void): Promise<void> {
    const timer = setTimeout(() => this.close(new Error("The server took too long.")), this.#options.sendTimeout);
    await new Promise<void>((resolve, reject) => {
      this.#fail = reject;
      start((error) => (error ? reject(error) : resolve()));
    }).finally(() => clearTimeout(timer));
    await nextTurn();
  }
}

const OUT_OF_STEP = "The server's replies do not match the commands.";

function phaseOf({ command }: SMTPError, stream: Readable): SmtpPhase {
  if (stream.readableDidRead) return "content";
  return command === "MAIL FROM" ? "mail" : command === "RCPT TO" ? "recipient" : "data";
}
