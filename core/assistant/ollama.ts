import { type ChatRequest, Ollama } from "ollama";
import type { Env } from "../platform/env.ts";
import type { Embedder, Message, Model, Writer } from "../platform/runtime.ts";
import { embeddedAnswerer } from "./model.ts";

/** Fixed size of the context in tokens: changing it makes the server load the model anew. */
export const contextTokens = 8192;
/** Most tokens of one answer. */
const answerTokens = 700;
/** Texts of one embedding request. */
const batch = 32;
/** Ms in which the server must have begun to answer. */
const beginsWithin = 15_000;

/** The models that the settings name, on an Ollama server (contract 2). */
export function openModel(env: Env): Model {
  const { PUBLIC_PAGE_AGENT_MODEL_ID: id, EMBEDDING_MODEL_ID: embedding } = env;
  const host = env.OLLAMA_HOST ?? "http://127.0.0.1:11434";
  return {
    id: id ?? embeddedAnswerer,
    writer: id === undefined ? undefined : writer(host, id),
    embedder: embedding === undefined ? undefined : embedder(host, embedding),
  };
}

function writer(host: string, model: string): Writer {
  const options = { num_ctx: contextTokens, num_predict: answerTokens };
  return {
    async *write(messages: Message[], signal: AbortSignal) {
      const stream = await client(host, signal).chat({ model, messages, stream: true, options });
      for await (const part of stream) if (part.message.content) yield part.message.content;
    },
    async propose(messages: Message[], schema: object, signal: AbortSignal) {
      const request: ChatRequest & { stream: false } = { model, messages, stream: false, format: schema, options };
      return JSON.parse((await client(host, signal).chat(request)).message.content);
    },
  };
}

function embedder(host: string, model: string): Embedder {
  return {
    id: model,
    async embed(texts, purpose, signal) {
      const inputs = texts.map((text) => prefix(model, purpose) + text);
      const vectors: Float32Array[] = [];
      for (let at = 0; at < inputs.length; at += batch) {
        const { embeddings } = await client(host, signal).embed({
          model,
          input: inputs.slice(at, at + batch),
          truncate: false,
        });
        vectors.push(...embeddings.map((numbers) => Float32Array.from(numbers)));
      }
      return checked(vectors, texts.length);
    },
  };
}

/** One client a job, whose requests end with the job's signal: the client has no such option itself. */
function client(host: string, signal: AbortSignal): Ollama {
  return new Ollama({
    host,
    fetch: (input, init) => {
      const begun = new AbortController();
      const timer = setTimeout(() => begun.abort(new Error("The model server did not answer in time.")), beginsWithin);
      const signals = [init?.signal, signal, begun.signal].filter(
        (one): one is AbortSignal => one instanceof AbortSignal,
      );
      return fetch(input, { ...init, signal: AbortSignal.any(signals) }).finally(() => clearTimeout(timer));
    },
  });
}

/** Some families are trained with a word before each text that says what it is. */
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
