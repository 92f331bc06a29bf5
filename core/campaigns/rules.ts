import { randomUUID } from "node:crypto";
import {
  MAX_DELAY_MINUTES,
  MIN_DELAY_MINUTES,
  type newRule,
  type Rule,
  type ruleChange,
  type ruleListing,
  type rulePath,
  type rulePreview,
} from "../../schemas/campaigns.ts";
import type { Infer } from "../../schemas/schema.ts";
import { previewTemplate, type Rendered, readTemplate, refusal, sendingRights } from "../email/face.ts";
import { Fail, invalid } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { changeRecord, createRecord, listRecords, type RecordKeys, readRecord } from "../store/records.ts";
import { pipelined } from "../store/redis.ts";
import { retryOnConflict } from "../store/retry.ts";
import { scripts } from "../store/scripts.ts";
import { findCampaign } from "./campaigns.ts";
import { leadOf, snapshot } from "./snapshot.ts";

/** A stored rule. */
export type StoredRule = Omit<Rule, "version" | "counts" | "handle"> & {
  /** Time of the deletion. A deleted rule is only retained as a record for a while. */
  deletedAt?: string;
};

/** Retention of a deleted rule and of its send markers in real seconds, the same as for once-only keys of mails. */
const DELETED_RETENTION_SECONDS = 34_560_000;

/** Creates a rule; it applies to later triggers. Errors are checked in this order: body, campaign, sender, template. */
export async function createRule(runtime: Runtime, input: Infer<typeof newRule>): Promise<{ rule: Rule }> {
  const { handle, campaignId, trigger, templateId, senderId, variableMappings, enabled } = input;
  const delayMinutes = delayOf(trigger, input.delayMinutes);
  await findCampaign(runtime, handle, campaignId);
  await mustBeUsable(runtime, handle, { senderId, templateId, enabled }, input);
  const at = runtime.now();
  const instant = new Date(at).toISOString();
  const ruleId = `cer_${randomUUID()}`;
  const value: StoredRule = {
    ruleId,
    campaignId,
    trigger,
    delayMinutes,
    templateId,
    senderId,
    variableMappings,
    enabled,
    createdAt: instant,
    updatedAt: instant,
  };
  await createRecord(runtime, placeOf(handle, campaignId, ruleId), { value, at });
  return { rule: { ...value, handle, version: 1 } };
}

/** Changes the given fields of a rule; `email_rule_not_found` for a deleted one, `version_conflict` with the current version. */
export async function updateRule(runtime: Runtime, input: Infer<typeof ruleChange>): Promise<{ rule: Rule }> {
  const { handle, campaignId, ruleId, expectedVersion, ...changes } = input;
  // Without a trigger in the request, the delay is checked against the rule's own trigger later.
  if (changes.trigger !== undefined && changes.delayMinutes !== undefined)
    delayOf(changes.trigger, changes.delayMinutes);
  await findCampaign(runtime, handle, campaignId);
  const current = await findRule(runtime, input);
  if (current === undefined) throw new Fail("email_rule_not_found");
  await mustBeUsable(runtime, handle, merged(current, changes, runtime.now()), changes);
  const change = (now: StoredRule): StoredRule => {
    if (now.deletedAt !== undefined) throw new Fail("email_rule_not_found");
    return merged(now, changes, runtime.now());
  };
  const changed = await changeRecord<StoredRule>(runtime, placeOf(handle, campaignId, ruleId), {
    expectedVersion,
    change,
  });
  if (changed === undefined) throw new Fail("email_rule_not_found");
  return { rule: { ...changed, handle } };
}

/** Deletes a rule: its waiting sends are denied when due. Idempotent. */
export async function deleteRule(runtime: Runtime, input: Infer<typeof rulePath>): Promise<void> {
  const { handle, campaignId, ruleId } = input;
  await findCampaign(runtime, handle, campaignId);
  if (!ruleId.startsWith("cer_")) throw new Fail("email_rule_not_found");
  await retryOnConflict(runtime.redis, keys.rule(handle, campaignId, ruleId), () => tryDelete(runtime, input));
}

/** True once the rule is deleted; undefined after a conflicting change. */
async function tryDelete(runtime: Runtime, path: Infer<typeof rulePath>): Promise<true | undefined> {
  const rule = await findRule(runtime, path);
  if (rule === undefined) return true;
  const { version, ...stored } = rule;
  const { handle, campaignId, ruleId } = path;
  const json = JSON.stringify({ ...stored, deletedAt: new Date(runtime.now()).toISOString() });
  const { key, list, counter } = placeOf(handle, campaignId, ruleId);
  const input = { version, json, ruleId, keepSeconds: DELETED_RETENTION_SECONDS };
  const places = { rule: key, list, counter, ...sendKeys(handle, ruleId) };
  const result = await scripts.retireRule(runtime.redis, places, input);
  return result === "retired" ? true : undefined;
}

/** The recorded state of a rule's sends. */
export function sendKeys(handle: string, ruleId: string): { sends: string; counts: string } {
  return { sends: keys.ruleSends(handle, ruleId), counts: keys.ruleCounts(handle, ruleId) };
}

