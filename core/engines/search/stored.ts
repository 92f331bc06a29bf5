import { Buffer } from "node:buffer";
import type { Redis } from "ioredis";
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

const TEXTS = ["title", "topic", "source", "heading", "text", "tags", "language"];

/** The fields of a chunk's hash; the last four are for the search module only. */
export function chunkFields(handle: string, { passage, vector }: StoredChunk): Record<string, string | Buffer> {
  const { id: _, tags, ...texts } = passage;
  const measured = vector && { vector: encodeVector(vector.values), model: vector.model };
  const searched = { handle, terms: passageTerms(passage).join(" "), termsVersion };
  const dimensions = vector && { dimensions: String(vector.values.length) };
  return { ...texts, tags: tags.join(tagSeparator), ...measured, ...searched, ...dimensions };
}

/** A document in the knowledge hash of its handle. */
export interface DocumentMark {
  documentId: string;
  /** `<version>:<number of chunks>`; changes with each write of the chunks. */
  mark: string;
  count: number;
}

/** The documents of a knowledge hash by their ids. */
export function documentMarks(knowledge: Record<string, string>): Map<string, DocumentMark> {
  const marks = Object.entries(knowledge).flatMap(([field, mark]) =>
    field.startsWith("d:") ? { documentId: field.slice(2), mark, count: Number(mark.split(":")[1]) } : [],
  );
  return new Map(marks.map((one) => [one.documentId, one]));
}

/** Reads chunks by their keys in one round trip, with their vectors if asked; undefined for those of documents that were just deleted. */
export async function readChunks(
  redis: Redis,
  chunkKeys: readonly string[],
  { vectors }: { vectors: boolean },
): Promise<(StoredChunk | undefined)[]> {
  const fields = vectors ? [...TEXTS, "model", "vector"] : TEXTS;
  const rows = (await pipelined(redis, (pipeline) => {
    for (const key of chunkKeys) pipeline.hmgetBuffer(key, ...fields);
  })) as (Buffer | null)[][];
  return rows.map((row, at) => parseChunk(chunkKeys[at]!, row));
}

/** The languages of a handle's passages, the most frequent first; English if there are none. */
export async function readLanguages(redis: Redis, handle: string): Promise<string[]> {
  const counts = await redis.hget(keys.knowledge(handle), "languages");
  const languages = Object.entries(JSON.parse(counts ?? "{}") as Record<string, number>);
  if (languages.length === 0) return ["en"];
  return languages.sort(([, one], [, other]) => other - one).map(([language]) => language);
}

/** A vector in stored form: 32-bit floats, little-endian. */
export function encodeVector(vector: Float32Array): Buffer {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
}

function parseChunk(key: string, row: (Buffer | null)[]): StoredChunk | undefined {
  const texts = row.map((value, field) => (field <= TEXTS.length ? value?.toString() : undefined));
  const [title = "", topic = "", source = "", heading = "", text, tags, language = "en", model = ""] = texts;
  if (text === undefined) return undefined;
  const id = key.slice(key.indexOf("}:") + 2);
  const documentId = id.slice(0, id.lastIndexOf(":"));
  const names = { id, documentId, title, topic, source, heading };
  const passage = { ...names, text, language, tags: tags ? tags.split(tagSeparator) : [] };
  const values = decodeVector(row[TEXTS.length + 1]);
  return { passage, ...(values ? { vector: { model, values } } : {}) };
}

function decodeVector(bytes: Uint8Array | null | undefined): Float32Array | undefined {
  if (!bytes || bytes.length === 0 || bytes.length % 4 !== 0) return undefined;
  return new Float32Array(Uint8Array.from(bytes).buffer);
}
