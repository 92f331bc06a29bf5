import { fireRules, promoteDueSends, sendRule } from "../core/campaigns/face.ts";
import { erasePerson } from "../core/email/face.ts";
import { sendLeadCode, sendLeadDigest, sendLeadNotice } from "../core/leads/face.ts";
import { erasePurchases } from "../core/payments/face.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import type { JobData } from "../schemas/jobs.ts";
import { jobRow, repeat, type WorkerLoop, type WorkerRow } from "./job.ts";

/** Ms between two polls for delayed sends that are nearly due. */
const POLL_INTERVAL_MS = 1000;

/** Jobs of leads and conversions. */
export const leadJobs: WorkerRow[] = [
  jobRow("campaigns.trigger", fireRules),
  jobRow("campaigns.send", sendRule),
  jobRow("leads.notify", sendLeadNotice),
  jobRow("leads.digest", sendLeadDigest),
  jobRow("leads.erase", eraseEverywhere),
  jobRow("leads.send-code", sendLeadCode),
];

async function eraseEverywhere(runtime: Runtime, person: JobData<"leads.erase">): Promise<void> {
  await erasePurchases(runtime, person);
  await erasePerson(runtime, person);
}

/** What a campaigns worker does continuously: enqueues delayed sends that are nearly due. */
export const leadLoops: WorkerLoop[] = [{ queue: "campaigns", run: promote }];

function promote(runtime: Runtime, signal: AbortSignal): Promise<void> {
  return repeat(POLL_INTERVAL_MS, signal, () =>
    promoteDueSends(runtime).catch((error: Error) =>
      runtime.log.warn({ error: error.message }, "campaign.promotion_failed"),
    ),
  );
}
