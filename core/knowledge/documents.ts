import { Buffer } from "node:buffer";
import type { Redis } from "ioredis";
import type { JobData } from "../../schemas/jobs.ts";
import { type Document, type documentChange, MAX_DOCUMENT_BYTES, type newDocument } from "../../schemas/knowledge.ts";
import type { Input } from "../../schemas/schema.ts";
import { type ChunkPiece, chunk, chunkFields, normalizeTags, readLanguages } from "../engines/search/search.ts";
import { Fail, invalid } from "../platform/errors.ts";
import { MAX_NESTING } from "../platform/html.ts";
import { writtenLanguage } from "../platform/languages.ts";
import type { Job, JobAttempt, Runtime } from "../platform/runtime.ts";
import { faultAt } from "../platform/source-position.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { type Listed, type ListInput, listIds } from "../store/paging.ts";
import { retryOnConflict } from "../store/retry.ts";
import { scripts } from "../store/scripts.ts";
import { addWaiting } from "../store/waiting.ts";
import type { StoredDocument } from "./document-store.ts";
import { tooDeepAt } from "./nesting.ts";

/** Characters of a chunk to embed: a lesson card stays whole and may exceed a model's input. */
const MAX_EMBEDDED_LENGTH = 6000;
/** Ms for which a document that waits for its job counts as one. */
const MAX_WAIT_MS = 3_600_000;

/** Accepts a document. It can be found by words when this returns; the job adds vectors. */
export async function createDocument(
  runtime: Runtime,
  { handle, ...fields }: Input<"handle", typeof newDocument>,
): Promise<{ document: Document }> {
  const made = { documentId: runtime.id("doc_"), createdAt: new Date(runtime.now()).toISOString() };
  const accepted = await accept(runtime, handle, { ...(fields as Partial<StoredDocument>), ...made }, "");
  return accepted!;
}

/** Changes the given fields of a document and indexes it again; `document_not_found`, `service_unavailable`. */
export async function updateDocument(
  runtime: Runtime,
  { handle, documentId, ...changes }: Input<"handle" | "documentId", typeof documentChange>,
): Promise<{ document: Document }> {
  return retryOnConflict(runtime.redis, documentKey(handle, documentId), async () => {
    const current = await fetch(runtime, handle, documentId);
    if (current === undefined) throw new Fail("document_not_found");
    return accept(runtime, handle, { ...current, ...(changes as Partial<StoredDocument>) }, current.revision);
  });
}

/** One document with its content; `document_not_found`. */
export async function readDocument(
  runtime: Runtime,
  input: Input<"handle" | "documentId">,
): Promise<{ document: Document & { content: string } }> {
  const [document] = await readDocuments(runtime, input.handle, [input.documentId]);
  if (document === undefined) throw new Fail("document_not_found");
  return { document };
}

/** The handle's documents, newest first, without content. */
export async function listDocuments(runtime: Runtime, input: ListInput): Promise<Listed<"documents", Document>> {
  const { ids, nextCursor } = await listIds(runtime, keys.documents(input.handle), input);
  const documents = await readDocuments(runtime, input.handle, ids);
  return { documents: documents.map(({ content: _, ...document }) => document), nextCursor };
}

/** Removes a document with its chunks; `document_not_found`. */
export async function deleteDocument({ redis }: Runtime, input: Input<"handle" | "documentId">): Promise<void> {
  if (!(await drop(redis, input.handle, input.documentId))) throw new Fail("document_not_found");
}

/**
 * Rebuilds a document's chunks, with vectors if an embedding model is configured. After the last failed attempt the document is FAILED, but
 * can still be found by words.
 */
export async function indexDocument(
  runtime: Runtime,
  { handle, documentId }: JobData<"knowledge.index">,
  attempt: Pick<JobAttempt, "last" | "signal">,
): Promise<void> {
  const [stored] = await Promise.all([
    fetch(runtime, handle, documentId),
    runtime.redis.zrem(keys.waitingDocuments(handle), documentId),
  ]);
  if (stored === undefined) return void (await drop(runtime.redis, handle, documentId));
  const { revision: earlier } = stored;
  const pieces = chunk(stored);
  try {
    const vectors = await embed(runtime, stored, { pieces, signal: attempt.signal });
    if (vectors[0]) await runtime.index.prepareVectors(vectors[0].length);
    await write(runtime, handle, { stored, earlier, status: "READY", pieces, vectors });
  } catch (error) {
    if (attempt.last) await write(runtime, handle, { stored, earlier, status: "FAILED", pieces });
    throw error;
  }
}

async function embed(
  { model }: Runtime,
  { title }: StoredDocument,
  { pieces, signal }: { pieces: ChunkPiece[]; signal: AbortSignal },
): Promise<Float32Array[]> {
  const texts = pieces.map(({ heading, text }) =>
    [title, heading, text.slice(0, MAX_EMBEDDED_LENGTH)].filter(Boolean).join("\n"),
  );
  return (await model.embedder?.embed(texts, "document", signal)) ?? [];
}

