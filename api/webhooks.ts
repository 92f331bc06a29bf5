import * as core from "../core/webhooks/face.ts";
import { listOf, listQuery, nothing, object } from "../schemas/schema.ts";
import * as shape from "../schemas/webhooks.ts";
import { creator, type Row, route } from "./route.ts";

/** Endpoints and their deliveries. The older path is an alias: of its rows only the first, whose events differ, is documented. */
export const webhookRows: Row[] = [
  ...rowsAt("/v2/handles/:handle/webhooks", core.createWebhook, "every event"),
  ...rowsAt("/v2/handles/:handle/scheduling/webhooks", core.createSchedulingWebhook, "the events of scheduling").map(
    (row, at) => ({ ...row, hidden: at > 0 }),
  ),
];

type WebhooksPath = `/v2/handles/:handle/${"" | "scheduling/"}webhooks`;

function rowsAt(webhooks: WebhooksPath, create: typeof core.createWebhook, events: string): Row[] {
  const one = `${webhooks}/:webhookId` as const;
  return [
    route(`POST ${webhooks}`, creator, shape.newWebhook, create, {
      status: 201,
      createdId: ({ webhook }) => webhook.webhookId,
      returns: object({ webhook: shape.webhookWithSecret }),
      summary: "Create a webhook",
      description: `The signing secret (\`whsec_…\`) is in this answer only. Without \`events\` the webhook receives ${events}. A handle has at most 50 webhooks.`,
    }),
    route(`GET ${webhooks}`, creator, listQuery, core.listWebhooks, { returns: listOf("webhooks", shape.webhook) }),
    route(`GET ${one}`, creator, nothing, core.readWebhook, { returns: object({ webhook: shape.webhook }) }),
    route(`DELETE ${one}`, creator, nothing, core.deleteWebhook),
    route(`POST ${one}/rotate-secret`, creator, nothing, core.rotateSecret, {
      returns: object({ webhook: shape.webhookWithSecret }),
      summary: "Rotate the signing secret",
      description: "Answers the new secret. Earlier secrets sign as well for 24 h.",
      failures: ["rate_limited"],
    }),
    route(`POST ${one}/test`, creator, nothing, core.testWebhook, {
      status: 202,
      returns: object({ delivery: shape.webhookDelivery }),
      summary: "Send a test event",
      description: "A success enables a disabled webhook again.",
    }),
    route(`GET ${one}/deliveries`, creator, listQuery, core.listDeliveries, {
      returns: listOf("deliveries", shape.webhookDelivery),
      description: "Newest first, of the last 30 days.",
    }),
    route(`POST ${one}/deliveries/:deliveryId/redeliver`, creator, nothing, core.redeliverEvent, {
      status: 202,
      returns: object({ delivery: shape.webhookDelivery }),
      failures: ["webhook_not_found", "not_found"],
    }),
  ];
}
