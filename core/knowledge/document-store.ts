import type { Redis } from "ioredis";
import { type RedisConnection, Repository, Schema } from "redis-om";
import { tagSeparator } from "../engines/search/search.ts";
import type { DocumentStore, StoredDocument } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { transact } from "../store/redis.ts";

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

/** The documents, stored by redis-om. The library is large: `openRuntime` loads this file at first use. */
export function openDocuments(redis: Redis): DocumentStore {
  const repository = new Repository(schema, omConnection(redis));
  return {
    async save(entityId, stored) {
      await repository.save(entityId, { ...stored });
    },
    // redis-om answers a missing id with an empty entity.
    async fetch(entityId) {
      const entity = (await repository.fetch(entityId)) as unknown as StoredDocument;
      if (entity.revision === undefined) return undefined;
      const { containerTags = [], topic = "", source = "" } = entity as Partial<StoredDocument>;
      return { ...entity, containerTags, topic, source };
    },
  };
}

/** The few commands that redis-om 0.4.7 sends, over our connection; its own client would be a second library and pool. */
function omConnection(redis: Redis): RedisConnection {
  const commands = {
    hGetAll: (key: string) => redis.hgetall(key),
    unlink: (names: string | string[]) => redis.unlink(...[names].flat()),
    expire: (key: string, seconds: number) => redis.expire(key, seconds),
    multi() {
      const queued: ((transaction: ReturnType<Redis["multi"]>) => void)[] = [];
      return {
        unlink(key: string) {
          queued.push((transaction) => transaction.unlink(key));
          return this;
        },
        hSet(key: string, data: Record<string, string>) {
          queued.push((transaction) => transaction.hset(key, data));
          return this;
        },
        exec: () => transact(redis, (transaction) => queued.forEach((add) => void add(transaction))),
      };
    },
  };
  return commands as unknown as RedisConnection;
}