/** Writes a document in place of the one with the `earlier` revision, with its chunks and its job; undefined if that has changed. */
async function accept(
  runtime: Runtime,
  handle: string,
  fields: Partial<StoredDocument>,
  earlier: string,
): Promise<{ document: Document } | undefined> {
  const [revision, updatedAt] = [runtime.id(""), new Date(runtime.now()).toISOString()];
  const containerTags = normalizeTags(fields.containerTags ?? []);
  const stored = { ...fields, containerTags, revision, updatedAt } as StoredDocument;
  checkContent(stored);
  const { documentId } = stored;
  const [hash, priority] = await Promise.all([
    documentStore().then(({ toHash }) => toHash(stored)),
    addWaiting(runtime.redis, keys.waitingDocuments(handle), { member: documentId, maxWaitMs: MAX_WAIT_MS }),
  ]);
  const name = `knowledge.index-${documentId}-${revision}`;
  const indexing = job("knowledge.index", name, { handle, documentId }, { priority });
  const pieces = chunk(stored);
  const status = "INDEXING";
  const written = await write(runtime, handle, { stored, earlier, hash, status, pieces, jobs: [indexing] });
  return written === "written" ? { document: toDocument(stored, { status, chunkCount: pieces.length }) } : undefined;
}

function checkContent({ content, contentType }: StoredDocument): void {
  if (Buffer.byteLength(content) > MAX_DOCUMENT_BYTES)
    throw invalid("/content", `is longer than ${MAX_DOCUMENT_BYTES} bytes`);
  const at = contentType === "text/markdown" ? tooDeepAt(content) : undefined;
  if (at === undefined) return;
  const { message } = faultAt(content, at, `quotes and lists are nested more than ${MAX_NESTING} deep`);
  throw invalid("/content", message);
}

/** A write of a document's chunks, and of the document itself if its hash is given. */
interface Writing {
  stored: StoredDocument;
  /** The revision that must be stored by now. */
  earlier: string;
  hash?: Record<string, string>;
  status: Document["status"];
  pieces: ChunkPiece[];
  vectors?: Float32Array[];
  jobs?: Job[];
}

async function write(
  { redis, queues, model }: Runtime,
  handle: string,
  { stored, earlier, hash = {}, status, pieces, vectors = [], jobs: list = [] }: Writing,
): Promise<"written" | "changed"> {
  const { documentId, revision, title, topic, source, containerTags: tags, createdAt } = stored;
  const language = await languageOfDocument(redis, handle, stored);
  const chunks = pieces.map((piece, part) => {
    const passage = { id: `${documentId}:${part}`, documentId, title, topic, source, ...piece, language, tags };
    const values = vectors[part];
    const vector = values && { vector: { model: model.embedder?.id ?? "", values } };
    return Object.entries(chunkFields(handle, { passage, ...vector })).flat();
  });
  const fields = Object.entries(hash).flat();
  const input = {
    ...{ earlier, revision, status, language, createdAt: Date.parse(createdAt), ...chunkNames(handle, documentId) },
    hashSize: fields.length,
    sizes: chunks.map(({ length }) => length),
    values: [...fields, ...chunks.flat()],
  };
  return queues.step(handle, list, (outbox, jobs) =>
    scripts.writeDocument(redis, { ...scriptKeys(handle, documentId), outbox }, { ...input, jobs }),
  );
}

/** If a short text doesn't reveal its language, use the language of most of the handle's passages. */
async function languageOfDocument(redis: Redis, handle: string, { title, content }: StoredDocument): Promise<string> {
  return writtenLanguage(`${title}\n${content}`) ?? (await readLanguages(redis, handle))[0]!;
}

async function drop(redis: Redis, handle: string, documentId: string): Promise<boolean> {
  const dropped = await scripts.dropDocument(redis, scriptKeys(handle, documentId), chunkNames(handle, documentId));
  return dropped === 1;
}

/** The keys of a document that scripts change. */
function scriptKeys(handle: string, documentId: string): { document: string; knowledge: string; list: string } {
  return {
    document: documentKey(handle, documentId),
    knowledge: keys.knowledge(handle),
    list: keys.documents(handle),
  };
}

/** How scripts name the chunks of a document. */
function chunkNames(handle: string, documentId: string): { documentId: string; prefix: string } {
  return { documentId, prefix: keys.chunk(handle, documentId, 0).slice(0, -1) };
}

async function fetch({ redis }: Runtime, handle: string, documentId: string): Promise<StoredDocument | undefined> {
  return (await documentStore()).fetchDocument(redis, entityId(handle, documentId));
}

/** Documents as redis-om maps them. The library is large: it is loaded at first use. */
const documentStore = () => import("./document-store.ts");

/** The documents of these ids, without missing ones. */
async function readDocuments(
  runtime: Runtime,
  handle: string,
  ids: string[],
): Promise<(Document & { content: string })[]> {
  if (ids.length === 0) return [];
  const [found, states] = await Promise.all([
    Promise.all(ids.map((id) => fetch(runtime, handle, id))),
    runtime.redis.hmget(keys.knowledge(handle), ...ids.flatMap((id) => [`s:${id}`, `d:${id}`])),
  ]);
  return found.flatMap((stored, at) => {
    const [status, mark] = [states[2 * at] ?? "INDEXING", states[2 * at + 1] ?? ":0"];
    const state = { status: status as Document["status"], chunkCount: Number(mark.split(":")[1]) };
    return stored ? [{ ...toDocument(stored, state), content: stored.content }] : [];
  });
}

function toDocument(stored: StoredDocument, state: Pick<Document, "status" | "chunkCount">): Document {
  const { content: _, revision: __, ...shown } = stored;
  return { ...(shown as unknown as Document), ...state };
}

const entityId = (handle: string, documentId: string): string => `{${handle}}:${documentId}`;
export const documentKey = (handle: string, documentId: string): string =>
  `${keys.documentPrefix}:${entityId(handle, documentId)}`;
