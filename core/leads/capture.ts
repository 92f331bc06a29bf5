import type { Redis } from "ioredis";
import { hasWords } from "../../schemas/languages.ts";
import type { leadAccepted, newLead } from "../../schemas/leads.ts";
import type { StoredPage } from "../../schemas/pages.ts";
import type { Infer, Input } from "../../schemas/schema.ts";
import type { WebhookEventType } from "../../schemas/webhooks.ts";
import { isAgentEnabled, takeHandleToken } from "../account/face.ts";
import { campaignOf, findCampaign } from "../campaigns/face.ts";
import { canonicalAddress } from "../platform/address.ts";
import { delayUntil } from "../platform/clock.ts";
import { digestOf } from "../platform/digest.ts";
import { Fail } from "../platform/errors.ts";
import type { EventJob, Job, Runtime } from "../platform/runtime.ts";
import { coalesce } from "../store/coalesce.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { readRecord, type Versioned } from "../store/records.ts";
import { retryOnConflict } from "../store/retry.ts";
import { scripts } from "../store/scripts.ts";
import { eventJob } from "../webhooks/face.ts";
import {
  awaitsCode,
  type LeadInput,
  type LeadPlace,
  overlaid,
  presentLead,
  readLeadInput,
  type StoredLead,
} from "./content.ts";

/** Ms in which the same person on the same page is the same lead (docs/reference.md, "Leads"). */
export const RECENT_MS = 86_400_000;

type Acceptance = Infer<typeof leadAccepted>;

/** Throttle and gate of the lead route, before the body is read: `rate_limited`, or one `not_found` for every reason. */
export async function admitLead(runtime: Runtime, { handle = "" }: Record<string, string>): Promise<void> {
  const { PUBLIC_LEADS_RATE: rate, PUBLIC_LEADS_BURST: burst } = runtime.env;
  const [, enabled] = await Promise.all([
    takeHandleToken(runtime, handle, { name: "leads", rate, burst }),
    isAgentEnabled(runtime, handle),
  ]);
  if (!enabled) throw new Fail("not_found");
}

/**
 * Stores a lead with its trigger and jobs in one step. The same email, page and campaign within 24 h updates the lead and is a new
 * trigger. A filled honeypot gets the same response and is not stored.
 */
export async function captureLead(runtime: Runtime, input: Input<"handle", typeof newLead>): Promise<Acceptance> {
  const content = readLeadInput(input);
  if (!("email" in content)) {
    const { mustVerify } = await placeOf(runtime, input.handle, content);
    return accepted(runtime.id("lead_"), mustVerify);
  }
  const { redis } = runtime;
  const capture = await captureOf(runtime, input.handle, content);
  // Most visitors are new: an earlier lead is read only if the script reports one.
  const attempt = async (alone: boolean) =>
    tryCapture(runtime, capture, alone ? undefined : await readRecent(redis, capture));
  return retryOnConflict(redis, capture.dayKey, attempt);
}

/** The input, its campaign, whether its address must be verified, and the key that identifies it for a day. */
interface Capture {
  handle: string;
  content: LeadInput;
  campaignId: string | null;
  mustVerify: boolean;
  dayKey: string;
}

/** An unpublished page is not part of the key: otherwise one person could be many leads and get each rule's mail many times. */
async function captureOf(runtime: Runtime, handle: string, content: LeadInput): Promise<Capture> {
  const { page, campaignId, mustVerify } = await placeOf(runtime, handle, content);
  const pageSlug = page?.status === "PUBLISHED" ? content.pageSlug : null;
  const language = page?.language && hasWords(page.language) ? page.language : content.language;
  const dayKey = recentKey(handle, { email: content.email, pageSlug, campaignId });
  return { handle, content: { ...content, language }, campaignId, mustVerify, dayKey };
}

/**
 * The page; the named campaign, else the page's, else the only live one, else none (docs/reference.md, "Leads"); and whether page or
 * campaign require verification.
 */
async function placeOf(
  runtime: Runtime,
  handle: string,
  named: LeadPlace,
): Promise<{ page: StoredPage | undefined } & Pick<Capture, "campaignId" | "mustVerify">> {
  const { redis } = runtime;
  const key = keys.page(handle, named.pageSlug ?? "");
  const page = named.pageSlug ? await coalesce(redis, key, () => readRecord<StoredPage>(redis, key)) : undefined;
  const campaignId = await campaignOf(runtime, handle, { named: named.campaignId, page: page?.campaignId ?? null });
  const campaign = campaignId === null ? undefined : await findCampaign(runtime, handle, campaignId);
  return { page, campaignId, mustVerify: page?.verifyLeads === true || campaign?.verifyLeads === true };
}

/** The recent lead of a person on a page and campaign, if it still exists. */
interface RecentLead {
  leadId: string;
  lead: Versioned<StoredLead> | undefined;
}

