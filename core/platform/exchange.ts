import { Buffer } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";

/** What a server answered, read whole. */
export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}

/** What an exchange may take. */
export interface Limits {
  /** Ms for all of it: waiting for a connection, the request, the answer and its body. */
  patience: number;
  /** Most bytes of the answer's body. */
  limit: number;
  /** What happens beyond the limit: the exchange fails, or the rest is dropped with its connection. */
  beyond: "fail" | "drop";
}

/** Sends one request and reads its answer. It ends in its time, whether no connection comes about or an answer trickles. */
export function exchange(dispatcher: Dispatcher, request: Dispatcher.DispatchOptions, limits: Limits): Promise<Answer> {
  return new Promise((resolve, reject) => {
    dispatcher.dispatch(request, new Exchange(limits, resolve, reject));
  });
}

/**
 * Reads an answer as it comes in, without a stream: nothing is ever held back, where undici 7 would end the process if a server
 * hung up meanwhile (nodejs/undici#5360).
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #limits: Limits;
  readonly #resolve: (answer: Answer) => void;
  readonly #reject: (error: Error) => void;
  readonly #timer: NodeJS.Timeout;
  readonly #parts: Buffer[] = [];
  #size = 0;
  #status = 0;
  #headers: Record<string, string> = {};
  #controller: Dispatcher.DispatchController | undefined;
  #fault: Error | undefined;

  constructor(limits: Limits, resolve: (answer: Answer) => void, reject: (error: Error) => void) {
    this.#limits = limits;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#timer = setTimeout(() => this.#stop(new Error("No answer in time.")), limits.patience);
  }

  /** A request whose time ended before its connection was made is never sent. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#fault) controller.abort(this.#fault);
  }

  /** Comes again after each informational answer; the last one counts. */
  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    this.#headers = plain(headers);
  }

  onResponseData(_controller: Dispatcher.DispatchController, part: Buffer): void {
    const { limit, beyond } = this.#limits;
    this.#parts.push(part);
    this.#size += part.length;
    if (this.#size <= limit) return;
    if (beyond === "drop") this.#end();
    this.#stop(new Error(`The answer is larger than ${limit} bytes.`));
  }

  onResponseEnd(): void {
    this.#end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error);
  }

  #end(): void {
    clearTimeout(this.#timer);
    const body = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts);
    this.#resolve({ status: this.#status, headers: this.#headers, body: body.subarray(0, this.#limits.limit) });
  }

  /** Ends what goes on; after an answer that is there already this fails nothing, for a promise is settled once. */
  #stop(fault: Error): void {
    this.#fault = fault;
    this.#fail(fault);
    this.#controller?.abort(fault);
  }

  #fail(fault: Error): void {
    clearTimeout(this.#timer);
    this.#reject(fault);
  }
}

function plain(headers: IncomingHttpHeaders): Record<string, string> {
  const all: Record<string, string> = {};
  for (const name in headers) all[name] = String(headers[name]);
  return all;
}
