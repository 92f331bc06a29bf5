import type { Redis } from "ioredis";
import type { Purpose } from "../../schemas/email.ts";
import { type ClaimedLane, FairQueue } from "../engines/lanes/lanes.ts";
import { keys } from "../store/keys.ts";

/**
 * The fair queues of handles with mail. Verification codes have a queue of their own, which is served first. A handle without mail is still
 * claimed occasionally, so that no crash can lose a wake-up.
 */
export type MailQueueName = "urgent" | "normal";

/** Priority of a purpose in a handle's queue; lower goes first. Senders for mails of the service are chosen in this order. */
export const ranks: Record<Purpose, number> = {
  TRANSACTIONAL_API: 1,
  CALENDAR: 1,
  PRODUCT_NOTIFICATION: 2,
  LEAD_VERIFICATION: 0,
};

/** The last priority that each fair queue serves; the normal one serves all. */
export const MAX_RANKS: Record<MailQueueName, number> = { urgent: 0, normal: Math.max(...Object.values(ranks)) };

/** Real ms for which a handle without mail is parked. */
export const PARK_MS = 900_000;

/** Schedules a handle with mail of a priority, now or at a real time in ms. */
export async function scheduleHandle(redis: Redis, handle: string, rank: number, at = Date.now()): Promise<void> {
  const names: MailQueueName[] = rank <= MAX_RANKS.urgent ? ["urgent", "normal"] : ["normal"];
  await Promise.all(names.map((name) => mailQueue(redis, name).enqueue(handle, at)));
}

/**
 * Parks a handle until a real time in ms, unless it was scheduled after its claim. A second check finds mail that was written before and
 * missed; later mail schedules the handle again.
 */
export async function park(redis: Redis, name: MailQueueName, claimed: ClaimedLane, until: number): Promise<void> {
  const queue = mailQueue(redis, name);
  if (!(await queue.park(claimed, until))) return;
  const served = Array.from({ length: MAX_RANKS[name] + 1 }, (_, rank) => keys.emailQueue(claimed.lane, rank));
  const firsts = await Promise.all(served.map((key) => redis.zrange(key, "0", "0", "WITHSCORES")));
  const due = Math.min(...firsts.map(([, score]) => Number(score ?? Number.POSITIVE_INFINITY)));
  if (due < until) await queue.enqueue(claimed.lane, due);
}

export function mailQueue(redis: Redis, name: MailQueueName): FairQueue {
  return new FairQueue(redis, keys.emailLanes(name));
}
