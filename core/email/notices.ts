import type { Redis } from "ioredis";
import type { Words } from "../../schemas/languages.ts";
import type { MailLayout } from "../engines/mail/mail.ts";
import { day, delayUntil, hour } from "../platform/clock.ts";
import { fillPlaceholders } from "../platform/placeholders.ts";
import type { Runtime } from "../platform/runtime.ts";
import { job } from "../store/outbox.ts";
import { scripts } from "../store/scripts.ts";

/** Maximum number of single mails of a kind to a handle's owners in an hour; further news comes in one digest at its end. */
const MAX_NOTICES_AN_HOUR = 20;
/** Maximum number of items in a digest. */
const MAX_DIGEST_ITEMS = 50;
/** Real ms after the hour at which its digest is sent: clocks differ, and late items belong to it too. */
const DIGEST_GRACE_MS = 5_000;
/** Real ms for which a digest's items are stored beyond the hour: the digest of an outage may have to be made again. */
const DIGEST_RETENTION_MS = day;

/** News for owners: the record that it is about, the notices of the hour, the prefix of the digests, and the job of a digest. */
interface News extends Record<"record" | "notices" | "digests", string> {
  field: string;
  item: string;
  job: { name: "leads.digest" | "scheduling.digest"; id: string };
}

/**
 * Decides, once per field of a record, whether owners are mailed of it at once, or in the digest of the hour, which this schedules; "gone"
 * for an erased record. Jobs of the same id are deduplicated: each item of an hour may request its digest.
 */
export async function decideNotice(runtime: Runtime, handle: string, news: News): Promise<"mail" | "digest" | "gone"> {
  const { field, item, job: digest, ...noticeKeys } = news;
  const hourMs = Math.max(1, delayUntil(runtime, runtime.now() + hour));
  const limits = { maxMails: MAX_NOTICES_AN_HOUR, hourMs, keepMs: hourMs + DIGEST_RETENTION_MS };
  const round = await scripts.decideNotice(runtime.redis, noticeKeys, { field, item, ...limits });
  if (round === "mail" || round === "gone") return round;
  const delay = Math.max(0, Number(round) + hourMs + DIGEST_GRACE_MS - Date.now());
  await runtime.queues.later(job(digest.name, `${digest.id}-${handle}-${round}`, { handle, round }, { delay }));
  return "digest";
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

/** The subject and the text of a digest of so many items, which does not tell of some others. */
export function digestTexts(
  words: Words["mails"]["lead" | "booking"],
  items: number,
  others: number,
): Pick<MailLayout, "subject" | "title" | "paragraphs"> {
  const more = others > 0 ? [fillPlaceholders(words.digestMore, { count: String(others) })] : [];
  return {
    subject: fillPlaceholders(words.digestSubject, { count: String(items + others) }),
    title: words.digestTitle,
    paragraphs: [fillPlaceholders(words.digestText, { limit: String(MAX_NOTICES_AN_HOUR) }), ...more],
  };
}
