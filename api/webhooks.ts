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

const webhooks = "/v2/handles/:handle/scheduling/webhooks";
const one = `${webhooks}/:webhookId`;

/** Endpoints that get scheduling events, and what was sent to them. */
export const webhookRows: Row[] = [
  route(`POST ${webhooks}`, creator, newWebhook, createWebhook, {
    status: 201,
    returns: shownWebhookAnswer,
    summary: "Register a webhook; its secret is shown once",
  }),
  route(`GET ${webhooks}`, creator, webhookListing, listWebhooks, {
    returns: webhookList,
    summary: "List the webhooks",
  }),
  route(`GET ${one}`, creator, webhookPath, readWebhook, { returns: webhookAnswer, summary: "Read a webhook" }),
  route(`DELETE ${one}`, creator, webhookPath, deleteWebhook, { summary: "Delete a webhook" }),
  route(`POST ${one}/rotate-secret`, creator, webhookPath, rotateSecret, {
    returns: shownWebhookAnswer,
    summary: "Give a webhook a new secret; the old one signs too for 24 hours",
  }),
  route(`POST ${one}/test`, creator, webhookPath, testWebhook, {
    status: 202,
    returns: deliveryAnswer,
    summary: "Send a test event; a success enables a disabled webhook again",
  }),
  route(`GET ${one}/deliveries`, creator, deliveryListing, listDeliveries, {
    returns: deliveryList,
    summary: "List the deliveries of the last 30 days",
  }),
  route(`POST ${one}/deliveries/:deliveryId/redeliver`, creator, deliveryPath, redeliver, {
    status: 202,
    returns: deliveryAnswer,
    summary: "Send an event once more",
  }),
];
