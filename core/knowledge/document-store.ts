import type { Redis } from "ioredis";
import { type RedisConnection, Repository, Schema } from "redis-om";
import type { Document } from "../../schemas/knowledge.ts";
import { tagSeparator } from "../engines/search/search.ts";
import { keys } from "../store/keys.ts";

/** A stored knowledge document. Status and chunk count change separately and are fields of the knowledge hash. */
export interface StoredDocument extends Omit<Document, "status" | "chunkCount"> {
  [field: string]: string | number | string[] | undefined;
  content: string;
  revision: string;
}

/** The hash as which redis-om stores a document. One script writes it, with its chunks and jobs. */
export async function toHash(stored: StoredDocument): Promise<Record<string, string>> {
  const hash: Record<string, string> = {};
  // It saves by the transaction `UNLINK key, HSET key fields`.
  const hSet = (_: string, fields: Record<string, string>) => {
    Object.assign(hash, fields);
    return { exec: async (): Promise<void> => undefined };
  };
  await repositoryOver({ multi: () => ({ unlink: () => ({ hSet }) }) }).save(stored.documentId, { ...stored });
  return hash;
}

/** The document of an entity id, `{handle}:documentId`; undefined if there is none. */
export async function fetchDocument(redis: Redis, entityId: string): Promise<StoredDocument | undefined> {
  const hGetAll = (key: string) => redis.hgetall(key);
  const entity = (await repositoryOver({ hGetAll }).fetch(entityId)) as unknown as StoredDocument;
  // redis-om answers a missing id with an empty entity.
  if (entity.revision === undefined) return undefined;
  const { containerTags = [], topic = "", source = "" } = entity as Partial<StoredDocument>;
  return { ...entity, containerTags, topic, source };
}

/** A repository over the few commands that redis-om 0.4.7 sends: its own client would be a second library and pool. */
function repositoryOver(commands: object): Repository {
  return new Repository(schema, commands as RedisConnection);
}

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
