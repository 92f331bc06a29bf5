import type { Redis } from "ioredis";
import { chunksOf } from "../platform/chunks.ts";
import { isOfHandle, keys } from "../store/keys.ts";
import { mastersOf, pipelined } from "../store/redis.ts";

/** Keys per round trip. */
export const KEY_BATCH = 200;

/** The keys of a handle, in batches. Kinds of keys whose tag is not a handle are skipped, even if their tag is the same word. */
export async function* keysOf(redis: Redis, handle: string): AsyncGenerator<string[]> {
  for (const server of mastersOf(redis)) {
    const seen = server.scanStream({ match: `*:{${handle}}*`, count: 1000 });
    for await (const found of seen as AsyncIterable<string[]>) {
      const names = found.filter((key) => isOfHandle(key, handle));
      yield* chunksOf(names, KEY_BATCH);
    }
  }
}

/** Removes every key of a handle but its record. Returns the number removed. */
export async function removeKeys(redis: Redis, handle: string): Promise<number> {
  const message = keys.message(handle, "");
  let removed = 0;
  for await (const found of keysOf(redis, handle)) {
    const names = found.filter((key) => key !== keys.handle(handle));
    const messages = names.filter((key) => key.startsWith(message)).map((key) => key.slice(message.length));
    await Promise.all(messages.map((id) => disownMessage(redis, handle, id)));
    const counts = await pipelined(redis, (pipeline) => names.forEach((key) => void pipeline.unlink(key)));
    removed += counts.reduce<number>((sum, count) => sum + Number(count), 0);
  }
  return removed;
}

/** The message's own tag names the handle; after an import it names another one. */
async function disownMessage(redis: Redis, handle: string, messageId: string): Promise<void> {
  const owner = keys.messageOwner(messageId);
  if ((await redis.get(owner)) === handle) await redis.unlink(owner);
}
