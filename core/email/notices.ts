import type { Redis } from "ioredis";
import { day, delayUntil, hour } from "../platform/clock.ts";
import type { Runtime } from "../platform/runtime.ts";
import { scripts } from "../store/scripts.ts";

/** Maximum number of single mails of a kind to a handle's owners in an hour; further news comes in one digest at its end. */
export const MAX_NOTICES_AN_HOUR = 20;
/** Maximum number of items in a digest. */
const MAX_DIGEST_ITEMS = 50;
/** Real ms after the hour at which its digest is sent: clocks differ, and late items belong to it too. */
const DIGEST_GRACE_MS = 5_000;
/** Real ms for which a digest's items are stored beyond the hour: the digest of an outage may have to be made again. */
const DIGEST_RETENTION_MS = day;

/** The record that a notice is about, the notices of the hour, and the prefix of the digests. */
type NoticeKeys = Record<"record" | "notices" | "digests", string>;

/**
 * Decides, once per field of a record, how owners are told of it: "mail" for a mail at once, "gone" if the record is erased, else the
 * round of the digest, which has the item.
 */
export function decideNotice(
  runtime: Runtime,
  noticeKeys: NoticeKeys,
  notice: { field: string; item: string },
): Promise<string> {
  const hourMs = realHour(runtime);
  const limits = { maxMails: MAX_NOTICES_AN_HOUR, hourMs, keepMs: hourMs + DIGEST_RETENTION_MS };
  return scripts.decideNotice(runtime.redis, noticeKeys, { ...notice, ...limits });
}

/** Real ms until the digest of a round is due. */
export function digestDelay(runtime: Runtime, round: string): number {
  return Math.max(0, Number(round) + realHour(runtime) + DIGEST_GRACE_MS - Date.now());
}

/** The first items of a digest as `read` tells them, which leaves out obsolete ones, and the number of the items after them. */
export async function readDigest<T>(
  redis: Redis,
  list: string,
  read: (item: string) => Promise<T | undefined>,
): Promise<{ found: T[]; others: number }> {
  const items = await redis.lrange(list, 0, -1);
  const found: T[] = [];
  for (const [at, item] of items.entries()) {
    if (found.length === MAX_DIGEST_ITEMS) return { found, others: items.length - at };
    const one = await read(item);
    if (one !== undefined) found.push(one);
  }
  return { found, others: 0 };
}

function realHour(runtime: Runtime): number {
  return Math.max(1, delayUntil(runtime, runtime.now() + hour));
}
