import { type ChatRequest, Ollama } from "ollama";
import type { Env } from "../platform/env.ts";
import { connectionFailure } from "../platform/exchange.ts";
import { outboundFailure } from "../platform/outbound.ts";
import type { Delta, Embedder, Model, ModelMessage, ModelTool, Writer } from "../platform/runtime.ts";

/** Reported as `modelId` if no model is configured. */
const embeddedAnswerer = "embedded-extractive";
/** Fixed context size in tokens: changing it makes the server reload the model. */
const CONTEXT_TOKENS = 8192;
/** Most tokens of one answer. */
const ANSWER_TOKENS = 700;
/** Texts of one embedding request. */
const BATCH_SIZE = 32;
/** How long the server keeps an idle model loaded; its own default is five minutes. */
const keepAlive = "30m";
/** Ms within which the server must start to respond to a request without a stream. */
const BEGIN_TIMEOUT_MS = 15_000;
const SHOW_TIMEOUT_MS = 2000;
/** Most bytes of a response: many times what any answer and a batch of vectors take. The client reads lines of any length. */
const MAX_RESPONSE_BYTES = 8_388_608;
/** Ms for which a model's capabilities are cached, and so is a failure to read them. */
const CAPABILITIES_TTL_MS = 600_000;
const FAILURE_TTL_MS = 30_000;

/** The models that the settings name, on an Ollama server. */
export function openModel(env: Env): Model {
  const { PUBLIC_PAGE_AGENT_MODEL_ID: id, EMBEDDING_MODEL_ID: embedding } = env;
  const host = env.OLLAMA_HOST ?? "http://127.0.0.1:11434";
  return {
    id: id ?? embeddedAnswerer,
    writer: id === undefined ? undefined : new OllamaWriter(host, id),
    embedder: embedding === undefined ? undefined : embedder(host, embedding),
  };
}

class OllamaWriter implements Writer {
  readonly #host: string;
  readonly #model: string;
  #known: { capabilities: Promise<readonly string[]>; until: number } | undefined;

  constructor(host: string, model: string) {
    this.#host = host;
    this.#model = model;
  }

