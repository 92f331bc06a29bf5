import type { Redis } from "ioredis";
import type { SearchIndex } from "../../platform/runtime.ts";
import { MemoryIndex } from "./memory-index.ts";
import { type IndexLog, RediSearchIndex, silent } from "./redisearch-index.ts";

export { type ChunkPiece, chunk } from "./chunking.ts";
export { lessonCards, withoutLessonCards } from "./lesson-cards.ts";
export { snippets } from "./snippets.ts";
export { chunkFields, documentMarks, normalizeTags, readLanguages, tagSeparator } from "./stored.ts";

/**
 * The index that this Redis supports: the search module's if it is loaded, else the in-process one. Logs the choice and the reason. Rejects
 * without Redis.
 */
export async function openIndex(
  redis: Redis,
  { isCluster }: { isCluster: boolean },
  log: IndexLog = silent,
): Promise<SearchIndex> {
  const memory = new MemoryIndex(redis);
  const server = new RediSearchIndex(redis, memory, log);
  const reason = unsupported(redis, isCluster) ?? (await server.prepare());
  if (reason !== undefined) await server.close();
  const index = reason === undefined ? server : memory;
  log.info({ kind: index.kind, ...(reason === undefined ? {} : { reason }) }, "knowledge.index.opened");
  return index;
}

/** Why the module can't be used, loaded or not: it indexes only database 0 of a single server. */
function unsupported({ options }: Redis, isCluster: boolean): string | undefined {
  if (isCluster) return "Redis is a cluster";
  return Number(options.db ?? 0) === 0 ? undefined : "The database is not 0";
}