async function readRecent(redis: Redis, { handle, dayKey }: Capture): Promise<RecentLead | undefined> {
  const leadId = await redis.get(dayKey);
  return leadId === null ? undefined : { leadId, lead: await readRecord(redis, keys.lead(handle, leadId)) };
}

/** Writes the lead, merged with the recent one; undefined if a concurrent request has changed that. */
async function tryCapture(runtime: Runtime, capture: Capture, recent?: RecentLead): Promise<Acceptance | undefined> {
  const { handle, dayKey, mustVerify } = capture;
  const at = runtime.now();
  const lead = merged(recent?.lead?.leadId ?? runtime.id("lead_"), capture, { current: recent?.lead, at });
  const { leadId } = lead;
  const scriptKeys = {
    recent: dayKey,
    lead: keys.lead(handle, leadId),
    list: keys.leads(handle),
    person: personKey(handle, lead.email),
  };
  const input = {
    recentId: recent?.leadId,
    version: recent?.lead?.version ?? 0,
    leadId,
    // A newer deploy may have stored further fields.
    json: JSON.stringify({ ...recent?.lead, ...lead, version: undefined }),
    at,
    recentMs: Math.max(1, delayUntil(runtime, at + RECENT_MS)),
  };
  const caused = leadJobs(runtime, handle, { type: "lead.captured", lead, isNew: recent?.lead === undefined });
  const reply = await runtime.queues.step(handle, caused, (outbox, jobs) =>
    scripts.captureLead(runtime.redis, { ...scriptKeys, outbox }, { ...input, jobs }),
  );
  // The same answer for a verified address: strangers can't learn about it.
  return reply === "written" ? accepted(leadId, mustVerify) : undefined;
}

function accepted(leadId: string, mustVerify: boolean): Acceptance {
  return { lead: { leadId, status: mustVerify ? "UNVERIFIED" : "ACCEPTED" } };
}

/** The known lead overlaid with the new input, except for verified content. */
function merged(
  leadId: string,
  { content, campaignId, mustVerify }: Capture,
  { current, at }: { current: StoredLead | undefined; at: number },
): StoredLead {
  const instant = new Date(at).toISOString();
  const confirmed = current?.confirmed;
  const newest = overlaid(current, content);
  return {
    leadId,
    status: confirmed ? "VERIFIED" : mustVerify ? "UNVERIFIED" : "ACCEPTED",
    ...(confirmed ? overlaid(newest, confirmed) : newest),
    confirmed,
    unconfirmed: confirmed && mustVerify ? overlaid(current?.unconfirmed, content) : undefined,
    language: content.language ?? current?.language,
    pageSlug: content.pageSlug ?? current?.pageSlug ?? null,
    campaignId,
    captures: { first: current?.captures.first ?? instant, last: instant },
    createdAt: current?.createdAt ?? instant,
    updatedAt: instant,
  };
}

/**
 * The effects of a captured or verified lead: its event, which is erased with the person; then the trigger of its campaign, and for a new lead
 * the mail to its owners, if there is a mail server, or only the mail with the code if the lead must be verified first.
 */
export function leadJobs(
  runtime: Runtime,
  handle: string,
  { type, lead, isNew }: { type: Extract<WebhookEventType, `lead.${string}`>; lead: StoredLead; isNew: boolean },
): (Job | EventJob)[] {
  const { leadId, campaignId } = lead;
  const data = { handle, lead: presentLead(lead) };
  const event = eventJob(runtime, handle, { type, data, people: [lead.email] });
  if (awaitsCode(lead)) {
    const round = runtime.id("code_");
    return [event, job("leads.send-code", round, { handle, leadId, round })];
  }
  const caused: (Job | EventJob)[] = [event];
  if (campaignId !== null) {
    const triggerId = runtime.id("trigger_");
    const trigger = { handle, leadId, campaignId, trigger: "LEAD_CAPTURED", triggerId, at: runtime.now() } as const;
    caused.push(job("campaigns.trigger", triggerId, trigger));
  }
  if (isNew) caused.push(...noticeJobs(runtime, handle, leadId));
  return caused;
}

/** The job of the mail about a lead to its owners; none without a mail server. */
export function noticeJobs({ env }: Runtime, handle: string, leadId: string): Job[] {
  if (env.SMTP_URL === undefined) return [];
  return [job("leads.notify", `lead-notice-${leadId}`, { handle, leadId })];
}

/** The key of the recent lead of a person on a page and campaign. */
export function recentKey(
  handle: string,
  { email, pageSlug, campaignId }: Pick<StoredLead, "email" | "pageSlug" | "campaignId">,
): string {
  return keys.recentLead(handle, digestOf(`${canonicalAddress(email)}\n${pageSlug ?? ""}\n${campaignId ?? ""}`));
}

/** The key of a person's leads: all spellings of an address are one person. */
export function personKey(handle: string, email: string): string {
  return keys.person(handle, digestOf(canonicalAddress(email)));
}
