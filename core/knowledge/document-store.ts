import type { Redis } from "ioredis";
import { type RedisConnection, Repository, Schema } from "redis-om";
import { tagSeparator } from "../engines/search/search.ts";
import type { DocumentStore, StoredDocument } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { scripts } from "../store/scripts.ts";

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
  return {
    async save(entityId, stored, earlier) {
      let isSaved = false;
      const replace = async (document: string, fields: Record<string, string>) => {
        const input = { earlier, revision: stored.revision, values: Object.entries(fields).flat() };
        isSaved = (await scripts.replaceDocument(redis, { document }, input)) === "written";
      };
      await new Repository(schema, omConnection(redis, replace)).save(entityId, { ...stored });
      return isSaved;
    },
    // redis-om answers a missing id with an empty entity.
    async fetch(entityId) {
      const entity = (await new Repository(schema, omConnection(redis)).fetch(entityId)) as unknown as StoredDocument;
      if (entity.revision === undefined) return undefined;
      const { containerTags = [], topic = "", source = "" } = entity as Partial<StoredDocument>;
      return { ...entity, containerTags, topic, source };
    },
  };
}

/**
 * The few commands that redis-om 0.4.7 sends, over our connection; its own client would be a second library and pool. It saves by the
 * transaction `UNLINK key, HSET key data`, in whose place `replace` runs.
 */
function omConnection(
  redis: Redis,
  replace?: (key: string, fields: Record<string, string>) => Promise<void>,
): RedisConnection {
  const commands = {
    hGetAll: (key: string) => redis.hgetall(key),
    multi: () => ({
      unlink: (key: string) => ({
        hSet: (_: string, fields: Record<string, string>) => ({ exec: () => replace?.(key, fields) }),
      }),
    }),
  };
  return commands as unknown as RedisConnection;
}
