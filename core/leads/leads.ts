import type { Redis } from "ioredis";
import { type Lead, type leadExport, type leadListing, leadTexts } from "../../schemas/leads.ts";
import type { Input } from "../../schemas/schema.ts";
import { erasePerson } from "../email/face.ts";
import { addressDigest } from "../platform/address.ts";
import { batchesOf } from "../platform/batches.ts";
import { fold } from "../platform/characters.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { cursorAfter, entriesOf, type Listed, pageOf } from "../store/paging.ts";
import { readRecords, requireRecord } from "../store/records.ts";
import { personKey, RECENT_MS, recentKey } from "./capture.ts";
import { presentLead, type StoredLead } from "./content.ts";
import { withdrawNotices } from "./notices.ts";

/** Ms by which a lead's last capture may be later than its first, which orders the lists: `recent`, plus the tolerance for clocks. */
const RECENT_TTL_MS = RECENT_MS + 3_600_000;
/** Leads that one list request scans before it returns its results and a cursor. */
const MAX_SCANNED = 5000;
/** Ids that are read at once, and leads that are read and searched at once: one has up to 64 KB, of which a search takes some ms. */
const LIST_BATCH = 200;
const BATCH = 20;

/** One lead; `lead_not_found`. */
export async function readLead({ redis }: Runtime, input: Input<"handle" | "leadId">): Promise<{ lead: Lead }> {
  const stored = await requireRecord<StoredLead>(redis, keys.lead(input.handle, input.leadId), "lead_not_found");
  return { lead: presentLead(stored) };
}

/**
 * Leads, newest first, by text, page, campaign and time. A lead keeps the position of its first capture, so that pagination is stable;
 * `since` finds leads by their latest capture too. A rare text may need several pages: follow the cursor.
 */
export async function listLeads(
  runtime: Runtime,
  input: Input<"handle", typeof leadListing>,
): Promise<Listed<"leads", Lead>> {
  const list = keys.leads(input.handle);
  const { limit, after } = pageOf(runtime.env, input, list);
  const leads: Lead[] = [];
  let [position, scanned] = [after, 0];
  for await (const batch of scan(runtime, input, after))
    for (const { at, lead } of batch) {
      if ((lead && leads.length === limit) || scanned++ === MAX_SCANNED)
        return { leads, nextCursor: cursorAfter(runtime.env, position, list) };
      if (lead) leads.push(lead);
      position = at;
    }
  return { leads, nextCursor: null };
}

/** All matching leads in the order of the list, in batches, so that the memory is bounded. */
export async function* exportLeads(
  runtime: Runtime,
  input: Input<"handle", typeof leadExport>,
): AsyncGenerator<Lead[]> {
  for await (const batch of scan(runtime, input)) yield batch.flatMap(({ lead }) => lead ?? []);
}

/** Erases the person of a lead: all leads of the same address on the handle, and all copies of their data. */
export async function eraseLead(runtime: Runtime, input: Input<"handle" | "leadId">): Promise<void> {
  const { lead } = await readLead(runtime, input);
  const { redis, queues } = runtime;
  const person = personKey(input.handle, lead.email);
  // A lead that was captured during an earlier erasure may be missing from its person's.
  const all = [...new Set([input.leadId, ...(await redis.smembers(person))])];
  const records = await readRecords<StoredLead>(redis, all, (id) => keys.lead(input.handle, id));
  // The mails come first: if this fails half way, the lead is still there and can be erased again.
  const digests = await withdrawNotices(runtime, input.handle, all);
  const copies = { handle: input.handle, address: addressDigest(lead.email) };
  // Everything that is stored by now is erased, whatever the clocks of processes say. None of it is sent while the job waits.
  await erasePerson(runtime, copies);
  const erasing = job("leads.erase", `leads.erase-${input.leadId}`, copies);
  const mailing = [...digests.keys()].map((round) =>
    job("leads.digest", `lead-digest-${input.handle}-${round}-${input.leadId}`, { handle: input.handle, round }),
  );
  await queues.commit(input.handle, [erasing, ...mailing], (transaction) => {
    for (const onceKeys of digests.values()) transaction.del(...onceKeys);
    transaction.del(...all.map((id) => keys.lead(input.handle, id)));
    for (const one of records)
      transaction
        .del(
          recentKey(input.handle, one),
          recentKey(input.handle, { ...one, pageSlug: null }),
          keys.conversions(input.handle, one.leadId),
        )
        .zrem(keys.leads(input.handle), one.leadId);
    transaction.srem(person, ...all);
  });
}

type Filter = Omit<Input<"handle", typeof leadListing>, "limit">;

/** A position of the list, `score leadId`, with its lead if that matches. */
interface Scanned {
  at: string;
  lead: Lead | undefined;
}

/** The positions after another one in batches, until all further leads were first captured too long ago to match. */
async function* scan({ redis }: Runtime, input: Filter, after?: string): AsyncGenerator<Scanned[]> {
  const list = keys.leads(input.handle);
  const oldest = input.since === undefined ? 0 : Date.parse(input.since) - RECENT_TTL_MS;
  for (let [position, isLast] = [after, false]; !isLast; ) {
    const pairs = await entriesOf(redis, list, { after: position, count: LIST_BATCH });
    for (const some of batchesOf(pairs, BATCH)) yield await scanSome(redis, input, some);
    const [lastId, lastScore] = pairs.at(-1) ?? [];
    position = `${lastScore} ${lastId}`;
    isLast = pairs.length < LIST_BATCH || Number(lastScore) < oldest;
  }
}

async function scanSome(redis: Redis, input: Filter, pairs: [id: string, score: string][]): Promise<Scanned[]> {
  const ids = pairs.map(([id]) => id);
  const stored = await readRecords<StoredLead>(redis, ids, (id) => keys.lead(input.handle, id));
  const leads = stored.map(presentLead).filter((lead) => fits(lead, input));
  const byId = new Map(leads.map((lead) => [lead.leadId, lead]));
  return pairs.map(([id, score]) => ({ at: `${score} ${id}`, lead: byId.get(id) }));
}

function fits(lead: Lead, filter: Filter): boolean {
  if (filter.pageSlug !== undefined && lead.pageSlug !== filter.pageSlug) return false;
  if (filter.campaignId !== undefined && lead.campaignId !== filter.campaignId) return false;
  if (filter.since !== undefined && Date.parse(lead.captures.last) < Date.parse(filter.since)) return false;
  if (filter.q === undefined) return true;
  const text = [lead.email, ...leadTexts.map((name) => lead[name]), ...Object.values(lead.fields)];
  return fold(text.join("\n")).includes(fold(filter.q.trim()));
}
