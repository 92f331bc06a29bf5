import { Buffer } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";

/** A server's response with its complete body. */
export interface ServerAnswer {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}

/** Receives the body of a response as it arrives. An error that `write` throws ends the exchange and becomes its failure. */
export interface Sink {
  write(part: Buffer): void;
}

/** Limits of an exchange. */
export interface Limits {
  /** Ms for the whole exchange: connection, request, response and body. */
  timeoutMs: number;
  /** Ms within which a response must begin, and within which it must then deliver each further `MIN_PROGRESS_BYTES` bytes. */
  idleTimeoutMs?: number | undefined;
  /** Largest body of the response, in bytes. */
  limit: number;
  /** Beyond the limit the exchange fails, or the rest is dropped with its connection. */
  beyond: "fail" | "drop";
  /** The sink for a response with this status; undefined discards the body. Without this function the body is collected. */
  into?: ((status: number) => Sink | undefined) | undefined;
}

/** A response that was abandoned: it exceeded a limit, took too long, or came in an unrequested encoding. */
export class AnswerRefused extends Error {
  override readonly name = "AnswerRefused";
  readonly reason: "limit" | "timeout" | "encoding";

  constructor(reason: AnswerRefused["reason"], message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Bytes that a response must deliver per `idleTimeoutMs`; a slower one counts as silent. */
const MIN_PROGRESS_BYTES = 4096;
/** Most chunks of a response: each costs more than its bytes. */
const MAX_PARTS = 100_000;
/** Bytes that all unfinished responses of a process may buffer, and the share that each may always buffer. */
const MAX_BUFFERED_BYTES = 256 * 1_048_576;
const ALWAYS_ALLOWED_BYTES = 1_048_576;
let held = 0;

/** Sends one request and reads its response within the time limit, even if the connection hangs or the response trickles. */
export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  limits: Limits,
): Promise<ServerAnswer> {
  return new Promise((resolve, reject) => {
    dispatcher.dispatch(request, new Exchange(limits, { resolve, reject }));
  });
}

interface Outcome {
  resolve: (answer: ServerAnswer) => void;
  reject: (error: Error) => void;
}

/**
 * Reads a response as it arrives, without a stream and without back pressure, since undici 7 would end the process if a server hung up
 * during it (nodejs/undici#5360).
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #limits: Limits;
  readonly #outcome: Outcome;
  readonly #deadline: NodeJS.Timeout;
  readonly #idle: NodeJS.Timeout | undefined;
  /** The body, if it is collected. */
  readonly #parts: Buffer[] = [];
  #sink: Sink | undefined = { write: (part) => void this.#parts.push(part) };
  #size = 0;
  #count = 0;
  /** Bytes received when the idle timer was last reset. */
  #heard = 0;
  #isOver = false;
  #status = 0;
  #headers: Record<string, string> = {};
  #controller: Dispatcher.DispatchController | undefined;
  #fault: Error | undefined;

  constructor(limits: Limits, outcome: Outcome) {
    this.#limits = limits;
    this.#outcome = outcome;
    const late = (): void => this.#stop(new AnswerRefused("timeout", "No answer in time."));
    this.#deadline = setTimeout(late, limits.timeoutMs);
    this.#idle = limits.idleTimeoutMs === undefined ? undefined : setTimeout(late, limits.idleTimeoutMs);
  }

  /** A request whose time has run out before the connection is made is never sent. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#fault) controller.abort(this.#fault);
  }

  /** Called once for each informational response (RFC 9110, section 15.2), which is ignored. */
  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    this.#idle?.refresh();
    // Only an unencoded body is accepted: a compressed one could grow beyond every limit when it is decoded.
    const { "content-encoding": encoding = "identity" } = this.#headers;
    if (this.#limits.beyond === "fail" && encoding.toLowerCase() !== "identity")
      this.#stop(new AnswerRefused("encoding", `The answer is compressed (${encoding}), which was not asked for.`));
    else if (this.#limits.into) this.#sink = this.#limits.into(status);
    if (this.#sink === undefined) this.#leave();
  }

  onResponseData(_controller: Dispatcher.DispatchController, part: Buffer): void {
    if (this.#isOver) return;
    this.#size += part.length;
    held += part.length;
    if (this.#size - this.#heard >= MIN_PROGRESS_BYTES) {
      this.#heard = this.#size;
      this.#idle?.refresh();
    }
    try {
      this.#checkSize();
      this.#sink?.write(part);
    } catch (error) {
      this.#stop(error as Error);
    }
    if (this.#size > this.#limits.limit) this.#leave();
  }

  onResponseEnd(): void {
    this.#end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error);
  }

  #checkSize(): void {
    const { limit, beyond } = this.#limits;
    if (this.#size > limit && beyond === "fail")
      throw new AnswerRefused("limit", `The answer is larger than ${limit} bytes.`);
    if (++this.#count > MAX_PARTS)
      throw new AnswerRefused("limit", `The answer comes in more than ${MAX_PARTS} parts.`);
    if (held > MAX_BUFFERED_BYTES && this.#size > ALWAYS_ALLOWED_BYTES)
      throw new AnswerRefused("limit", "Too many large answers come at once.");
  }

  #end(): void {
    if (!this.#settle()) return;
    const body = Buffer.concat(this.#parts).subarray(0, this.#limits.limit);
    this.#outcome.resolve({ status: this.#status, headers: this.#headers, body });
  }

  /** Resolves with the response so far and drops the connection with the rest of the body. */
  #leave(): void {
    this.#end();
    this.#controller?.abort(new Error("The rest of the answer is not wanted."));
  }

  /** Fails the exchange and closes its connection. */
  #stop(fault: Error): void {
    this.#fault = fault;
    this.#fail(fault);
    this.#controller?.abort(fault);
  }

  #fail(fault: Error): void {
    if (this.#settle()) this.#outcome.reject(fault);
  }

  /** False if the exchange had already ended. */
  #settle(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    held -= this.#size;
    clearTimeout(this.#deadline);
    clearTimeout(this.#idle);
    return true;
  }
}
