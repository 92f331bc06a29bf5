import { triggers } from "../../schemas/campaigns.ts";
import type { JobData } from "../../schemas/jobs.ts";
import type { Lead } from "../../schemas/leads.ts";
import { acceptMessage, unlessErased } from "../email/face.ts";
import type { Runtime, Store } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { readRecord } from "../store/records.ts";
import { pairsOf } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";
import { delayedName, sendJob } from "./delayed-sends.ts";
import { findRule, leadOf, rulesOf, type StoredRule, sendKeys, snapshot } from "./rules.ts";

/**
 * Fires the rules of a campaign on a trigger: enabled rules for this trigger that are older than it. A rule fires once per lead, however
 * often the trigger is delivered; the marker for that and the job are one step.
 */
export async function fireRules(runtime: Runtime, trigger: JobData<"campaigns.trigger">): Promise<void> {
  const { handle, campaignId, trigger: event, at } = trigger;
  const rules = await rulesOf(campaignId).all(runtime, handle);
  const fired = rules.filter(({ trigger, enabled, createdAt }) => {
    return triggers[trigger].event === event && enabled && Date.parse(createdAt) <= at;
  });
  for (const rule of fired) await schedule(runtime, rule, trigger);
}

/** Sends a rule's mail to a lead, or denies it with the reason. Everything is checked again at this time. */
export async function sendRule(runtime: Runtime, data: JobData<"campaigns.send">): Promise<void> {
  const { handle, leadId } = data;
  const rule = await findRule(runtime, data);
  const lead = await leadOf(runtime, handle, leadId);
  // An erased person has no address left; only the counter records the send.
  if (lead === undefined) return settleSend(runtime, data, "denied");
  const denied = await reasonAgainst(runtime, data, rule);
  const accepted = await unlessErased(() => acceptMessage(runtime, { ...mail(data, rule, lead), denied }));
  const isSent = accepted !== "erased" && accepted.message.status !== "DENIED";
  await settleSend(runtime, data, isSent ? "sent" : "denied");
}

/** Denies every waiting send of a handle, since an import doesn't carry their jobs. Returns their number. */
export async function abandonSends(store: Store, handle: string): Promise<number> {
  const { redis } = store;
  let count = 0;
  for (const campaignId of await redis.zrange(keys.campaigns(handle), 0, "-1"))
    for (const ruleId of await redis.zrange(keys.rules(handle, campaignId), 0, "-1"))
      for await (const found of redis.hscanStream(keys.ruleSends(handle, ruleId)) as AsyncIterable<string[]>)
        for (const [leadId, state] of pairsOf(found)) {
          if (state !== "waiting") continue;
          await settleSend(store, { handle, campaignId, ruleId, leadId }, "denied");
          count++;
        }
  return count;
}

async function schedule(runtime: Runtime, rule: StoredRule, trigger: JobData<"campaigns.trigger">): Promise<void> {
  const { handle, campaignId, leadId, at } = trigger;
  const { ruleId, delayMinutes } = rule;
  // Undelayed sends go now, even if the clock that stamped the trigger is ahead of this one.
  const due = delayMinutes ? at + delayMinutes * 60_000 : Math.min(at, runtime.now());
  const send = { data: { handle, campaignId, ruleId, leadId }, due };
  const name = await delayedName(runtime, send);
  const scriptKeys = { delayed: keys.delayedSends(handle), rule: keys.rule(handle, campaignId, ruleId) };
  await runtime.queues.step(handle, name ? [] : [sendJob(runtime, send)], (outbox, jobs) =>
    scripts.scheduleSend(
      runtime.redis,
      { ...scriptKeys, ...sendKeys(handle, ruleId), outbox },
      { leadId, jobs, delayedName: name, due },
    ),
  );
}

/** Why a send may no longer happen. Mail acceptance checks sender, domain, template, suppression and quota. */
async function reasonAgainst(
  runtime: Runtime,
  data: JobData<"campaigns.send">,
  rule: StoredRule | undefined,
): Promise<string | undefined> {
  if (rule === undefined) return "email_rule_not_found";
  if (!rule.enabled) return "email_rule_disabled";
  const campaign = await readRecord<{ live: boolean }>(runtime.redis, keys.campaign(data.handle, data.campaignId));
  if (campaign === undefined) return "campaign_not_found";
  return campaign.live ? undefined : "campaign_not_live";
}

function mail(
  data: JobData<"campaigns.send">,
  rule: StoredRule | undefined,
  lead: Lead,
): Parameters<typeof acceptMessage>[1] {
  return {
    handle: data.handle,
    senderId: rule?.senderId ?? "",
    to: [lead.email],
    purpose: "PRODUCT_NOTIFICATION",
    templateId: rule?.templateId,
    variables: snapshot(lead, rule?.variableMappings ?? {}),
    // Owners report conversions; anybody can submit a lead.
    caps: rule && !triggers[rule.trigger].byVisitor ? [] : ["visitor", "rule"],
    leads: [data.leadId],
    key: `rule ${data.ruleId} ${data.leadId}`,
  };
}

async function settleSend(
  { redis }: Store,
  { handle, ruleId, leadId }: JobData<"campaigns.send">,
  state: "sent" | "denied",
): Promise<void> {
  await scripts.settleSend(redis, sendKeys(handle, ruleId), { leadId, state });
}
