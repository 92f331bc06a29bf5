import type { Redis } from "ioredis";
import type { Env } from "../../platform/env.ts";
import type { SearchIndex } from "../../platform/runtime.ts";
import { ifPermitted } from "../../store/redis.ts";
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
  env: Pick<Env, "REDIS_CLUSTER">,
  log: IndexLog = silent,
): Promise<SearchIndex> {
  const memory = new MemoryIndex(redis);
  const { index, reason } = await choose(redis, env, { memory, log });
  log.info({ kind: index.kind, ...(reason === undefined ? {} : { reason }) }, "knowledge.index.opened");
  return index;
}

/** The module indexes only database 0 of a single server. */
async function choose(
  redis: Redis,
  env: Pick<Env, "REDIS_CLUSTER">,
  { memory, log }: { memory: MemoryIndex; log: IndexLog },
): Promise<{ index: SearchIndex; reason?: string }> {
  if (env.REDIS_CLUSTER || (await isCluster(redis))) return { index: memory, reason: "Redis is a cluster" };
  if (Number(redis.options.db ?? 0) !== 0) return { index: memory, reason: "The database is not 0" };
  const index = new RediSearchIndex(redis, memory, log);
  const reason = await index.prepare();
  if (reason === undefined) return { index };
  await index.close();
  return { index: memory, reason };
}

async function isCluster(redis: Redis): Promise<boolean> {
  return /^cluster_enabled:1/m.test((await ifPermitted(redis.info("cluster"))) ?? "");
}
