import type { campaign, newCampaign } from "../../schemas/campaigns.ts";
import type { Infer, Input } from "../../schemas/schema.ts";
import { Fail, invalid } from "../platform/errors.ts";
import type { Runtime, Store } from "../platform/runtime.ts";
import { coalesce } from "../store/coalesce.ts";
import { keys } from "../store/keys.ts";
import type { Listed, ListInput } from "../store/paging.ts";
import { Records } from "../store/records.ts";

/** A campaign as its owner reads it: leads belong to it, and email rules listen to it. */
type Campaign = Infer<typeof campaign>;
/**
 * `live` while its rules send and leads that name no campaign may join it; `verifyLeads` if leads must verify their address before rules
 * fire.
 */
type StoredCampaign = Omit<Campaign, "handle" | "version">;

const campaignRecords = new Records<StoredCampaign>({
  record: keys.campaign,
  list: keys.campaigns,
  missing: "campaign_not_found",
});

/** Creates a campaign, live by default; `campaign_already_exists`. */
export async function createCampaign(
  store: Store,
  input: Input<"handle", typeof newCampaign>,
): Promise<{ campaign: Campaign }> {
  const { handle, name, live = true, verifyLeads = false, campaignId = store.id("cmp_") } = input;
  if (!/^cmp_[A-Za-z0-9_.-]{1,124}$/.test(campaignId)) throw invalid("/campaignId", "must start with cmp_");
  const at = store.now();
  const instant = new Date(at).toISOString();
  const value: StoredCampaign = { campaignId, name, live, verifyLeads, createdAt: instant, updatedAt: instant };
  if (!(await campaignRecords.create(store, handle, { id: campaignId, value, at })))
    throw new Fail("campaign_already_exists");
  return { campaign: { ...value, handle, version: 1 } };
}

/** The handle's campaigns, newest first. */
export async function listCampaigns(runtime: Runtime, input: ListInput): Promise<Listed<"campaigns", Campaign>> {
  const { records, nextCursor } = await campaignRecords.list(runtime, input);
  return { campaigns: records.map((record) => ({ ...record, handle: input.handle })), nextCursor };
}

/** A campaign; `campaign_not_found`. */
export function findCampaign(runtime: Runtime, handle: string, campaignId: string): Promise<StoredCampaign> {
  return campaignRecords.read(runtime, handle, campaignId);
}

/** Most campaigns scanned for the only live one. */
const MAX_SCANNED = 1000;

/** The campaign of a lead: the named one, else the page's, else the only live one, else none (docs/reference.md, "Leads"). */
export async function campaignOf(
  runtime: Runtime,
  handle: string,
  given: { named: string | null; page: string | null },
): Promise<string | null> {
  if (given.named !== null) return (await findCampaign(runtime, handle, given.named)).campaignId;
  if (given.page !== null && (await runtime.redis.exists(keys.campaign(handle, given.page)))) return given.page;
  return coalesce(runtime.redis, `live campaign ${handle}`, () => onlyLive(runtime, handle));
}

/** The only live campaign of a handle; null if there are several or none. */
async function onlyLive(runtime: Runtime, handle: string): Promise<string | null> {
  const ids = await runtime.redis.zrevrange(keys.campaigns(handle), 0, MAX_SCANNED - 1);
  const found = await campaignRecords.named(runtime, handle, ids);
  const live = found.filter((one) => one.live);
  return live.length === 1 ? (live[0] as StoredCampaign).campaignId : null;
}
