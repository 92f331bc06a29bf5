import { dispatchEvent, dispatchEvents, sendDeliveries } from "../core/webhooks/face.ts";
import { job, type WorkerRow } from "./job.ts";

/** Jobs of the webhooks noun. */
export const webhookJobs: WorkerRow[] = [
  job("webhooks.dispatch", dispatchEvent),
  job("webhooks.dispatch-all", dispatchEvents),
  job("webhooks.deliver", sendDeliveries),
];
