import { Buffer } from "node:buffer";
import type { Redis } from "ioredis";
import { writtenLanguage } from "../../platform/languages.ts";
import type { Embedding, FoundPassage } from "../../platform/runtime.ts";
import { keys } from "../../store/keys.ts";
import { pipelined } from "../../store/redis.ts";
import { passageTerms, termsVersion } from "./words.ts";

/** Separates the tags of a chunk, in Redis and in the search module's schema. Tags contain no control characters. */
export const tagSeparator = "\u001f";

/** Tags in stored form, without duplicates: the search module ignores spaces at their ends. */
export function normalizeTags(tags: readonly string[]): string[] {
  return [...new Set(tags.map((tag) => tag.trim()))];
}

/** A chunk as it is stored in Redis, with its vector if it has one. */
export interface StoredChunk {
  passage: FoundPassage;
  vector?: Embedding;
}

const TEXTS = ["title", "topic", "source", "heading", "text", "tags", "language"] as const;
const FIELDS = [...TEXTS, "model", "vector"] as const;

/** The fields of a chunk's hash; the last four are for the search module only. */
export function chunkFields(handle: string, { passage, vector }: StoredChunk): Record<string, string | Buffer> {
  const { id: _, tags, ...texts } = passage;
  const measured = vector && { vector: encodeVector(vector.values), model: vector.model };
  const searched = { handle, terms: passageTerms(passage).join(" "), termsVersion };
  const dimensions = vector && { dimensions: String(vector.values.length) };
  return { ...texts, tags: tags.join(tagSeparator), ...measured, ...searched, ...dimensions };
}

/** Reads the chunks of some documents in one round trip; omits missing chunks of documents that were just deleted. */
export async function readChunks(
  redis: Redis,
  handle: string,
  documents: readonly { documentId: string; count: number }[],
): Promise<StoredChunk[][]> {
  const rows = (await pipelined(redis, (pipeline) => {
    for (const { documentId, count } of documents) {
      for (let part = 0; part < count; part++) pipeline.hmgetBuffer(keys.chunk(handle, documentId, part), ...FIELDS);
    }
  })) as (Buffer | null)[][];
  return documents.map(({ documentId, count }) =>
    rows.splice(0, count).flatMap((row, part) => parseChunk(`${documentId}:${part}`, row)),
  );
}

/** The languages of a handle's passages, the most frequent first; English if there are none. */
export async function readLanguages(redis: Redis, handle: string): Promise<string[]> {
  const counts = await redis.hget(keys.knowledge(handle), "languages");
  const languages = Object.entries(JSON.parse(counts ?? "{}") as Record<string, number>);
  if (languages.length === 0) return ["en"];
  return languages.sort(([, one], [, other]) => other - one).map(([language]) => language);
}

/** Reads passages by the keys of their chunks, without vectors; undefined for missing ones. */
export async function readPassages(
  redis: Redis,
  handle: string,
  chunkKeys: readonly string[],
): Promise<(FoundPassage | undefined)[]> {
  const rows = await pipelined(redis, (pipeline) => {
    for (const key of chunkKeys) pipeline.hmget(key, ...TEXTS);
  });
  const prefix = keys.chunk(handle, "", 0).slice(0, -":0".length);
  return (rows as (string | null)[][]).map((row, at) => makePassage(chunkKeys[at]!.slice(prefix.length), row));
}

/** A vector in stored form: 32-bit floats, little-endian. */
export function encodeVector(vector: Float32Array): Buffer {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
}

function parseChunk(id: string, row: (Buffer | null)[]): StoredChunk[] {
  const texts = row.slice(0, TEXTS.length).map((value) => value?.toString() ?? null);
  const passage = makePassage(id, texts);
  if (!passage) return [];
  const [model, bytes] = row.slice(TEXTS.length);
  const values = decodeVector(bytes ?? null);
  return [{ passage, ...(values ? { vector: { model: model?.toString() ?? "", values } } : {}) }];
}

function makePassage(id: string, row: (string | null)[]): FoundPassage | undefined {
  const [title = "", topic = "", source = "", heading = "", text, tags, stored] = row.map(
    (value) => value ?? undefined,
  );
  if (text === undefined) return undefined;
  const documentId = id.slice(0, id.lastIndexOf(":"));
  // Chunks of earlier versions have no language.
  const language = stored || writtenLanguage(text) || "en";
  return { id, documentId, title, topic, source, heading, text, language, tags: tags ? tags.split(tagSeparator) : [] };
}

function decodeVector(bytes: Uint8Array | null): Float32Array | undefined {
  if (bytes === null || bytes.length === 0 || bytes.length % 4 !== 0) return undefined;
  return new Float32Array(Uint8Array.from(bytes).buffer);
}
