import { batchesOf } from "../platform/batches.ts";
import type { Store } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";

const BATCH = 100;

/**
 * Enqueues the indexing of every document of a handle, or of all handles: after a change of the embedding model, or if passages have terms
 * of an earlier version. Returns the number of documents; a second run repeats the work.
 */
export async function reindexDocuments(store: Store, handle?: string): Promise<number> {
  let count = 0;
  const all: AsyncIterable<string[]> = store.redis.sscanStream(keys.handles, { count: BATCH });
  for await (const handles of handle === undefined ? all : [[handle]])
    for (const one of handles) count += await reindexHandle(store, one);
  return count;
}

async function reindexHandle({ redis, queues, id }: Store, handle: string): Promise<number> {
  const documents = await redis.zrange(keys.documents(handle), 0, "-1");
  // The first document of each handle goes before the second of any, and a new one before most of these.
  const jobs = documents.map((documentId, priority) =>
    job("knowledge.index", `knowledge.index-${documentId}-${id("")}`, { handle, documentId }, { priority }),
  );
  for (const some of batchesOf(jobs, BATCH)) await queues.later(...some);
  return documents.length;
}
