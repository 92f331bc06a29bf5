/** One turn of a conversation for a model. */
export interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

/** What writes answers and measures texts. Both parts may be absent: then answers are extracted and words alone retrieve. */
export interface Model {
  /** The configured generation target, reported unchanged as `modelId`. */
  readonly id: string;
  readonly writer: Writer | undefined;
  readonly embedder: Embedder | undefined;
}

/** A model that writes: deltas of text as they come; a failure throws; `signal` ends the work at the model too. */
export interface Writer {
  write(messages: Message[], signal: AbortSignal): AsyncIterable<string>;
  /** An object of this JSON schema, unchecked: models don't keep to schemas. */
  propose(messages: Message[], schema: object, signal: AbortSignal): Promise<unknown>;
}

/** A model that turns texts into vectors of one length. */
export interface Embedder {
  readonly id: string;
  embed(texts: string[], purpose: "query" | "document", signal: AbortSignal): Promise<Float32Array[]>;
}

/** Reported as `modelId` where no model is configured. */
export const embeddedAnswerer = "embedded-extractive";
