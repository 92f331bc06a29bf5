import { createHash } from "node:crypto";
import type { JobData } from "../../schemas/jobs.ts";
import { delayUntil, instantIn } from "../platform/clock.ts";
import type { DelayedSendLimits, Job, Runtime } from "../platform/runtime.ts";
import { FairLine } from "../engines/lanes/lanes.ts";
import { job } from "../store/outbox.ts";
import { keys } from "../store/keys.ts";

/** A send that waits, and the domain instant at which it is due. */
export interface DelayedSend {
  data: JobData<"campaigns.send">;
  due: number;
}

export const defaultDelayedSendLimits: DelayedSendLimits = { maxDelayed: 1_000_000, aheadMs: 3_600_000 };

/** Each handle is looked at this many times before anything that waits for it can be due, so that a look may fail. */
const LOOKS_AHEAD = 4;
/** Handles of a look and sends of a batch. */
const MAX_HANDLES = 100;
const batch = 1000;

/**
 * The job of a send; its id says that there is one for each rule and lead. The id is a digest of 72 bits, for it stands in three
 * places of Redis for each of a million jobs that wait: two of them have the same one once in ten billion times. A burst of sends
 * lets what visitors wait for go first.
 */
export function sendJob(runtime: Runtime, { data, due }: DelayedSend): Job {
  const id = createHash("sha256").update(`${data.ruleId} ${data.leadId}`).digest("base64url").slice(0, 12);
  return job("campaigns.send", id, data, { delay: delayUntil(runtime, due), priority: 1 });
}

/** A send's name in the set of its handle: ids hold no blank. */
export function delayedSendName({ campaignId, ruleId, leadId }: JobData<"campaigns.send">): string {
  return `${campaignId} ${ruleId} ${leadId}`;
}

/**
 * True where a send is to wait outside the queue: it is far, and the queue is full. Its handle then is in the line of those that
 * are looked at; it never leaves it, so that nothing that is written afterwards can be forgotten.
 */
export async function isDeferred({ redis, queues, ...runtime }: Runtime, handle: string, due: number) {
  const { maxDelayed, aheadMs } = runtime.delayedSends;
  if (due <= instantIn(runtime, aheadMs)) return false;
  if ((await queues.queue("campaigns").getDelayedCount()) < maxDelayed) return false;
  await new FairLine(redis, keys.farTurns).enlist(handle);
  return true;
}

/**
 * Makes jobs of the sends that are no longer far. A crash in the middle makes some of them again, which changes nothing: a job's id
 * is known, and a rule has a lead once. Returns how many it made.
 */
export async function promoteDueSends(runtime: Runtime): Promise<number> {
  const { redis, delayedSends } = runtime;
  const line = new FairLine(redis, keys.farTurns);
  const { turns } = await line.claim(MAX_HANDLES, delayedSends.aheadMs / LOOKS_AHEAD);
  let promoted = 0;
  for (const { lane } of turns) promoted += await promoteOf(runtime, lane);
  return promoted;
}

async function promoteOf(runtime: Runtime, handle: string): Promise<number> {
  const { redis, queues, delayedSends } = runtime;
  let promoted = 0;
  for (;;) {
    const near = instantIn(runtime, delayedSends.aheadMs);
    const found = await redis.zrangebyscore(keys.farSends(handle), "-inf", near, "WITHSCORES", "LIMIT", 0, batch);
    const sends = Array.from({ length: found.length / 2 }, (_, at) => [found[at * 2], found[at * 2 + 1]] as string[]);
    if (sends.length === 0) return promoted;
    await queues.later(...sends.map(([name = "", due]) => sendJob(runtime, waiting(handle, name, Number(due)))));
    await redis.zrem(keys.farSends(handle), ...sends.map(([name = ""]) => name));
    promoted += sends.length;
  }
}

function waiting(handle: string, name: string, due: number): DelayedSend {
  const [campaignId = "", ruleId = "", leadId = ""] = name.split(" ");
  return { data: { handle, campaignId, ruleId, leadId }, due };
}
