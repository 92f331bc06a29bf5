import type { Redis } from "ioredis";
import type { Purpose } from "../../schemas/email.ts";
import { keys } from "../store/keys.ts";
import { script } from "../store/scripts.ts";

/**
 * Whose turn it is to send. Every handle with mail stands in a line by the time of its next turn, and who has had one goes to its
 * end, so that a long queue of one handle never holds up another's. Verification codes have a line of their own, which is served
 * first. A handle never leaves the line: one without mail is looked at now and then, so that no crash can lose a wake-up.
 */
export type Lane = "urgent" | "normal";

/** Rank of a purpose in a handle's queue: smaller goes first. */
export const ranks: Record<Purpose, number> = {
  LEAD_VERIFICATION: 0,
  TRANSACTIONAL_API: 1,
  CALENDAR: 1,
  PRODUCT_NOTIFICATION: 2,
};

/** The last rank that a lane looks at; the normal one looks at all. */
export const lastRank: Record<Lane, number> = { urgent: 0, normal: 2 };

/** Real ms after which a handle that was announced is looked at even where nobody woke it. */
const announcedFor = 2_000;
/** Real ms between two looks at a handle that has nothing to do. */
export const restsFor = 900_000;

/** A handle whose turn it is, and the place in the line that it has got since. */
export interface Turn {
  handle: string;
  lane: Lane;
  place: string;
}

/** Says that a handle is about to have mail; comes before its message is written. */
export async function announce(redis: Redis, handle: string): Promise<void> {
  await redis.zadd(keys.emailTurns("normal"), "LT", (Date.now() + announcedFor) * 1000, handle);
}

/** Says that a handle has mail of a rank that is due, now or at a real ms. */
export async function wake(redis: Redis, handle: string, rank: number, at = Date.now()): Promise<void> {
  const lanes: Lane[] = rank <= lastRank.urgent ? ["urgent", "normal"] : ["normal"];
  await Promise.all(lanes.map((lane) => redis.zadd(keys.emailTurns(lane), "LT", Math.round(at) * 1000, handle)));
}

/** Up to `most` handles of a lane whose turn it is, and how many wait altogether. */
export async function nextTurns(redis: Redis, lane: Lane, most: number): Promise<{ turns: Turn[]; waiting: number }> {
  const [waiting, ...pairs] = await script<(string | number)[]>(redis, "nextTurns", [keys.emailTurns(lane)], [most]);
  const turns = Array.from({ length: pairs.length / 2 }, (_, at) => ({
    handle: String(pairs[at * 2]),
    lane,
    place: String(pairs[at * 2 + 1]),
  }));
  return { turns, waiting: Number(waiting) };
}

/**
 * Lets a handle rest until a real ms, unless it was woken since its turn began. Mail that came before the rest began and was not
 * seen is found by a second look; mail that comes after it wakes the handle.
 */
export async function rest(redis: Redis, { handle, lane, place }: Turn, until: number): Promise<void> {
  const rests = await script<number>(
    redis,
    "restTurn",
    [keys.emailTurns(lane)],
    [handle, place, Math.round(until) * 1000],
  );
  if (rests === 0) return;
  const ranksHere = Array.from({ length: lastRank[lane] + 1 }, (_, rank) => rank);
  const firsts = await Promise.all(
    ranksHere.map((rank) => redis.zrange(keys.emailQueue(handle, rank), "0", "0", "WITHSCORES")),
  );
  const due = Math.min(...firsts.map(([, score]) => (score === undefined ? Number.POSITIVE_INFINITY : Number(score))));
  if (due < until) await redis.zadd(keys.emailTurns(lane), "LT", Math.round(due) * 1000, handle);
}
