import type { Buffer } from "node:buffer";
import { Readable } from "node:stream";
import type MailMessage from "nodemailer/lib/mailer/mail-message";
import { parseConnectionUrl } from "nodemailer/lib/shared";
import SMTPPool, { type SMTPPoolSentMessageInfo } from "nodemailer/lib/smtp-pool";
import type { Purpose } from "../../../schemas/email.ts";
import { clip } from "../../platform/characters.ts";
import { minute, second } from "../../platform/clock.ts";
import { connectionFailure } from "../../platform/exchange.ts";
import { unlessAborted } from "../../platform/signals.ts";

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
    super(response ?? connectionFailure(cause).message, { cause });
    this.phase = phase;
    this.code = responseCode || (/larger than allowed/.test(cause.message) ? 552 : undefined);
    this.enhanced = /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})\b/.exec(response ?? "")?.[1];
  }
}

/**
 * Options that SMTP_URL may change by query parameters with nodemailer's names; times in ms. `sendTimeout` is ours: the time for the content
 * and its reply, since a server that trickles its replies is never silent. A server that has the whole content may be delivering it, so both
 * are at least the ten minutes of RFC 5321, section 4.5.3.2.6: the mail would be sent twice.
 */
const defaults = {
  host: "localhost",
  maxConnections: 10,
  maxMessages: 100,
  connectionTimeout: 15_000,
  greetingTimeout: 30_000,
  socketTimeout: 600_000,
  socketCloseTimeout: 1000,
  idleTimeout: 30_000,
  sendTimeout: 600_000,
  // A connection that the server closed while idle is replaced once.
  maxRequeues: 1,
  // Mails that all processes together may send per `rateDelta` ms; 0 for no limit.
  rateLimit: 0,
  rateDelta: 1000,
};

/** Ms for connecting and all commands, until the server takes the content. */
const COMMANDS_TIMEOUT_MS = 180_000;

/** Connections to the mail server, which nodemailer's pool keeps open between mails. The caller limits the concurrency. */
export class SmtpPool {
  readonly settings: typeof defaults;
  readonly #pool: SMTPPool;

  constructor(url: string, more: Partial<typeof defaults> = {}) {
    this.settings = Object.assign({}, defaults, parseConnectionUrl(url), more);
    // The dispatcher applies the rate limit, since it covers all processes.
    this.#pool = new SMTPPool({ ...this.settings, rateLimit: 0 });
  }

  /** Sends a mail to one recipient by its envelope; resolves once the server has accepted it. Throws SmtpFailure. */
  send({ from, to }: { from: string; to: string }, content: Buffer): Promise<void> {
    const envelope = { from, to: [to], size: content.length };
    // Set once a connection has logged in, and read only after the server's 354: nodemailer's errors don't tell the phase.
    let stream: Readable | undefined;
    return this.#inTime((signal, beginContent) => {
      // The interface that the pool needs; nodemailer's own message would copy the bytes through three streams.
      const message = {
        getEnvelope: () => envelope,
        getHeader: () => "",
        messageId: () => "",
        createReadStream() {
          stream = contentStream(content, beginContent);
          return stream;
        },
      };
      return new Promise<void>((resolve, reject) => {
        const mail = { data: { signal }, message } as unknown as MailMessage<SMTPPoolSentMessageInfo>;
        this.#pool.send(mail, (error) =>
          error ? reject(new SmtpFailure(phaseOf(error, stream), signal.reason ?? error)) : resolve(),
        );
      });
    });
  }

  /** Connects and logs in, to check that the server works. */
  async probe(): Promise<void> {
    try {
      await this.#inTime(() => this.#pool.verify());
    } catch (error) {
      throw new SmtpFailure("connect", error as Error);
    }
  }

  /** Closes all connections, including those in use. */
  close(): void {
    this.#pool.close({ force: true });
  }

  /** Waits for commands and then for the content, each for its time. The signal comes first, so that the work's own failure counts. */
  async #inTime<T>(work: (signal: AbortSignal, beginContent: () => void) => Promise<T>): Promise<T> {
    const { sendTimeout } = this.settings;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const allow = (ms: number): void => {
      clearTimeout(timer);
      timer = setTimeout(() => stop.abort(new Error("The server took too long.")), ms);
    };
    allow(Math.min(COMMANDS_TIMEOUT_MS, sendTimeout));
    const working = work(stop.signal, () => allow(sendTimeout));
    return unlessAborted(working, stop.signal).finally(() => clearTimeout(timer));
  }
}

function contentStream(content: Buffer, begin: () => void): Readable {
  return new Readable({
    read() {
      begin();
      this.push(content);
      this.push(null);
    },
  });
}

function phaseOf({ command }: { command?: string | undefined }, stream: Readable | undefined): SmtpPhase {
  if (stream === undefined) return "connect";
  if (stream.readableDidRead) return "content";
  return command === "MAIL FROM" ? "mail" : command === "RCPT TO" ? "recipient" : "data";
}

/** Enhanced status codes (RFC 3463) of addresses that don't exist or accept no mail; they are suppressed. */
const HARD_BOUNCE_CODES = ["5.1.1", "5.1.10", "5.2.1"];

