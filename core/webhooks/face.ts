/** What other modules may import from webhooks. */
export { dispatchEvents, listDeliveries, redeliverEvent, testWebhook } from "./deliveries.ts";
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
export { eraseEventsOf, eventJob } from "./events.ts";
export { sendDeliveries } from "./sending.ts";
