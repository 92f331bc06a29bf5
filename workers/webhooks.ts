import { dispatchEvent, dispatchEvents } from "../core/webhooks/deliveries.ts";
import { sendDeliveries } from "../core/webhooks/sending.ts";
import { job, type WorkerRow } from "./job.ts";

/** Jobs of the webhooks noun. */
export const webhookJobs: WorkerRow[] = [
  job("webhooks.dispatch", dispatchEvent),
  job("webhooks.dispatch-all", dispatchEvents),
  job("webhooks.deliver", sendDeliveries),
];