/** True for a code that blames the address, and not the message, the sender or a temporary state. */
export function isHardBounce(enhancedStatus: string | undefined): boolean {
  return enhancedStatus !== undefined && HARD_BOUNCE_CODES.includes(enhancedStatus);
}

/** What follows from a failed attempt. */
export type SmtpFailureClass =
  /** The server may be unusable for everybody: sending pauses until it works again. Without `wait` the attempt doesn't count. */
  | { kind: "provider"; reason: string; code?: number | undefined; wait?: number }
  /** Retried after `wait` domain ms. */
  | { kind: "deferred"; reason: string; code: number | undefined; wait: number }
  /** Never retried; `hard` suppresses the address. */
  | { kind: "failed"; reason: string; code: number | undefined; hard: boolean };

/** An attempt: its number from 1, the kind of mail, and domain ms since its acceptance. */
export interface DeliveryProgress {
  attempt: number;
  purpose: Purpose;
  age: number;
}

/** Waits before the second and later attempts, the last one for all others; a code is useful for minutes only. */
const RETRY_WAITS: Record<"code" | "mail", { steps: number[]; life: number }> = {
  code: { steps: [5 * second, 10 * second, 20 * second, 40 * second, 80 * second], life: 10 * minute },
  mail: { steps: [15 * second, minute, 5 * minute, 15 * minute, 30 * minute, 60 * minute], life: 24 * 60 * minute },
};
/** Each wait varies by up to a fifth, so that simultaneous failures spread out. */
const JITTER = 0.2;

/** Replies that blame the login or the encryption (RFC 4954, RFC 3207). */
const loginCodes = [454, 530, 534, 535, 538];

const refusals: Record<SmtpPhase, string> = {
  connect: "server_unavailable",
  mail: "sender_refused",
  recipient: "recipient_refused",
  data: "content_refused",
  content: "content_refused",
};

/**
 * Classifies a failure by phase and code. A refusal (5xx) is final; everything else is retried for at most 24 hours, a code for ten minutes.
 * While the server itself can't be used, mails wait, however long that is. A connection that broke after the content was sent is retried
 * too: the mail may arrive twice, with the same Message-ID, but is never lost. A login code is the server's failure until a recipient is
 * named; after that it may be about that recipient alone (Postfix defers relaying with 454). At MAIL FROM it may be about the sender alone,
 * so it counts as an attempt.
 */
export function classifySmtpFailure(failure: SmtpFailure, progress: DeliveryProgress): SmtpFailureClass {
  const { phase, code, enhanced } = failure;
  const blamesLogin = code !== undefined && loginCodes.includes(code);
  if (phase === "connect") return { kind: "provider", reason: reasonOf(failure, refusals.connect) };
  if (phase === "mail" && blamesLogin) {
    const later = deferredOrFailed(reasonOf(failure, refusals.connect), code, progress);
    return later.kind === "deferred" ? { ...later, kind: "provider" } : later;
  }
  if (code !== undefined && code >= 500 && !blamesLogin) {
    return { kind: "failed", reason: reasonOf(failure, refusals[phase]), code, hard: isHardBounce(enhanced) };
  }
  const name = code !== undefined ? "deferred_by_server" : phase === "content" ? "outcome_unknown" : "connection_lost";
  return deferredOrFailed(reasonOf(failure, name), code, progress);
}

/** Deferred by the wait of this attempt, or failed if the mail would be too old by then. */
function deferredOrFailed(
  reason: string,
  code: number | undefined,
  { attempt, purpose, age }: DeliveryProgress,
): SmtpFailureClass {
  const { steps, life } = RETRY_WAITS[purpose === "LEAD_VERIFICATION" ? "code" : "mail"];
  const step = steps[Math.min(attempt, steps.length) - 1] ?? minute;
  const wait = Math.round(step * (1 - JITTER + 2 * JITTER * Math.random()));
  return age + wait > life
    ? { kind: "failed", reason: `given_up: ${reason}`, code, hard: false }
    : { kind: "deferred", reason, code, wait };
}

/** The reason by its name and the server's reply, on one line. */
function reasonOf({ message }: SmtpFailure, name: string): string {
  return `${name}: ${clip(message.replace(/\s+/g, " "), 300)}`;
}

/** Real ms to pause after the first failure, and at most; each failure doubles the pause. */
const MIN_PAUSE_MS = 500;
const MAX_PAUSE_MS = 60_000;

/**
 * A circuit breaker for a mail server: after a failure nothing is sent until a pause is over and one probe has succeeded, so that an outage
 * costs no message an attempt.
 */
export class Breaker {
  #failures = 0;
  #until = 0;

  /** Real ms until the server may be probed; 0 if it may be probed now. */
  get wait(): number {
    return Math.max(0, this.#until - Date.now());
  }

  /** True if a probe must succeed before anything is sent. */
  get open(): boolean {
    return this.#failures > 0;
  }

  failed(): void {
    // Sends that were running when the server failed report the same failure.
    if (this.wait > 0) return;
    const wait = Math.min(MAX_PAUSE_MS, MIN_PAUSE_MS * 2 ** this.#failures);
    this.#failures++;
    this.#until = Date.now() + wait * (0.8 + 0.4 * Math.random());
  }

  succeeded(): void {
    this.#failures = 0;
    this.#until = 0;
  }
}
