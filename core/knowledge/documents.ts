import { Buffer } from "node:buffer";
import type { Redis } from "ioredis";
import {
  type Document,
  type documentChange,
  type documentListing,
  type documentPath,
  MAX_DOCUMENT_BYTES,
  type newDocument,
} from "../../schemas/knowledge.ts";
import type { Infer } from "../../schemas/schema.ts";
import { type ChunkPiece, chunk, chunkFields, normalizeTags, readLanguages } from "../engines/search/search.ts";
import { Fail, invalid } from "../platform/errors.ts";
import { maxNesting } from "../platform/html.ts";
import { writtenLanguage } from "../platform/languages.ts";
import type { FoundPassage, Job, Runtime, StoredDocument } from "../platform/runtime.ts";
import { faultAt, placeAt } from "../platform/source-place.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { listIds } from "../store/records.ts";
import { pipelined } from "../store/redis.ts";
import { retryOnConflict } from "../store/retry.ts";
import { scripts } from "../store/scripts.ts";
import { placeTooDeep } from "./nesting.ts";

/** Characters of a chunk to embed: a lesson card stays whole and may exceed a model's input. */
const MAX_EMBEDDED_LENGTH = 6000;

/** Accepts a document. It can be found by words when this returns; the job adds vectors. */
export async function createDocument(
  runtime: Runtime,
  input: Infer<typeof newDocument>,
): Promise<{ document: Document }> {
  const { handle, ...fields } = input;
  const at = new Date(runtime.now()).toISOString();
  const stored = {
    ...(fields as Partial<StoredDocument>),
    documentId: runtime.id("doc_"),
    revision: runtime.id(""),
    createdAt: at,
    updatedAt: at,
  } as StoredDocument;
  const accepted = await accept(runtime, handle, stored, "");
  return accepted!;
}

/** Changes the given fields of a document and indexes it again; `document_not_found`, `service_unavailable`. */
export async function updateDocument(
  runtime: Runtime,
  input: Infer<typeof documentChange>,
): Promise<{ document: Document }> {
  const { handle, documentId, ...changes } = input;
  return retryOnConflict(runtime.redis, documentKey(handle, documentId), async () => {
    const current = await find(runtime, handle, documentId);
    const changed = { ...current, ...(changes as Partial<StoredDocument>), documentId };
    const [revision, updatedAt] = [runtime.id(""), new Date(runtime.now()).toISOString()];
    return accept(runtime, handle, { ...changed, revision, updatedAt }, current.revision);
  });
}

/** One document with its content. */
export async function readDocument(
  runtime: Runtime,
  input: Infer<typeof documentPath>,
): Promise<{ document: Document & { content: string } }> {
  const stored = await find(runtime, input.handle, input.documentId);
  const [state] = await states(runtime.redis, input.handle, [input.documentId]);
  return { document: { ...toDocument(stored, state), content: stored.content } };
}

/** The handle's documents, newest first, without content. */
export async function listDocuments(
  runtime: Runtime,
  input: Infer<typeof documentListing>,
): Promise<{ documents: Document[]; nextCursor: string | null }> {
  const { redis } = runtime;
  const { ids, nextCursor } = await listIds(runtime, keys.documents(input.handle), input);
  const [stored, found] = await Promise.all([
    Promise.all(ids.map((id) => fetch(runtime, input.handle, id))),
    states(redis, input.handle, ids),
  ]);
  return { documents: stored.flatMap((one, at) => (one ? [toDocument(one, found[at])] : [])), nextCursor };
}

/** Removes a document with its chunks; `document_not_found`. */
export async function deleteDocument({ redis }: Runtime, input: Infer<typeof documentPath>): Promise<void> {
  if (!(await drop(redis, input.handle, input.documentId))) throw new Fail("document_not_found");
}

/**
 * Rebuilds a document's chunks, with vectors if an embedding model is configured. Also repairs a crash between the document and its chunks.
 * After the last failed attempt the document is FAILED, but can still be found by words.
 */
export async function indexDocument(
  runtime: Runtime,
  { handle, documentId }: { handle: string; documentId: string },
  attempt: { last: boolean; signal: AbortSignal },
): Promise<void> {
  const stored = await fetch(runtime, handle, documentId);
  if (stored === undefined) return void (await drop(runtime.redis, handle, documentId));
  const pieces = piecesOf(stored);
  try {
    const texts = pieces.map(({ heading, text }) =>
      [stored.title, heading, text.slice(0, MAX_EMBEDDED_LENGTH)].filter(Boolean).join("\n"),
    );
    const vectors = (await runtime.model.embedder?.embed(texts, "document", attempt.signal)) ?? [];
    if (vectors[0]) await runtime.index.prepareVectors(vectors[0].length);
    await writeChunks(runtime, handle, stored, { status: "READY", pieces, vectors });
  } catch (error) {
    if (attempt.last) await writeChunks(runtime, handle, stored, { status: "FAILED", pieces });
    throw error;
  }
}

function checkContent({ content, contentType }: StoredDocument): void {
  if (Buffer.byteLength(content) > MAX_DOCUMENT_BYTES)
    throw invalid("/content", `is longer than ${MAX_DOCUMENT_BYTES} bytes`);
  const at = contentType === "text/markdown" ? placeTooDeep(content) : undefined;
  if (at === undefined) return;
  throw invalid("/content", faultAt(placeAt(content, at), `quotes and lists are nested more than ${maxNesting} deep`));
}

