import type { Redis } from "ioredis";
import type { Env } from "../../platform/env.ts";
import { MemoryIndex } from "./memory-index.ts";
import { RediSearchIndex } from "./redisearch-index.ts";
import type { SearchIndex } from "../../platform/runtime.ts";

/**
 * The index that this Redis allows: the search module where it is there and Redis is no cluster (the module would need one
 * index over all shards), else in process. Rejects when Redis can't be reached.
 */
export async function openIndex(redis: Redis, env: Pick<Env, "REDIS_CLUSTER">): Promise<SearchIndex> {
  const memory = new MemoryIndex(redis);
  if (env.REDIS_CLUSTER || (await isCluster(redis))) return memory;
  const index = new RediSearchIndex(redis, memory);
  return (await index.prepare()) ? index : memory;
}

async function isCluster(redis: Redis): Promise<boolean> {
  return /^cluster_enabled:1/m.test(await redis.info("cluster"));
}
