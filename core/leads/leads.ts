import { hash } from "node:crypto";
import type { Redis } from "ioredis";
import type { Lead, leadExport, leadListing, leadPath, newLead } from "../../schemas/leads.ts";
import type { StoredPage } from "../../schemas/pages.ts";
import type { Infer } from "../../schemas/schema.ts";
import { isAgentEnabled, throttleTag } from "../account/face.ts";
import { campaignOf, findCampaign } from "../campaigns/face.ts";
import { delayUntil } from "../platform/clock.ts";
import { retryOnConflict } from "../store/retry.ts";
import { addressDigest } from "../platform/address.ts";
import { Fail } from "../platform/errors.ts";
import { type LeadInput, readGiven } from "./input.ts";
import { awaitsCode, confirmedOf, contentOf, overlaid, presentLead, type StoredLead } from "./merging.ts";
import { cursorAfter, pageOf } from "../store/paging.ts";
import { noticeJobs, withdrawNotices } from "./notices.ts";
import { captured, leadEvent } from "./verification.ts";
import type { EventJob, Job, Runtime } from "../platform/runtime.ts";
import { job } from "../store/outbox.ts";
import { readRecord, readRecords } from "../store/records.ts";
import { keys } from "../store/keys.ts";
import { pipelined } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";
import { coalesce } from "../store/coalesce.ts";
import { takeToken } from "../store/throttle.ts";

/** Ms in which the same person on the same page is the same lead (docs/reference.md, "Leads"). */
const RECENT_MS = 86_400_000;
/** Ms by which a lead's last capture may lie after its first, by which lists are ordered: `recent`, and what clocks may differ by. */
const RECENT_TTL_MS = RECENT_MS + 3_600_000;
/** Leads that one list request looks at before it answers with what it has and a cursor. */
const MAX_SCANNED = 5000;
const batch = 200;

/** What a visitor learns of a lead: accepted, or waiting for the code that was sent to its address. */
export interface LeadAcceptance {
  leadId: string;
  status: "ACCEPTED" | "UNVERIFIED";
}

/** Throttle and gate of the lead route, before the body is read: `rate_limited`, or one `not_found` for every reason. */
export async function admitLead(runtime: Runtime, { handle = "" }: Record<string, string>): Promise<void> {
  const { PUBLIC_LEADS_RATE: rate, PUBLIC_LEADS_BURST: burst } = runtime.env;
  const tag = await throttleTag(runtime.redis, handle);
  const [, enabled] = await Promise.all([
    takeToken(runtime, { name: "leads", tag, rate, burst }),
    isAgentEnabled(runtime, handle),
  ]);
  if (!enabled) throw new Fail("not_found");
}

/**
 * Takes a lead: it, its trigger and the jobs that follow are one step. The same email, page and campaign within 24 h updates the
 * lead and is a new trigger. A filled honeypot is answered alike and nothing is stored.
 */
export async function captureLead(runtime: Runtime, input: Infer<typeof newLead>): Promise<{ lead: LeadAcceptance }> {
  const given = readGiven(input);
  if (given === undefined) return { lead: { leadId: runtime.id("lead_"), status: "ACCEPTED" } };
  const { handle } = input;
  const capture = await captureOf(runtime, handle, given);
  const { redis } = runtime;
  // Most people come for the first time: an earlier lead is read only if the script reports one.
  const attempt = async (alone: boolean) =>
    tryCapture(runtime, handle, {
      capture,
      known: alone ? stranger : await readKnown(redis, handle, capture.identity),
    });
  return { lead: await retryOnConflict(redis, capture.identity, attempt) };
}

/** One lead; `lead_not_found`. */
export async function readLead({ redis }: Runtime, input: Infer<typeof leadPath>): Promise<{ lead: Lead }> {
  const found = await readRecord<StoredLead>(redis, keys.lead(input.handle, input.leadId));
  if (found === undefined) throw new Fail("lead_not_found");
  return { lead: presentLead(found) };
}

/**
 * Leads, the newest first, by text, page, campaign and time. A lead keeps its place, that of its first capture, so that nobody is
 * missed or met twice on the way; `since` finds all that were captured, or captured again, from then on. A rare text may need
 * several pages: follow the cursor.
 */
export async function listLeads(
  runtime: Runtime,
  input: Infer<typeof leadListing>,
): Promise<{ leads: Lead[]; nextCursor: string | null }> {
  const list = keys.leads(input.handle);
  const { limit, after } = pageOf(runtime.env, input, list);
  const leads: Lead[] = [];
  let place = after;
  for (let looked = 0; looked < MAX_SCANNED; looked += batch) {
    const some = await nextLeads(runtime, input, place);
    for (const { lead, at } of some.leads) {
      if (!fits(lead, input)) continue;
      if (leads.length === limit) return { leads, nextCursor: cursorAfter(runtime.env, place, list) };
      leads.push(lead);
      place = at;
    }
    place = some.last ?? place;
    if (some.done) return { leads, nextCursor: null };
  }
  return { leads, nextCursor: cursorAfter(runtime.env, place, list) };
}