/**
 * Writes a document in place of the one with the `earlier` revision; undefined if that has changed. redis-om's `save` is not part of any
 * transaction. So the indexing job is in the outbox first, and the chunks with the same job come last.
 */
async function accept(
  runtime: Runtime,
  handle: string,
  given: StoredDocument,
  earlier: string,
): Promise<{ document: Document } | undefined> {
  const stored = { ...given, containerTags: normalizeTags(given.containerTags) };
  checkContent(stored);
  const { redis, queues } = runtime;
  const { documentId, revision } = stored;
  const indexing = job("knowledge.index", `knowledge.index-${documentId}-${revision}`, { handle, documentId });
  await queues.register(handle);
  await redis.hset(keys.outbox(handle), indexing.id, JSON.stringify(indexing));
  if (!(await (await runtime.documents()).save(entityId(handle, documentId), stored, earlier))) return undefined;
  const pieces = piecesOf(stored);
  const chunkCount = await writeChunks(runtime, handle, stored, { status: "INDEXING", pieces, jobs: [indexing] });
  return { document: toDocument(stored, { status: "INDEXING", chunkCount }) };
}

async function writeChunks(
  { redis, queues, model }: Runtime,
  handle: string,
  stored: StoredDocument,
  made: { status: Document["status"]; pieces: ChunkPiece[]; vectors?: Float32Array[]; jobs?: Job[] },
): Promise<number> {
  const { status, pieces, vectors = [], jobs = [] } = made;
  const { documentId, revision } = stored;
  const language = await languageOfDocument(redis, handle, stored);
  const chunks = pieces.map((piece, part) => {
    const values = vectors[part];
    const vector = values && { vector: { model: model.embedder?.id ?? "", values } };
    const passage = { ...passageOf(stored, piece, part), language };
    return Object.entries(chunkFields(handle, { passage, ...vector })).flat();
  });
  const input = {
    revision,
    documentId,
    createdAt: Date.parse(stored.createdAt),
    language,
    prefix: chunkPrefix(handle, documentId),
    status,
    sizes: chunks.map(({ length }) => length),
    values: chunks.flat(),
  };
  await queues.step(handle, jobs, (outbox, entries) =>
    scripts.writeChunks(redis, { ...placesOf(handle, documentId), outbox }, { ...input, jobs: entries }),
  );
  return chunks.length;
}

/** If a short text doesn't reveal its language, use the language of most of the handle's passages. */
async function languageOfDocument(redis: Redis, handle: string, { title, content }: StoredDocument): Promise<string> {
  return writtenLanguage(`${title}\n${content}`) ?? (await readLanguages(redis, handle))[0]!;
}

function passageOf(
  stored: StoredDocument,
  { heading, text }: ChunkPiece,
  part: number,
): Omit<FoundPassage, "language"> {
  const { documentId, title, topic, source, containerTags: tags } = stored;
  return { id: `${documentId}:${part}`, documentId, title, topic, source, heading, text, tags };
}

function piecesOf({ title, content, contentType }: StoredDocument): ChunkPiece[] {
  return chunk({ title, content, contentType: contentType as "text/plain" });
}

async function drop(redis: Redis, handle: string, documentId: string): Promise<boolean> {
  return (
    (await scripts.dropChunks(redis, placesOf(handle, documentId), {
      documentId,
      prefix: chunkPrefix(handle, documentId),
    })) === 1
  );
}

/** The keys of a document that scripts change. */
function placesOf(handle: string, documentId: string): { document: string; knowledge: string; list: string } {
  return {
    document: documentKey(handle, documentId),
    knowledge: keys.knowledge(handle),
    list: keys.documents(handle),
  };
}

function chunkPrefix(handle: string, documentId: string): string {
  return keys.chunk(handle, documentId, 0).slice(0, -1);
}

async function find(runtime: Runtime, handle: string, documentId: string): Promise<StoredDocument> {
  const stored = await fetch(runtime, handle, documentId);
  if (stored === undefined) throw new Fail("document_not_found");
  return stored;
}

async function fetch(runtime: Runtime, handle: string, documentId: string): Promise<StoredDocument | undefined> {
  return (await runtime.documents()).fetch(entityId(handle, documentId));
}

interface State {
  status: Document["status"];
  chunkCount: number;
}

async function states(redis: Redis, handle: string, ids: string[]): Promise<State[]> {
  if (ids.length === 0) return [];
  const rows = await pipelined(redis, (pipeline) => {
    for (const id of ids) pipeline.hmget(keys.knowledge(handle), `s:${id}`, `d:${id}`);
  });
  return (rows as [string | null, string | null][]).map(([status, mark]) => ({
    status: (status ?? "INDEXING") as Document["status"],
    chunkCount: Number(mark?.split(":")[1] ?? 0),
  }));
}

function toDocument(stored: StoredDocument, state: State | undefined): Document {
  const { documentId, title, topic, source, contentType, containerTags, createdAt, updatedAt } = stored;
  const { status, chunkCount } = state ?? { status: "INDEXING" as const, chunkCount: 0 };
  return {
    documentId,
    title,
    topic,
    source,
    contentType: contentType as Document["contentType"],
    containerTags,
    status,
    chunkCount,
    createdAt,
    updatedAt,
  };
}

const entityId = (handle: string, documentId: string): string => `{${handle}}:${documentId}`;
export const documentKey = (handle: string, documentId: string): string =>
  `${keys.documentPrefix}:${entityId(handle, documentId)}`;
