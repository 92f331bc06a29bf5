import {
  createSchedulingWebhook,
  createWebhook,
  deleteWebhook,
  listDeliveries,
  listWebhooks,
  readWebhook,
  redeliverEvent,
  rotateSecret,
  testWebhook,
} from "../core/webhooks/face.ts";
import {
  deliveryAnswer,
  deliveryList,
  deliveryListing,
  deliveryPath,
  newWebhook,
  shownWebhookAnswer,
  webhookAnswer,
  webhookList,
  webhookListing,
  webhookPath,
} from "../schemas/webhooks.ts";
import { creator, type Row, route } from "./route.ts";

/** Endpoints and their deliveries. The older path is an alias and is documented once; there, `events` defaults to the scheduling events. */
export const webhookRows: Row[] = [
  ...rowsAt("/v2/handles/:handle/webhooks", createWebhook),
  ...rowsAt("/v2/handles/:handle/scheduling/webhooks", createSchedulingWebhook).map((row) => ({
    ...row,
    hidden: true,
  })),
];

function rowsAt(webhooks: `/${string}`, create: typeof createWebhook): Row[] {
  const one = `${webhooks}/:webhookId` as const;
  return [
    route(`POST ${webhooks}`, creator, newWebhook, create, {
      status: 201,
      wrote: ({ webhook }) => webhook.webhookId,
      returns: shownWebhookAnswer,
      summary: "Create a webhook",
      description:
        "The signing secret (`whsec_…`) is in this answer only. Without `events` the webhook receives every event. A handle has at most 50 webhooks.",
    }),
    route(`GET ${webhooks}`, creator, webhookListing, listWebhooks, {
      returns: webhookList,
      summary: "List webhooks",
    }),
    route(`GET ${one}`, creator, webhookPath, readWebhook, {
      returns: webhookAnswer,
      summary: "Get a webhook",
      failures: ["webhook_not_found"],
    }),
    route(`DELETE ${one}`, creator, webhookPath, deleteWebhook, {
      summary: "Delete a webhook",
      failures: ["webhook_not_found"],
    }),
    route(`POST ${one}/rotate-secret`, creator, webhookPath, rotateSecret, {
      returns: shownWebhookAnswer,
      summary: "Rotate the signing secret",
      description: "Answers the new secret. Earlier secrets sign as well for 24 h.",
      failures: ["webhook_not_found", "rate_limited"],
    }),
    route(`POST ${one}/test`, creator, webhookPath, testWebhook, {
      status: 202,
      returns: deliveryAnswer,
      summary: "Send a test event",
      description: "A success enables a disabled webhook again.",
      failures: ["webhook_not_found"],
    }),
    route(`GET ${one}/deliveries`, creator, deliveryListing, listDeliveries, {
      returns: deliveryList,
      summary: "List deliveries",
      description: "Newest first, of the last 30 days.",
      failures: ["webhook_not_found"],
    }),
    route(`POST ${one}/deliveries/:deliveryId/redeliver`, creator, deliveryPath, redeliverEvent, {
      status: 202,
      returns: deliveryAnswer,
      summary: "Redeliver an event",
      failures: ["webhook_not_found", "not_found"],
    }),
  ];
}
