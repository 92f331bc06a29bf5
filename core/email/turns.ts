import type { Redis } from "ioredis";
import type { Purpose } from "../../schemas/email.ts";
import { FairLine, type Turn } from "../engines/lanes/lanes.ts";
import { keys } from "../store/keys.ts";

/**
 * The lines in which handles with mail wait for their turn to send: verification codes have a line of their own, which is served
 * first. A handle without mail is claimed now and then, so no crash can lose a wake-up.
 */
export type LineName = "urgent" | "normal";

/** Rank of a purpose in a handle's queue: smaller goes first. */
export const ranks: Record<Purpose, number> = {
  LEAD_VERIFICATION: 0,
  TRANSACTIONAL_API: 1,
  CALENDAR: 1,
  PRODUCT_NOTIFICATION: 2,
};

/** The last rank that each line serves; the normal one serves all. */
export const MAX_RANKS: Record<LineName, number> = { urgent: 0, normal: 2 };

/** Real ms after which an announced handle is claimed even if no mail has woken it. */
const ANNOUNCED_MS = 2_000;
/** Real ms for which a handle without mail is parked. */
export const PARK_MS = 900_000;

/** Announces that a handle is about to have mail; comes before its message is written. */
export async function enqueue(redis: Redis, handle: string): Promise<void> {
  await lineOf(redis, "normal").enqueue(handle, Date.now() + ANNOUNCED_MS);
}

/** Gives a handle with mail of a rank its turn, now or at a real ms. */
export async function schedule(redis: Redis, handle: string, rank: number, at = Date.now()): Promise<void> {
  const names: LineName[] = rank <= MAX_RANKS.urgent ? ["urgent", "normal"] : ["normal"];
  await Promise.all(names.map((name) => lineOf(redis, name).enqueue(handle, at)));
}

/** Up to `limit` handles whose turn it is, and how many are due altogether. */
export function nextTurns(redis: Redis, name: LineName, limit: number): Promise<{ turns: Turn[]; due: number }> {
  return lineOf(redis, name).claim(limit);
}

/**
 * Parks a handle until a real ms, unless it was woken since its turn began. Mail that came before that and was not seen is found by a
 * second look; mail that comes after it wakes the handle.
 */
export async function park(redis: Redis, name: LineName, turn: Turn, until: number): Promise<void> {
  if (!(await lineOf(redis, name).park(turn, until))) return;
  const ranksHere = Array.from({ length: MAX_RANKS[name] + 1 }, (_, rank) => rank);
  const firsts = await Promise.all(
    ranksHere.map((rank) => redis.zrange(keys.emailQueue(turn.lane, rank), "0", "0", "WITHSCORES")),
  );
  const due = Math.min(...firsts.map(([, score]) => (score === undefined ? Number.POSITIVE_INFINITY : Number(score))));
  if (due < until) await lineOf(redis, name).enqueue(turn.lane, due);
}

function lineOf(redis: Redis, name: LineName): FairLine {
  return new FairLine(redis, keys.emailTurns(name));
}
