import { Buffer } from "node:buffer";
import { Writable } from "node:stream";
import type { Dispatcher } from "undici";
import { day, second } from "./clock.ts";
import { unlessAborted } from "./signals.ts";

/** A server's response with its complete body. */
export interface ServerResponse {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}

/** Receives the body of a response as it arrives. An error that `write` throws ends the exchange and becomes its failure. */
export interface Sink {
  write(part: Buffer): void;
}

export interface Limits {
  /** Ms for the whole exchange: connection, request, response and body. */
  timeoutMs: number;
  /** Ms within which a response must begin, and within which it must then deliver each further `MIN_PROGRESS_BYTES` bytes. */
  idleTimeoutMs?: number | undefined;
  /** Largest body of the response, in bytes. */
  maxBytes: number;
  /**
   * Beyond the limit the exchange fails, or the rest is dropped with its connection. With `drop` the status counts: a body that breaks off
   * or doesn't end in time counts like a longer one.
   */
  beyond: "fail" | "drop";
  /** The sink for a response with this status; undefined discards the body. Without this function the body is collected. */
  into?: ((status: number) => Sink | undefined) | undefined;
}

/** A response that was abandoned: it exceeded a limit, took too long, or came in an unrequested encoding. */
export class ResponseRefused extends Error {
  override readonly name = "ResponseRefused";
  readonly reason: "limit" | "timeout" | "encoding";

  constructor(reason: ResponseRefused["reason"], message: string) {
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
let bufferedBytes = 0;

/** Ends an exchange that needs no more of the body. */
const ENOUGH = new Error("The rest of the response is not wanted.");

/** Sends one request and reads its response within the time limit, even if the connection hangs or the response trickles. */
export async function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.RequestOptions,
  limits: Limits,
): Promise<ServerResponse> {
  const stop = new AbortController();
  const reader = new ResponseReader(limits, () => stop.abort(new ResponseRefused("timeout", "No answer in time.")));
  try {
    const reading = dispatcher.stream({ ...request, signal: stop.signal }, (head) => reader.begin(head));
    // A request that is stopped before its connection is made is never sent, but undici reports it only then.
    await unlessAborted(reading, stop.signal);
  } catch (error) {
    if (error !== ENOUGH && !reader.isEnough) throw connectionFailure(error as Error);
  } finally {
    reader.settle();
  }
  return reader.response();
}

/** The failure behind that of a connection, with a message for people. */
export function connectionFailure(error: Error): Error {
  // The failures of a server's addresses come as one without a message: the last address was tried longest.
  const failure: Error = error instanceof AggregateError ? error.errors.at(-1) : error;
  // The message of OpenSSL names lines of its source.
  const [, reason] = /:SSL routines:[^:]*:([^:]+):/.exec(failure.message) ?? [];
  if (reason) failure.message = `The TLS connection failed: ${reason}.`;
  return failure;
}

/** Ms that a `Retry-After` requests, in seconds or as a date (RFC 9110, section 10.2.3), at most a day; 0 if it requests none. */
export function retryAfterMs(value: string | undefined, now: number): number {
  if (value === undefined || value === "") return 0;
  const wait = /^\d+$/.test(value) ? Number(value) * second : Date.parse(value) - now;
  return Number.isNaN(wait) ? 0 : Math.min(Math.max(wait, 0), day);
}

/** Reads a response as it arrives, without back pressure: undici 7 ends the process if a server hangs up during it (nodejs/undici#5360). */
class ResponseReader extends Writable {
  readonly #limits: Limits;
  readonly #deadline: NodeJS.Timeout;
  readonly #idle: NodeJS.Timeout | undefined;
  /** The body, if it is collected. */
  readonly #parts: Buffer[] = [];
  #sink: Sink = { write: (part) => void this.#parts.push(part) };
  #size = 0;
  #count = 0;
  /** Bytes received when the idle timer was last reset. */
  #heard = 0;
  #status = 0;
  #headers: Record<string, string> = {};

  constructor(limits: Limits, late: () => void) {
    super({ highWaterMark: Number.MAX_SAFE_INTEGER });
    this.#limits = limits;
    this.#deadline = setTimeout(late, limits.timeoutMs);
    this.#idle = limits.idleTimeoutMs === undefined ? undefined : setTimeout(late, limits.idleTimeoutMs);
  }

  begin({ statusCode, headers }: Dispatcher.StreamFactoryData): this {
    this.#status = statusCode;
    this.#headers = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    this.#idle?.refresh();
    // Only an unencoded body is accepted: a compressed one could grow beyond every limit when it is decoded.
    const { "content-encoding": encoding = "identity" } = this.#headers;
    if (this.#limits.beyond === "fail" && encoding.toLowerCase() !== "identity")
      throw new ResponseRefused("encoding", "The answer is compressed, which was not asked for.");
    const sink = this.#limits.into ? this.#limits.into(statusCode) : this.#sink;
    if (sink === undefined) throw ENOUGH;
    this.#sink = sink;
    return this;
  }

  override _write(part: Buffer, _encoding: string, done: (error?: Error) => void): void {
    try {
      this.#read(part);
      done();
    } catch (error) {
      done(error as Error);
    }
  }

  /** Reads no more, and ends the limits of time and memory. */
  settle(): void {
    this.destroy();
    bufferedBytes -= this.#size;
    clearTimeout(this.#deadline);
    clearTimeout(this.#idle);
  }

  /** True if the response has begun, and its body may be incomplete. */
  get isEnough(): boolean {
    return this.#status > 0 && this.#limits.beyond === "drop";
  }

  response(): ServerResponse {
    const body = Buffer.concat(this.#parts).subarray(0, this.#limits.maxBytes);
    return { status: this.#status, headers: this.#headers, body };
  }

  #read(part: Buffer): void {
    const { maxBytes, beyond } = this.#limits;
    this.#size += part.length;
    bufferedBytes += part.length;
    if (this.#size - this.#heard >= MIN_PROGRESS_BYTES) {
      this.#heard = this.#size;
      this.#idle?.refresh();
    }
    if (this.#size > maxBytes && beyond === "fail")
      throw new ResponseRefused("limit", `The answer is larger than ${maxBytes} bytes.`);
    if (++this.#count > MAX_PARTS)
      throw new ResponseRefused("limit", `The answer comes in more than ${MAX_PARTS} parts.`);
    if (bufferedBytes > MAX_BUFFERED_BYTES && this.#size > ALWAYS_ALLOWED_BYTES)
      throw new ResponseRefused("limit", "Too many large answers come at once.");
    this.#sink.write(part);
    if (this.#size > maxBytes) throw ENOUGH;
  }
}
