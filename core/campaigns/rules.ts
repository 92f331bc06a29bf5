import { randomUUID } from "node:crypto";
import {
  MAX_DELAY_MINUTES,
  MIN_DELAY_MINUTES,
  type newRule,
  type Rule,
  type ruleChange,
  type rulePreview,
  snapshotNames,
  triggers,
} from "../../schemas/campaigns.ts";
import type { ErrorCode } from "../../schemas/errors.ts";
import type { Lead } from "../../schemas/leads.ts";
import type { Input } from "../../schemas/schema.ts";
import { previewTemplate, type Rendered, readTemplate, refusal, sendingRights } from "../email/face.ts";
import { Fail, invalid } from "../platform/errors.ts";
import type { Runtime, Store } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import type { Listed, ListInput } from "../store/paging.ts";
import { conflict, Records, readRecord, type Versioned } from "../store/records.ts";
import { pipelined, transact } from "../store/redis.ts";
import { findCampaign } from "./campaigns.ts";

type RuleChange = Input<"handle" | "campaignId" | "ruleId", typeof ruleChange>;

export type StoredRule = Omit<Rule, "version" | "counts" | "handle"> & {
  /** Time of the deletion. A deleted rule is only retained as a record for a while. */
  deletedAt?: string;
};

/** Retention of a deleted rule and of its send markers in real seconds, the same as for once-only keys of mails. */
const DELETED_RETENTION_SECONDS = 34_560_000;

/** Most rules of a campaign: each lead fires all of them. */
const MAX_RULES = 200;

/** Creates a rule; it applies to later triggers. Errors are checked in this order: body, campaign, sender, template. */
export async function createRule(
  runtime: Runtime,
  input: Input<"handle" | "campaignId", typeof newRule>,
): Promise<{ rule: Rule }> {
  const { handle, ...given } = input;
  const { campaignId } = given;
  const delayMinutes = delayOf(given.trigger, given.delayMinutes);
  await findCampaign(runtime, handle, campaignId);
  await mustBeUsable(runtime, handle, given, given);
  const at = runtime.now();
  const instant = new Date(at).toISOString();
  const ruleId = `cer_${randomUUID()}`;
  const value: StoredRule = { ...given, ruleId, delayMinutes, createdAt: instant, updatedAt: instant };
  const full = `A campaign has at most ${MAX_RULES} email rules; delete one first.`;
  await rulesOf(campaignId).create(runtime, handle, { id: ruleId, value, at, max: MAX_RULES, full });
  return { rule: { ...value, handle, version: 1 } };
}

/** Changes the given fields of a rule; `email_rule_not_found` for a deleted one, `version_conflict` with the current version. */
export async function updateRule(runtime: Runtime, input: RuleChange): Promise<{ rule: Rule }> {
  const { handle, campaignId, ruleId, expectedVersion, ...changes } = input;
  // Without a trigger in the request, the delay is checked against the rule's own trigger later.
  if (changes.trigger !== undefined && changes.delayMinutes !== undefined)
    delayOf(changes.trigger, changes.delayMinutes);
  await findCampaign(runtime, handle, campaignId);
  const change = async (now: Versioned<StoredRule>): Promise<StoredRule> => {
    if (now.deletedAt !== undefined) throw new Fail("email_rule_not_found");
    const next = merged(now, changes, runtime.now());
    await mustBeUsable(runtime, handle, next, changes);
    if ((expectedVersion ?? now.version) !== now.version) throw conflict(now.version);
    return next;
  };
  const changed = await rulesOf(campaignId).change(runtime, handle, { id: ruleId, change });
  if (changed === undefined) throw new Fail("email_rule_not_found");
  return { rule: { ...changed, handle } };
}

/** Deletes a rule: its waiting sends are denied when due. Idempotent, also after a crash: its record says that it is deleted, and expires. */
export async function deleteRule(runtime: Runtime, input: Input<"handle" | "campaignId" | "ruleId">): Promise<void> {
  const { handle, campaignId, ruleId } = input;
  await findCampaign(runtime, handle, campaignId);
  if (!ruleId.startsWith("cer_")) throw new Fail("email_rule_not_found");
  const deletedAt = new Date(runtime.now()).toISOString();
  const change = (rule: StoredRule) => (rule.deletedAt === undefined ? { ...rule, deletedAt } : undefined);
  if ((await rulesOf(campaignId).change(runtime, handle, { id: ruleId, change })) === undefined) return;
  const { sends, counts } = sendKeys(handle, ruleId);
  await transact(runtime.redis, (transaction) => {
    transaction.zrem(keys.rules(handle, campaignId), ruleId);
    for (const key of [keys.rule(handle, campaignId, ruleId), sends, counts])
      transaction.expire(key, DELETED_RETENTION_SECONDS, "NX");
  });
}

