import type { JobData } from "../../schemas/jobs.ts";
import type { Infer } from "../../schemas/schema.ts";
import type { Delivery, deliveryListing, deliveryPath, StoredDelivery, webhookPath } from "../../schemas/webhooks.ts";
import { testEventType } from "../../schemas/webhooks.ts";
import { Fail } from "../errors.ts";
import { encodeJobs, job } from "../queues.ts";
import { listIds } from "../records.ts";
import { keys, script } from "../redis.ts";
import type { Runtime } from "../runtime.ts";
import { storedWebhook, subscribers } from "./endpoints.ts";
import { eventLasts, webhookEvent } from "./events.ts";

/** Ms for which a call to wake up counts; then the next delivery calls again. */
const callCounts = 60_000;

/** Gives an event to every endpoint that wants its type; again does nothing new. */
export async function dispatchEvent(
  runtime: Runtime,
  { handle, eventId }: JobData<"webhooks.dispatch">,
): Promise<void> {
  const content = await runtime.redis.get(keys.webhookEvent(handle, eventId));
  if (content === null) return;
  const { type } = JSON.parse(content) as { type: string };
  const wanting = await subscribers(runtime, handle, type);
  const deliveries = wanting.map(({ webhookId }) =>
    newDelivery({ deliveryId: `dlv_${eventId}_${webhookId}`, webhookId, eventId, type, asked: false }),
  );
  if (deliveries.length > 0) await queueDeliveries(runtime, handle, deliveries);
}

/** Sends an endpoint a test event, also when it is disabled: a success enables it again. */
export async function testWebhook(runtime: Runtime, input: Infer<typeof webhookPath>): Promise<{ delivery: Delivery }> {
  const { handle, webhookId } = input;
  await storedWebhook(runtime, input);
  const event = webhookEvent(runtime, handle, { type: testEventType, data: { handle, webhookId } });
  await runtime.redis.set(event.key, event.content, "PX", eventLasts);
  return ask(runtime, handle, { webhookId, eventId: event.eventId, type: testEventType });
}

/** Sends an event to its endpoint once more, as a delivery of its own with the same `webhook-id`. */
export async function redeliver(runtime: Runtime, input: Infer<typeof deliveryPath>): Promise<{ delivery: Delivery }> {
  const { handle, webhookId, deliveryId } = input;
  await storedWebhook(runtime, input);
  const [known] = await readDeliveries(runtime, handle, [deliveryId]);
  if (known?.webhookId !== webhookId) throw new Fail("webhook_delivery_not_found");
  return ask(runtime, handle, { webhookId, eventId: known.eventId, type: known.type });
}

/** The deliveries of an endpoint in the last 30 days, the newest first. */
export async function listDeliveries(
  runtime: Runtime,
  input: Infer<typeof deliveryListing>,
): Promise<{ deliveries: Delivery[]; nextCursor: string | null }> {
  await storedWebhook(runtime, input);
  const { ids, nextCursor } = await listIds(
    runtime.redis,
    keys.webhookDeliveries(input.handle, input.webhookId),
    input,
  );
  return { deliveries: (await readDeliveries(runtime, input.handle, ids)).map(shown), nextCursor };
}

/** Deliveries by their ids; those that are gone are left out. */
export async function readDeliveries(
  { redis }: Pick<Runtime, "redis">,
  handle: string,
  ids: string[],
): Promise<StoredDelivery[]> {
  if (ids.length === 0) return [];
  const found = await redis.mget(ids.map((id) => keys.webhookDelivery(handle, id)));
  return found.flatMap((json) => (json === null ? [] : [JSON.parse(json) as StoredDelivery]));
}

async function ask(
  runtime: Runtime,
  handle: string,
  asked: Pick<Delivery, "webhookId" | "eventId" | "type">,
): Promise<{ delivery: Delivery }> {
  const delivery = newDelivery({ ...asked, deliveryId: runtime.id("dlv_"), asked: true });
  await queueDeliveries(runtime, handle, [delivery]);
  return { delivery: shown(delivery) };
}

function newDelivery(
  made: Pick<StoredDelivery, "deliveryId" | "webhookId" | "eventId" | "type" | "asked">,
): StoredDelivery {
  const at = new Date().toISOString();
  return { ...made, status: "PENDING", attempts: [], nextAttemptAt: at, createdAt: at };
}

async function queueDeliveries(runtime: Runtime, handle: string, deliveries: StoredDelivery[]): Promise<void> {
  const wakes = deliveries.map(({ webhookId, deliveryId }) =>
    job("webhooks.deliver", `deliver-${deliveryId}`, { handle, webhookId }),
  );
  const places = deliveries.flatMap(({ webhookId, deliveryId }) => [
    keys.webhookDelivery(handle, deliveryId),
    keys.webhookDeliveries(handle, webhookId),
    keys.webhookQueue(handle, webhookId),
    keys.webhookAwake(handle, webhookId),
  ]);
  const values = deliveries.flatMap((delivery, at) => [
    JSON.stringify(delivery),
    delivery.deliveryId,
    encodeJobs(wakes.slice(at, at + 1)),
  ]);
  await runtime.queues.step(handle, wakes, (outboxKey) =>
    script(runtime.redis, "queueDelivery", [outboxKey, ...places], [Date.now(), eventLasts, callCounts, ...values]),
  );
}

function shown({ asked: _asked, ...delivery }: StoredDelivery): Delivery {
  return delivery;
}
