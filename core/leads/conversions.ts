import type { Conversion, newConversion } from "../../schemas/campaigns.ts";
import type { Input } from "../../schemas/schema.ts";
import { findCampaign } from "../campaigns/face.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { scripts } from "../store/scripts.ts";
import { eventJob } from "../webhooks/face.ts";

/**
 * Records a conversion with its event and triggers the campaign's CONVERSION rules, in one step. `campaign_not_found`, `lead_not_found`.
 */
export async function recordConversion(
  runtime: Runtime,
  input: Input<"handle", typeof newConversion>,
): Promise<{ conversion: Conversion }> {
  const { handle, leadId, campaignId } = input;
  await findCampaign(runtime, handle, campaignId);
  const at = runtime.now();
  const createdAt = new Date(at).toISOString();
  const conversionId = runtime.id("conv_");
  const { value = null, currency = null } = input;
  const occurredAt = new Date(input.occurredAt ?? at).toISOString();
  const conversion = { conversionId, leadId, campaignId, value, currency, occurredAt, createdAt };
  const about = { handle, leadId, campaignId, trigger: "CONVERSION", triggerId: conversionId, at } as const;
  const trigger = job("campaigns.trigger", conversionId, about);
  const event = eventJob(runtime, handle, { type: "conversion.recorded", data: { handle, conversion } });
  const reply = await runtime.queues.step(handle, [event, trigger], (outbox, jobs) =>
    scripts.recordConversion(
      runtime.redis,
      { lead: keys.lead(handle, leadId), conversions: keys.conversions(handle, leadId), outbox },
      { conversionId, json: JSON.stringify(conversion), jobs },
    ),
  );
  if (reply === "gone") throw new Fail("lead_not_found");
  return { conversion };
}
