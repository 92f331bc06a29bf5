import type { Redis } from "ioredis";
import { type RedisConnection, Repository, Schema } from "redis-om";
import { tagSeparator } from "../engines/search/search.ts";
import type { DocumentStore, StoredDocument } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";

const schema = new Schema(
  keys.documentPrefix,
  {
    documentId: { type: "string" },
    title: { type: "string" },
    topic: { type: "string" },
    source: { type: "string" },
    contentType: { type: "string" },
    containerTags: { type: "string[]", separator: tagSeparator },
    content: { type: "string" },
    revision: { type: "string" },
    createdAt: { type: "string" },
    updatedAt: { type: "string" },
  },
  { dataStructure: "HASH" },
);

/** Documents as redis-om maps them. The library is large: `openRuntime` loads this file at first use. */
export function openDocuments(redis: Redis): DocumentStore {
  return {
    async toHash(stored) {
      const hash: Record<string, string> = {};
      await repository(redis, hash).save(stored.documentId, { ...stored });
      return hash;
    },
    // redis-om answers a missing id with an empty entity.
    async fetch(entityId) {
      const entity = (await repository(redis).fetch(entityId)) as unknown as StoredDocument;
      if (entity.revision === undefined) return undefined;
      const { containerTags = [], topic = "", source = "" } = entity as Partial<StoredDocument>;
      return { ...entity, containerTags, topic, source };
    },
  };
}

/**
 * The few commands that redis-om 0.4.7 sends, over our connection; its own client would be a second library and pool. It saves by the
 * transaction `UNLINK key, HSET key fields`: the fields go to `saved` instead, and one script writes them with their chunks and jobs.
 */
function repository(redis: Redis, saved: Record<string, string> = {}): Repository {
  const exec = async (): Promise<void> => undefined;
  const hSet = (_: string, fields: Record<string, string>) => {
    Object.assign(saved, fields);
    return { exec };
  };
  const multi = () => ({ unlink: () => ({ hSet }) });
  const commands = { hGetAll: (key: string) => redis.hgetall(key), multi };
  return new Repository(schema, commands as unknown as RedisConnection);
}