  async callsTools(): Promise<boolean> {
    return (await this.#capabilities()).includes("tools");
  }

  async *write(messages: ModelMessage[], tools: readonly ModelTool[], signal: AbortSignal): AsyncGenerator<Delta> {
    const request = { ...(await this.#request(messages)), stream: true as const };
    const functions = tools.map(({ name, description }) => ({
      type: "function",
      function: { name, description, parameters: { type: "object", properties: {} } },
    }));
    const stream = await client(this.#host, signal).chat(
      functions.length > 0 ? { ...request, tools: functions } : request,
    );
    const spoken = new WithoutThoughts();
    for await (const { message, done_reason } of untilClosed(stream)) {
      for (const { function: called } of message.tool_calls ?? []) yield { call: called.name };
      const text = spoken.push(message.content ?? "");
      yield { text, isCut: done_reason === "length" };
    }
    const rest = spoken.end();
    if (rest !== "") yield { text: rest };
  }

  async propose(messages: ModelMessage[], schema: object, signal: AbortSignal): Promise<unknown> {
    const request = { ...(await this.#request(messages)), stream: false as const, format: schema };
    return JSON.parse((await client(this.#host, signal, BEGIN_TIMEOUT_MS).chat(request)).message.content);
  }

  /** Thinking models are asked not to think, or as little as possible: a visitor is waiting. */
  async #request(messages: ModelMessage[]): Promise<ChatRequest> {
    const capabilities = await this.#capabilities();
    const options = { num_ctx: CONTEXT_TOKENS, num_predict: ANSWER_TOKENS };
    const think = /gpt-?oss/i.test(this.#model) ? ("low" as const) : false;
    return {
      model: this.#model,
      messages,
      options,
      keep_alive: keepAlive,
      ...(capabilities.includes("thinking") ? { think } : {}),
    };
  }

  /** Shared by all questions, so no visitor's signal may end the request. */
  #capabilities(): Promise<readonly string[]> {
    if (this.#known === undefined || this.#known.until < Date.now())
      this.#known = { capabilities: this.#show(), until: Date.now() + CAPABILITIES_TTL_MS };
    return this.#known.capabilities;
  }

  async #show(): Promise<readonly string[]> {
    try {
      const shown = await client(this.#host, AbortSignal.timeout(SHOW_TIMEOUT_MS)).show({ model: this.#model });
      // Older servers don't tell them.
      return Array.isArray(shown.capabilities) ? shown.capabilities : [];
    } catch {
      this.#known = { capabilities: Promise.resolve([]), until: Date.now() + FAILURE_TTL_MS };
      return [];
    }
  }
}

/** A stream that closes normally has ended, even if the server never said that it was done. */
async function* untilClosed<T>(stream: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* stream;
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("Did not receive done"))) throw error;
  }
}

/** Drops the text between `<think>` and `</think>` from a stream of deltas, including the marks. */
class WithoutThoughts {
  #waiting = "";
  #isThinking = false;

  push(piece: string): string {
    this.#waiting += piece;
    let spoken = "";
    for (;;) {
      const mark = /<(\/?)think(?:ing)?>/i.exec(this.#waiting);
      if (!mark) break;
      // An end mark without a start mark: the template swallowed the start, and everything before was thinking.
      if (!this.#isThinking && mark[1] === "") spoken += this.#waiting.slice(0, mark.index);
      this.#isThinking = mark[1] === "";
      this.#waiting = this.#waiting.slice(mark.index + mark[0].length);
    }
    const open = this.#waiting.search(/<(?:\/?t?h?i?n?k?i?n?g?)$/i);
    const ready = open < 0 ? this.#waiting.length : open;
    if (!this.#isThinking) spoken += this.#waiting.slice(0, ready);
    this.#waiting = this.#waiting.slice(ready);
    return spoken;
  }

  end(): string {
    return this.#isThinking ? "" : this.#waiting;
  }
}

function embedder(host: string, model: string): Embedder {
  return {
    id: model,
    async embed(texts, purpose, signal) {
      const inputs = texts.map((text) => prefix(model, purpose) + text);
      const server = client(host, signal, BEGIN_TIMEOUT_MS);
      const vectors: Float32Array[] = [];
      for (let at = 0; at < inputs.length; at += BATCH_SIZE) {
        const input = inputs.slice(at, at + BATCH_SIZE);
        const asked = server.embed({ model, input, truncate: false, keep_alive: keepAlive });
        const { embeddings } = await asked.catch(failParsing);
        vectors.push(...embeddings.map((numbers) => Float32Array.from(numbers)));
      }
      return checked(vectors, texts.length);
    },
  };
}

/**
 * One client per job, whose requests end with the job's signal; the client has no such option. `timeoutMs` limits the time until the
 * response starts. A stream has no limit, since a server that loads a model responds late, and stops loading if the request ends.
 */
function client(host: string, signal: AbortSignal, timeoutMs?: number): Ollama {
  return new Ollama({
    host,
    fetch: async (input, init) => {
      const ended = new AbortController();
      const end = () => ended.abort(signal.reason);
      if (signal.aborted) end();
      else signal.addEventListener("abort", end, { once: true });
      const late = () => ended.abort(new Error("The model server did not answer in time."));
      const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs);
      const response = await fetch(input, { ...init, signal: ended.signal })
        .catch(failConnection)
        .finally(() => clearTimeout(timer));
      if (!response.ok) await failStatus(response);
      // Deno 2.9 loses the signal of a fetch to the garbage collector once the response has begun; the pipe keeps it.
      const body = response.body?.pipeThrough(limited(MAX_RESPONSE_BYTES), { signal: ended.signal }) ?? null;
      return new Response(body, response);
    },
  });
}

/** The message of a failed fetch says only that it failed. */
function failConnection(error: Error): never {
  throw error.cause === undefined ? error : outboundFailure(connectionFailure(error.cause as Error));
}

/** The words of a server that refuses may quote the text, and failures are logged. */
async function failStatus({ status, body }: Response): Promise<never> {
  await body?.cancel();
  throw new Error(`The model server answered ${status}.`);
}

/** The error of a parser quotes the answer. */
function failParsing(error: Error): never {
  throw error instanceof SyntaxError ? new Error("The model server's answer is not JSON.") : error;
}

/** Passes bytes on, and fails beyond a number of them. */
function limited(bytes: number): TransformStream<Uint8Array, Uint8Array> {
  let left = bytes;
  return new TransformStream({
    transform(piece, controller) {
      left -= piece.byteLength;
      if (left < 0) controller.error(new Error("The model server's answer is too long."));
      else controller.enqueue(piece);
    },
  });
}

/** Some model families are trained with a prefix that says what a text is. */
function prefix(model: string, purpose: "query" | "document"): string {
  if (/nomic-embed/.test(model)) return purpose === "query" ? "search_query: " : "search_document: ";
  if (/mxbai-embed|snowflake-arctic-embed/.test(model) && purpose === "query")
    return "Represent this sentence for searching relevant passages: ";
  return "";
}

function checked(vectors: Float32Array[], count: number): Float32Array[] {
  const length = vectors[0]?.length ?? 0;
  if (vectors.length !== count || length === 0 || vectors.some((vector) => vector.length !== length))
    throw new Error("The embedding model answered with vectors of other number or length.");
  return vectors;
}
