import { dispatchEvent, dispatchEvents, sendDeliveries } from "../core/webhooks/face.ts";
import { jobRow, type WorkerRow } from "./job.ts";

/** Jobs of the webhooks noun. */
export const webhookJobs: WorkerRow[] = [
  jobRow("webhooks.dispatch", dispatchEvent),
  jobRow("webhooks.dispatch-all", dispatchEvents),
  jobRow("webhooks.deliver", sendDeliveries),
];
