import type { Lead, leadExport, leadListing, leadPath } from "../../schemas/leads.ts";
import type { Infer } from "../../schemas/schema.ts";
import { addressDigest } from "../platform/address.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { cursorAfter, pageOf } from "../store/paging.ts";
import { rankAfter, readRecords, requireRecord } from "../store/records.ts";
import { pairsOf, pipelined } from "../store/redis.ts";
import { personKey, RECENT_MS, recentKey } from "./capture.ts";
import { presentLead, type StoredLead } from "./merging.ts";
import { withdrawNotices } from "./notices.ts";

/** Ms by which a lead's last capture may be later than its first, which orders the lists: `recent`, plus the tolerance for clocks. */
const RECENT_TTL_MS = RECENT_MS + 3_600_000;
/** Leads that one list request scans before it returns its results and a cursor. */
const MAX_SCANNED = 5000;
const batch = 200;

/** One lead; `lead_not_found`. */
export async function readLead({ redis }: Runtime, input: Infer<typeof leadPath>): Promise<{ lead: Lead }> {
  return {
    lead: presentLead(await requireRecord<StoredLead>(redis, keys.lead(input.handle, input.leadId), "lead_not_found")),
  };
}

/**
 * Leads, newest first, by text, page, campaign and time. A lead keeps the position of its first capture, so that pagination is stable;
 * `since` finds leads by their latest capture too. A rare text may need several pages: follow the cursor.
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

/** All matching leads in the order of the list, in batches, so that the memory is bounded. */
export async function* exportLeads(runtime: Runtime, input: Infer<typeof leadExport>): AsyncGenerator<Lead[]> {
  let place: string | undefined;
  for (;;) {
    const some = await nextLeads(runtime, input, place);
    yield some.leads.map(({ lead }) => lead).filter((lead) => fits(lead, input));
    if (some.done) return;
    place = some.last;
  }
}

/** Erases the person of a lead: all leads of the same address on the handle, and all copies of their data. */
export async function eraseLead(runtime: Runtime, input: Infer<typeof leadPath>): Promise<void> {
  const { lead } = await readLead(runtime, input);
  const { redis, queues } = runtime;
  const person = personKey(input.handle, lead.email);
  // A lead that was captured during an earlier erasure may be missing from its person's.
  const all = [...new Set([input.leadId, ...(await redis.smembers(person))])];
  const records = await readRecords<StoredLead>(redis, all, (id) => keys.lead(input.handle, id));
  // The mails come first: if this fails half way, the lead is still there and can be erased again.
  await withdrawNotices(runtime, input.handle, all);
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
    transaction.srem(person, ...all);
  });
}

interface Some {
  leads: { lead: Lead; at: string }[];
  last: string | undefined;
  done: boolean;
}

/**
 * The next batch after a position `score leadId`; several leads may share a score. It is the last one if all further leads were first
 * captured too long ago to match.
 */
async function nextLeads(
  { redis }: Runtime,
  input: { handle: string; since?: string | undefined },
  place: string | undefined,
): Promise<Some> {
  const list = keys.leads(input.handle);
  const start = place === undefined ? 0 : await rankAfter(redis, list, place);
  const pairs = pairsOf(await redis.zrevrange(list, start, start + batch - 1, "WITHSCORES"));
  const rows = (await pipelined(redis, (pipeline) => {
    for (const [id] of pairs) pipeline.hget(keys.lead(input.handle, id), "json");
  })) as (string | null)[];
  const leads = pairs.flatMap(([id, at], row) =>
    rows[row] ? [{ lead: presentLead(JSON.parse(rows[row] as string)), at: `${at} ${id}` }] : [],
  );
  const [lastId, lastScore] = pairs.at(-1) ?? [];
  const oldest = input.since === undefined ? 0 : Date.parse(input.since) - RECENT_TTL_MS;
  const tooOld = lastScore !== undefined && Number(lastScore) < oldest;
  return { leads, last: lastId && `${lastScore} ${lastId}`, done: pairs.length < batch || tooOld };
}

function fits(lead: Lead, asked: Omit<Infer<typeof leadListing>, "limit">): boolean {
  if (asked.pageSlug !== undefined && lead.pageSlug !== asked.pageSlug) return false;
  if (asked.campaignId !== undefined && lead.campaignId !== asked.campaignId) return false;
  if (asked.since !== undefined && Date.parse(lead.captures.last) < Date.parse(asked.since)) return false;
  if (asked.q === undefined) return true;
  const { email, name, firstName, company, phone, service, message, source, fields } = lead;
  const text = [email, name, firstName, company, phone, service, message, source, ...Object.values(fields)];
  return text.join("\n").toLowerCase().includes(asked.q.toLowerCase());
}
