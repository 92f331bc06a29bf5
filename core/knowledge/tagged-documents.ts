import type { Redis } from "ioredis";
import { LRUCache } from "lru-cache";
import { tagSeparator } from "../engines/search/search.ts";
import type { Runtime } from "../platform/runtime.ts";
import { perConnection } from "../store/connections.ts";
import { keys } from "../store/keys.ts";
import { pipelined } from "../store/redis.ts";
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

/** A handle with more chunks is searched instead of read. */
const MAX_CHUNKS = 3000;
const MAX_CACHED_BYTES = 64 * 2 ** 20;
const DOCUMENTS_PER_READ = 64;

const cacheOf = perConnection(
  () => new LRUCache<string, TaggedDocuments>({ maxSize: MAX_CACHED_BYTES, sizeCalculation: bytesOf }),
);

/**
 * All documents of a handle with a tag, in order of creation; undefined if there are too many to read. If nothing has changed, it needs one
 * read.
 */
export async function taggedDocuments(
  { redis }: Pick<Runtime, "redis">,
  handle: string,
  tag: string,
): Promise<TaggedDocuments | undefined> {
  const cache = cacheOf(redis);
  const version = (await redis.hget(keys.knowledge(handle), "version")) ?? "";
  const known = cache.get(`${handle} ${tag}`);
  if (known?.version === version) return known;
  const ids = await documentIds(redis, handle);
  if (ids === undefined) return undefined;
  const found = { version, documents: await readTagged(redis, handle, { ids, tag }) };
  cache.set(`${handle} ${tag}`, found);
  return found;
}

function bytesOf({ documents }: TaggedDocuments): number {
  return documents.reduce((sum, { title, content }) => sum + 2 * (title.length + content.length), 1000);
}

/** Ids from the handle's knowledge hash, whose values are `<version>:<chunks>`; undefined if there are too many chunks. */
async function documentIds(redis: Redis, handle: string): Promise<string[] | undefined> {
  const [marks, ids] = await Promise.all([
    redis.hgetall(keys.knowledge(handle)),
    redis.zrange(keys.documents(handle), 0, MAX_CHUNKS.toString()),
  ]);
  const counts = Object.entries(marks).filter(([field]) => field.startsWith("d:"));
  const chunks = counts.reduce((sum, [, mark]) => sum + Number(mark.split(":")[1]), 0);
  return chunks > MAX_CHUNKS ? undefined : ids.filter((id) => marks[`d:${id}`] !== undefined);
}

async function readTagged(
  redis: Redis,
  handle: string,
  { ids, tag }: { ids: string[]; tag: string },
): Promise<TaggedDocument[]> {
  const found: TaggedDocument[] = [];
  for (let at = 0; at < ids.length; at += DOCUMENTS_PER_READ) {
    const some = ids.slice(at, at + DOCUMENTS_PER_READ);
    const rows = (await pipelined(redis, (pipeline) => {
      for (const id of some) pipeline.hmget(documentKey(handle, id), "title", "content", "containerTags");
    })) as (string | null)[][];
    for (const [row, [title, content, tags]] of rows.entries())
      if (content && tags?.split(tagSeparator).includes(tag))
        found.push({ documentId: some[row]!, title: title ?? "", content });
  }
  return found;
}