/** The recorded state of a rule's sends. */
export function sendKeys(handle: string, ruleId: string): { sends: string; counts: string } {
  return { sends: keys.ruleSends(handle, ruleId), counts: keys.ruleCounts(handle, ruleId) };
}

/** A rule; undefined if it is deleted or never existed. */
export async function findRule(
  runtime: Store,
  { handle, campaignId, ruleId }: Input<"handle" | "campaignId" | "ruleId">,
): Promise<Versioned<StoredRule> | undefined> {
  const rule = await rulesOf(campaignId).find(runtime, handle, ruleId);
  return rule?.deletedAt === undefined ? rule : undefined;
}

/** A campaign's rules, newest first, with their numbers of sent, denied and waiting mails. */
export async function listRules(
  runtime: Runtime,
  input: ListInput<"handle" | "campaignId">,
): Promise<Listed<"rules", Rule>> {
  const { handle, campaignId } = input;
  await findCampaign(runtime, handle, campaignId);
  const { records: found, nextCursor } = await rulesOf(campaignId).list(runtime, input);
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
export async function previewRule(
  runtime: Runtime,
  input: Input<"handle" | "campaignId" | "ruleId", typeof rulePreview>,
): Promise<Rendered> {
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
  if (!triggers[trigger].isDelayed) return null;
  if (delay === undefined || delay === null)
    throw badDelay("delay_minutes_required_for_delayed_trigger", "is required");
  if (typeof delay !== "number" || !Number.isInteger(delay)) throw invalid("/delayMinutes", "must be an integer");
  if (delay < MIN_DELAY_MINUTES) throw badDelay("delay_minutes_below_minimum", `must be at least ${MIN_DELAY_MINUTES}`);
  if (delay > MAX_DELAY_MINUTES) throw badDelay("delay_minutes_above_maximum", `must be at most ${MAX_DELAY_MINUTES}`);
  return delay;
}

function badDelay(code: ErrorCode, message: string): Fail {
  return new Fail(code, { errors: [{ path: "/delayMinutes", message }] });
}

function merged(current: StoredRule, changes: Partial<RuleChange>, at: number): StoredRule {
  const next: StoredRule = { ...current, ...(changes as Partial<StoredRule>) };
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
  named: Pick<RuleChange, "senderId" | "templateId">,
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

/** The stored rules of a campaign, deleted ones included; its list has the others. */
export function rulesOf(campaignId: string): Records<StoredRule> {
  const record = (handle: string, ruleId: string) => keys.rule(handle, campaignId, ruleId);
  const list = (handle: string) => keys.rules(handle, campaignId);
  return new Records({ record, list, missing: "email_rule_not_found" });
}

/** The lead that a rule writes to; undefined after an erasure. It is read by its key, since leads are above campaigns. */
export function leadOf({ redis }: Store, handle: string, leadId: string): Promise<Lead | undefined> {
  return readRecord<Lead>(redis, keys.lead(handle, leadId));
}

/**
 * The variables of a campaign mail: the lead's snapshot, `firstName` as given or the first word of `name`, and the mapped variables. A
 * mapping names a field of the snapshot or the lead, or `fields.<name>`; it never refers to another mapping. Missing values are empty.
 */
export function snapshot(lead: Lead, mappings: Record<string, string>): Record<string, string> {
  const firstName = lead.firstName || ((lead.name ?? "").trim().split(/\s+/)[0] ?? "");
  const fields = { ...lead, firstName };
  const own = snapshotNames.map((name) => [name, textIn(fields, name)]);
  const mapped = Object.entries(mappings).map(([variable, field]) => [variable, mappedValue(fields, field)]);
  return Object.fromEntries([...own, ...mapped]);
}

function mappedValue(lead: Lead, field: string): string {
  return field.startsWith("fields.") ? textIn(lead.fields, field.slice("fields.".length)) : textIn(lead, field);
}

function textIn(record: object, name: string): string {
  const value: unknown = Object.hasOwn(record, name) ? record[name as keyof object] : undefined;
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}
