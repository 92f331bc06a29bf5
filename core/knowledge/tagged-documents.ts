import type { Redis } from "ioredis";
import { documentMarks, tagSeparator } from "../engines/search/search.ts";
import { batchesOf } from "../platform/batches.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { pipelined } from "../store/redis.ts";
import { versionedCache } from "../store/versioned-cache.ts";
import { documentKey } from "./documents.ts";

/** A document for readers. */
export interface TaggedDocument {
  documentId: string;
  title: string;
  content: string;
}

/** The documents of a handle with a tag, at a version of its knowledge. */
export interface TaggedDocuments {
  version: string;
  documents: readonly TaggedDocument[];
}

/**
 * A handle with more chunks, or more characters, is searched instead of read. Blank text makes no chunks, and a chunk may be long: without
 * the second limit nothing that is read would fit into a cache, and each question would read it again.
 */
const MAX_CHUNKS = 3000;
const MAX_LENGTH = 4_500_000;
const MAX_CACHED_BYTES = 64 * 2 ** 20;
const DOCUMENTS_PER_READ = 64;

const cacheOf = versionedCache(MAX_CACHED_BYTES, bytesOf);

/**
 * All documents of a handle with a tag, in order of creation; undefined if there are too many to read. If nothing has changed, it needs one
 * read.
 */
export async function taggedDocuments(
  { redis }: Pick<Runtime, "redis">,
  handle: string,
  tag: string,
): Promise<TaggedDocuments | undefined> {
  const version = (await redis.hget(keys.knowledge(handle), "version")) ?? "";
  const documents = await cacheOf(redis).get(`${handle} ${tag}`, version, () => readTagged(redis, handle, tag));
  return documents && { version, documents };
}

function bytesOf(documents: readonly TaggedDocument[] = []): number {
  return documents.reduce((sum, { title, content }) => sum + 2 * (title.length + content.length), 1000);
}

async function readTagged(redis: Redis, handle: string, tag: string): Promise<TaggedDocument[] | undefined> {
  const [knowledge, ids] = await Promise.all([
    redis.hgetall(keys.knowledge(handle)),
    redis.zrange(keys.documents(handle), 0, MAX_CHUNKS.toString()),
  ]);
  const marks = documentMarks(knowledge);
  if ([...marks.values()].reduce((sum, { count }) => sum + count, 0) > MAX_CHUNKS) return undefined;
  const found: TaggedDocument[] = [];
  let length = 0;
  const indexed = ids.filter((id) => marks.has(id));
  for (const some of batchesOf(indexed, DOCUMENTS_PER_READ)) {
    const rows = (await pipelined(redis, (pipeline) => {
      for (const id of some) pipeline.hmget(documentKey(handle, id), "title", "content", "containerTags");
    })) as (string | null)[][];
    for (const [row, [title, content, tags]] of rows.entries())
      if (content && tags?.split(tagSeparator).includes(tag))
        found.push({ documentId: some[row]!, title: title ?? "", content });
    length += rows.reduce((sum, [, content]) => sum + (content?.length ?? 0), 0);
    if (length > MAX_LENGTH) return undefined;
  }
  return found;
}