/** All leads that fit, as the list finds them and in its order, in batches: memory doesn't grow with their number. */
export async function* exportLeads(runtime: Runtime, input: Infer<typeof leadExport>): AsyncGenerator<Lead[]> {
  let place: string | undefined;
  for (;;) {
    const some = await nextLeads(runtime, input, place);
    yield some.leads.map(({ lead }) => lead).filter((lead) => fits(lead, input));
    if (some.done) return;
    place = some.last;
  }
}

/** Erases the person of a lead: all leads of the same address on the handle, and what was copied of them. */
export async function eraseLead(runtime: Runtime, input: Infer<typeof leadPath>): Promise<void> {
  const { lead } = await readLead(runtime, input);
  const { redis, queues } = runtime;
  const person = keys.person(input.handle, digest(lead.email));
  const all = await redis.smembers(person);
  const records = await readRecords<StoredLead>(
    redis,
    all.map((id) => keys.lead(input.handle, id)),
  );
  const erasing = job("leads.erase", `leads.erase-${input.leadId}`, {
    handle: input.handle,
    address: addressDigest(lead.email),
  });
  await queues.commit(input.handle, [erasing], (transaction) => {
    for (const one of records)
      transaction
        .del(
          keys.lead(input.handle, one.leadId),
          recentKey(input.handle, one),
          recentKey(input.handle, { ...one, pageSlug: null }),
          keys.conversions(input.handle, one.leadId),
        )
        .zrem(keys.leads(input.handle), one.leadId);
    transaction.del(person);
  });
  await withdrawNotices(runtime, input.handle, all);
}

/** What was sent, the campaign that it belongs to, whether its address must be confirmed, and the key by which it is known for a day. */
interface Capture {
  given: LeadInput;
  campaignId: string | null;
  verify: boolean;
  identity: string;
}

/**
 * The campaign that was named, else the page's, else the only live one, else none (docs/reference.md, "Leads"); and whether either asks to verify.
 * A page that is not published is no part of the identity: else one person could be many leads, and get each rule's mail many times.
 */
async function captureOf(runtime: Runtime, handle: string, given: LeadInput): Promise<Capture> {
  const { redis } = runtime;
  const key = keys.page(handle, given.pageSlug ?? "");
  const read = () => coalesce(redis, key, () => readRecord<StoredPage>(redis, key));
  const page = given.pageSlug === null ? undefined : await read();
  const campaignId = await campaignOf(runtime, handle, { named: given.campaignId, page: page?.campaignId ?? null });
  const campaign = campaignId === null ? undefined : await findCampaign(runtime, handle, campaignId);
  const pageSlug = page?.status === "PUBLISHED" ? given.pageSlug : null;
  const verify = page?.verifyLeads === true || campaign?.verifyLeads === true;
  const language = page?.language ?? given.language;
  const identity = recentKey(handle, { email: given.email, pageSlug, campaignId });
  return { given: { ...given, language }, campaignId, verify, identity };
}

/**
 * What a capture causes: its event, the trigger and, of a new lead, the mail to its owners; or first the code where the lead must be
 * verified.
 */
function consequences(
  runtime: Runtime,
  handle: string,
  { lead, isNew }: { lead: StoredLead; isNew: boolean },
): (Job | EventJob)[] {
  const event = leadEvent(runtime, handle, { type: "lead.captured", lead });
  const notice = isNew ? noticeJobs(runtime, handle, lead.leadId) : [];
  if (!awaitsCode(lead)) return [event, ...captured(runtime, handle, lead), ...notice];
  const round = runtime.id("code_");
  return [event, job("leads.send-code", round, { handle, leadId: lead.leadId, round })];
}

/** The recent lead of a person on a page and campaign: the id that stands there, and what it names if that is still there. */
interface RecentLead {
  leadId: string | null;
  lead: (StoredLead & { version: number }) | undefined;
}

const stranger: RecentLead = { leadId: null, lead: undefined };

async function readKnown(redis: Redis, handle: string, identity: string): Promise<RecentLead> {
  const leadId = await redis.get(identity);
  return leadId === null ? stranger : { leadId, lead: await readRecord<StoredLead>(redis, keys.lead(handle, leadId)) };
}

