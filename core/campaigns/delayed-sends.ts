import type { JobData } from "../../schemas/jobs.ts";
import { FairQueue } from "../engines/lanes/lanes.ts";
import { delayUntil, instantIn } from "../platform/clock.ts";
import { digestOf } from "../platform/digest.ts";
import type { Job, Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { pairsOf } from "../store/redis.ts";

/** A send of a rule to a lead, and the domain instant at which it is due. */
interface RuleSend {
  data: JobData<"campaigns.send">;
  due: number;
}

/** Each handle is polled this often before its earliest send is due, so that a failed poll does no harm. */
const POLLS_AHEAD = 4;
/** Handles per poll, and sends per batch. */
const MAX_HANDLES = 100;
const BATCH = 1000;

/**
 * The job of a send. Its id makes it unique per rule and lead. It is a digest of 72 bits, since Redis stores it three times; the chance of
 * a collision among a million is one in ten billion. Visitors' jobs have priority over a burst of sends.
 */
export function sendJob(runtime: Runtime, { data, due }: RuleSend): Job {
  const id = digestOf(`${data.ruleId} ${data.leadId}`).slice(0, 12);
  return job("campaigns.send", id, data, { delay: delayUntil(runtime, due), priority: 1 });
}

/**
 * The name in its handle's set of a send that is too far ahead for a job; ids contain no spaces. From now on the set is polled, for good, so
 * that no send is forgotten that is written afterwards.
 */
export async function delayedName(runtime: Runtime, { data, due }: RuleSend): Promise<string | undefined> {
  if (due <= instantIn(runtime, runtime.sendsAheadMs)) return undefined;
  await new FairQueue(runtime.redis, keys.delayedSendPolls).enlist(data.handle);
  return `${data.campaignId} ${data.ruleId} ${data.leadId}`;
}

/**
 * Enqueues the sends that are nearly due. A crash repeats some of them without effect: job ids are unique, and a rule fires once per lead.
 * Returns the number of sends.
 */
export async function promoteDueSends(runtime: Runtime): Promise<number> {
  const polls = new FairQueue(runtime.redis, keys.delayedSendPolls);
  const { claimed } = await polls.claim(MAX_HANDLES, runtime.sendsAheadMs / POLLS_AHEAD);
  let promoted = 0;
  for (const { lane } of claimed) promoted += await promoteOf(runtime, lane);
  return promoted;
}

async function promoteOf(runtime: Runtime, handle: string): Promise<number> {
  const { redis, queues, sendsAheadMs } = runtime;
  let promoted = 0;
  for (;;) {
    const near = instantIn(runtime, sendsAheadMs);
    const found = await redis.zrangebyscore(keys.delayedSends(handle), "-inf", near, "WITHSCORES", "LIMIT", 0, BATCH);
    const sends = pairsOf(found);
    if (sends.length === 0) return promoted;
    await queues.later(...sends.map(([name, due]) => sendJob(runtime, sendOf(handle, name, Number(due)))));
    await redis.zrem(keys.delayedSends(handle), ...sends.map(([name]) => name));
    promoted += sends.length;
  }
}

function sendOf(handle: string, name: string, due: number): RuleSend {
  const [campaignId = "", ruleId = "", leadId = ""] = name.split(" ");
  return { data: { handle, campaignId, ruleId, leadId }, due };
}
