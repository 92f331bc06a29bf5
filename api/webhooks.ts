import { listDeliveries, redeliver, testWebhook } from "../core/webhooks/deliveries.ts";
import { createWebhook, deleteWebhook, listWebhooks, readWebhook, rotateSecret } from "../core/webhooks/endpoints.ts";
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

/** Endpoints that get events, and what was sent to them: of a handle, and under the path from when all events were of scheduling. */
export const webhookRows: Row[] = [
  ...rowsAt("/v2/handles/:handle/webhooks"),
  ...rowsAt("/v2/handles/:handle/scheduling/webhooks"),
];

function rowsAt(webhooks: `/${string}`): Row[] {
  const one = `${webhooks}/:webhookId` as const;
  return [
    route(`POST ${webhooks}`, creator, newWebhook, createWebhook, {
      status: 201,
      returns: shownWebhookAnswer,
      summary: "Create a webhook",
    }),
    route(`GET ${webhooks}`, creator, webhookListing, listWebhooks, {
      returns: webhookList,
      summary: "List webhooks",
    }),
    route(`GET ${one}`, creator, webhookPath, readWebhook, { returns: webhookAnswer, summary: "Get a webhook" }),
    route(`DELETE ${one}`, creator, webhookPath, deleteWebhook, { summary: "Delete a webhook" }),
    route(`POST ${one}/rotate-secret`, creator, webhookPath, rotateSecret, {
      returns: shownWebhookAnswer,
      summary: "Rotate the signing secret",
    }),
    route(`POST ${one}/test`, creator, webhookPath, testWebhook, {
      status: 202,
      returns: deliveryAnswer,
      summary: "Send a test event",
    }),
    route(`GET ${one}/deliveries`, creator, deliveryListing, listDeliveries, {
      returns: deliveryList,
      summary: "List deliveries",
    }),
    route(`POST ${one}/deliveries/:deliveryId/redeliver`, creator, deliveryPath, redeliver, {
      status: 202,
      returns: deliveryAnswer,
      summary: "Redeliver an event",
    }),
  ];
}