/** Writes the lead over what is known of the person; undefined where something else is known by now. */
async function tryCapture(
  runtime: Runtime,
  handle: string,
  { capture, known }: { capture: Capture; known: RecentLead },
): Promise<LeadAcceptance | undefined> {
  const at = runtime.now();
  const next = merged(known.lead?.leadId ?? runtime.id("lead_"), capture, { current: known.lead, at });
  const places = {
    recent: capture.identity,
    lead: keys.lead(handle, next.leadId),
    list: keys.leads(handle),
    person: keys.person(handle, digest(next.email)),
  };
  const input = {
    recentId: known.leadId ?? undefined,
    version: known.lead?.version ?? 0,
    leadId: next.leadId,
    json: JSON.stringify(next),
    at,
    recentMs: Math.max(1, delayUntil(runtime, at + RECENT_MS)),
  };
  const word = await runtime.queues.step(
    handle,
    consequences(runtime, handle, { lead: next, isNew: known.lead === undefined }),
    (outbox, jobs) => scripts.captureLead(runtime.redis, { ...places, outbox }, { ...input, jobs }),
  );
  // The same answer for an address that was verified before: strangers learn nothing of it.
  return word === "written" ? { leadId: next.leadId, status: capture.verify ? "UNVERIFIED" : "ACCEPTED" } : undefined;
}

/** What is known of the person and over it what was sent now, except for what was confirmed. */
function merged(
  leadId: string,
  { given, campaignId, verify }: Capture,
  { current, at }: { current: StoredLead | undefined; at: number },
): StoredLead {
  const instant = new Date(at).toISOString();
  const confirmed = current && confirmedOf(current);
  const newest = overlaid(current && contentOf(current), given);
  const isPending = confirmed !== undefined && verify;
  return {
    leadId,
    status: confirmed ? "VERIFIED" : verify ? "UNVERIFIED" : "ACCEPTED",
    ...(confirmed ? overlaid(newest, confirmed) : newest),
    confirmed,
    unconfirmed: isPending ? overlaid(current?.unconfirmed, given) : current?.unconfirmed,
    language: given.language ?? current?.language,
    pageSlug: given.pageSlug,
    campaignId,
    captures: { first: current?.captures.first ?? instant, last: instant },
    createdAt: current?.createdAt ?? instant,
    updatedAt: instant,
  };
}

interface Some {
  leads: { lead: Lead; at: string }[];
  last: string | undefined;
  done: boolean;
}

/**
 * The next batch after a place, which is `score leadId`; several leads may have one score. It is the last one where all that follow
 * were captured for the first time too long ago to be captured again since.
 */
async function nextLeads(
  { redis }: Runtime,
  input: { handle: string; since?: string | undefined },
  place: string | undefined,
): Promise<Some> {
  const [score = "+inf", after] = place?.split(" ") ?? [];
  const rank = after === undefined ? null : await redis.zrevrank(keys.leads(input.handle), after);
  const start =
    after === undefined
      ? 0
      : rank === null
        ? await redis.zcount(keys.leads(input.handle), `(${score}`, "+inf")
        : rank + 1;
  const found = await redis.zrevrange(keys.leads(input.handle), start, start + batch - 1, "WITHSCORES");
  const pairs = Array.from({ length: found.length / 2 }, (_, at) => ({
    id: found[at * 2] as string,
    score: found[at * 2 + 1] as string,
  }));
  const rows = (await pipelined(redis, (pipeline) => {
    for (const { id } of pairs) pipeline.hget(keys.lead(input.handle, id), "json");
  })) as (string | null)[];
  const leads = pairs.flatMap(({ id, score: at }, row) =>
    rows[row] ? [{ lead: presentLead(JSON.parse(rows[row] as string)), at: `${at} ${id}` }] : [],
  );
  const lastPair = pairs.at(-1);
  const oldest = input.since === undefined ? 0 : Date.parse(input.since) - RECENT_TTL_MS;
  const tooOld = lastPair !== undefined && Number(lastPair.score) < oldest;
  return { leads, last: lastPair && `${lastPair.score} ${lastPair.id}`, done: pairs.length < batch || tooOld };
}

function fits(
  lead: Lead,
  asked: {
    q?: string | undefined;
    pageSlug?: string | undefined;
    campaignId?: string | undefined;
    since?: string | undefined;
  },
): boolean {
  if (asked.pageSlug !== undefined && lead.pageSlug !== asked.pageSlug) return false;
  if (asked.campaignId !== undefined && lead.campaignId !== asked.campaignId) return false;
  if (asked.since !== undefined && Date.parse(lead.captures.last) < Date.parse(asked.since)) return false;
  if (asked.q === undefined) return true;
  const text = [
    lead.email,
    lead.name,
    lead.firstName,
    lead.company,
    lead.phone,
    lead.service,
    lead.message,
    lead.source,
    ...Object.values(lead.fields),
  ];
  return text.join("\n").toLowerCase().includes(asked.q.toLowerCase());
}

function recentKey(
  handle: string,
  { email, pageSlug, campaignId }: Pick<StoredLead, "email" | "pageSlug" | "campaignId">,
): string {
  return keys.recentLead(handle, digest(`${email.toLowerCase()}\n${pageSlug ?? ""}\n${campaignId ?? ""}`));
}

/** An address is the same person whatever its case. */
function digest(text: string): string {
  return hash("sha256", text.toLowerCase(), "base64url");
}
