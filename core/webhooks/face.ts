/** What the others may use of webhooks. */
export { dispatchEvent, dispatchEvents, listDeliveries, redeliverEvent, testWebhook } from "./deliveries.ts";
export {
  createSchedulingWebhook,
  createWebhook,
  deleteWebhook,
  listWebhooks,
  readWebhook,
  rebindWebhooks,
  resealWebhooks,
  rotateSecret,
} from "./endpoints.ts";
export { dispatchJobs, eraseEventsOf, eventJob, EVENT_TTL_MS, webhookEvent, type WebhookEvent } from "./events.ts";
export { sendDeliveries } from "./sending.ts";