/** A rule; undefined if it is deleted or never existed. */
export async function findRule(
  { redis }: Pick<Runtime, "redis">,
  { handle, campaignId, ruleId }: Infer<typeof rulePath>,
): Promise<(StoredRule & { version: number }) | undefined> {
  const rule = await readRecord<StoredRule>(redis, keys.rule(handle, campaignId, ruleId));
  return rule?.deletedAt === undefined ? rule : undefined;
}

/** A campaign's rules, newest first, with their numbers of sent, denied and waiting mails. */
export async function listRules(
  runtime: Runtime,
  input: Infer<typeof ruleListing>,
): Promise<{ rules: Rule[]; nextCursor: string | null }> {
  const { handle, campaignId } = input;
  await findCampaign(runtime, handle, campaignId);
  const places = (_handle: string, ruleId: string) => placeOf(handle, campaignId, ruleId);
  const { records: found, nextCursor } = await listRecords<StoredRule>(runtime, places, input);
  const records = found.filter(({ deletedAt }) => deletedAt === undefined);
  const counts = (await pipelined(runtime.redis, (pipeline) => {
    for (const { ruleId } of records) pipeline.hmget(keys.ruleCounts(handle, ruleId), "waiting", "sent", "denied");
  })) as (string | null)[][];
  const rules = records.map((record, at) => {
    const [waiting, sent, denied] = (counts[at] ?? []).map(Number);
    return { ...record, handle, counts: { waiting: waiting ?? 0, sent: sent ?? 0, denied: denied ?? 0 } };
  });
  return { rules, nextCursor };
}

/** The mail that a rule would send to a lead now; it is not sent. */
export async function previewRule(runtime: Runtime, input: Infer<typeof rulePreview>): Promise<Rendered> {
  const { handle, campaignId, leadId } = input;
  await findCampaign(runtime, handle, campaignId);
  const rule = await findRule(runtime, input);
  if (rule === undefined) throw new Fail("email_rule_not_found");
  const lead = await leadOf(runtime, handle, leadId);
  if (lead === undefined) throw new Fail("lead_not_found");
  return previewTemplate(runtime, {
    handle,
    templateId: rule.templateId,
    purpose: "PRODUCT_NOTIFICATION",
    variables: snapshot(lead, rule.variableMappings),
  });
}

/** The delay in minutes of a delayed trigger; null for other triggers. */
function delayOf(trigger: Rule["trigger"], delay: unknown): number | null {
  if (trigger !== "LEAD_CAPTURED_DELAYED") return null;
  if (delay === undefined || delay === null) throw new Fail("delay_minutes_required_for_delayed_trigger");
  if (typeof delay !== "number" || !Number.isInteger(delay)) throw invalid("/delayMinutes", "must be an integer");
  if (delay < MIN_DELAY_MINUTES) throw new Fail("delay_minutes_below_minimum");
  if (delay > MAX_DELAY_MINUTES) throw new Fail("delay_minutes_above_maximum");
  return delay;
}

function merged(current: StoredRule, changes: Partial<Infer<typeof ruleChange>>, at: number): StoredRule {
  const given = Object.fromEntries(
    Object.entries(changes).filter(([, value]) => value !== undefined),
  ) as Partial<StoredRule>;
  const next = { ...current, ...given };
  const delayMinutes = delayOf(next.trigger, next.delayMinutes);
  return { ...next, delayMinutes, updatedAt: new Date(at).toISOString() };
}

/**
 * An enabled rule must be sendable. Of a disabled one, only what the request names must exist, since a missing part may be why it is
 * disabled.
 */
async function mustBeUsable(
  runtime: Runtime,
  handle: string,
  rule: Pick<StoredRule, "senderId" | "templateId" | "enabled">,
  named: Partial<Pick<StoredRule, "senderId" | "templateId">>,
): Promise<void> {
  if (rule.enabled) return mustBeSendable(runtime, handle, rule);
  const { senderId, templateId } = named;
  if (senderId !== undefined && (await sendingRights(runtime, { handle, senderId })).sender === undefined)
    throw new Fail("sender_profile_not_found");
  if (templateId !== undefined) await readTemplate(runtime, { handle, templateId });
}

/** Requires a ready sender with PRODUCT_NOTIFICATION and an active template. */
async function mustBeSendable(
  runtime: Runtime,
  handle: string,
  { senderId, templateId }: { senderId: string; templateId: string },
): Promise<void> {
  const code = refusal(await sendingRights(runtime, { handle, senderId }), "PRODUCT_NOTIFICATION");
  if (code !== undefined) throw new Fail(ruleCodes[code as keyof typeof ruleCodes] ?? code);
  const { template } = await readTemplate(runtime, { handle, templateId });
  if (template.status !== "ACTIVE") throw new Fail("email_template_not_active");
}

/** Error codes of rules where direct sends use others (docs/reference.md, "Email rules"). */
const ruleCodes = {
  sender_not_ready: "sender_profile_not_ready",
  sender_purpose_not_allowed: "sender_missing_product_notification_purpose",
} as const;

function placeOf(handle: string, campaignId: string, ruleId: string): RecordKeys {
  const key = keys.rule(handle, campaignId, ruleId);
  return { tag: handle, key, list: keys.rules(handle, campaignId), member: ruleId, counter: keys.rulesVersion(handle) };
}
