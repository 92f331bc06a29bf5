import type { JobData } from "../../schemas/jobs.ts";
import { type Input, onlyOf } from "../../schemas/schema.ts";
import {
  type Delivery,
  type DeliveryAttempt,
  type StoredDelivery,
  testEventType,
  webhookDelivery,
} from "../../schemas/webhooks.ts";
import { Fail } from "../platform/errors.ts";
import type { Job, Runtime, Store } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { type Listed, type ListInput, listIds } from "../store/paging.ts";
import { pipelined } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";
import { answerField } from "./attempts.ts";
import { type WebhookPath, webhookRecords } from "./endpoints.ts";
import { createdAtOf, EVENT_TTL_MS, eventJob } from "./events.ts";

/** Ms for which a wake-up call counts; then the next delivery calls again. */
const CALL_TTL_MS = 60_000;

/** Dispatches events to every endpoint that subscribes to their types and was enabled when they were written; idempotent. */
export async function dispatchEvents(
  runtime: Runtime,
  { handle, eventIds }: JobData<"webhooks.dispatch-all">,
): Promise<void> {
  const [events, endpoints] = await Promise.all([
    readEvents(runtime, handle, eventIds),
    webhookRecords.all(runtime, handle),
  ]);
  const listening = endpoints.filter(({ status }) => status === "ACTIVE");
  await Promise.all(
    listening.map(({ webhookId, events: wanted }) => {
      const own = events.filter(({ about, audience }) => {
        const isFor = audience?.includes(webhookId) ?? true;
        return isFor && (wanted as string[]).includes(about.type);
      });
      const made = own.map(({ about }) => ({
        ...about,
        deliveryId: `dlv_${about.eventId}_${webhookId}`,
        asked: false,
      }));
      return made.length > 0 ? queueDeliveries(runtime, { handle, webhookId }, made) : undefined;
    }),
  );
}

/** Events that are still stored, with the endpoints that they are for; those of earlier versions are for all. */
async function readEvents({ redis }: Runtime, handle: string, eventIds: string[]) {
  const [contents, audiences] = await Promise.all([
    redis.mget(eventIds.map((eventId) => keys.webhookEvent(handle, eventId))),
    redis.mget(eventIds.map((eventId) => keys.webhookAudience(handle, eventId))),
  ]);
  return eventIds.flatMap((eventId, at) =>
    contents[at] ? [{ about: aboutEvent(eventId, contents[at]), audience: audiences[at]?.split(" ") }] : [],
  );
}

type EventData = Partial<Record<"booking" | "lead" | "conversion" | "email", Record<string, string>>>;

/** An event's type and subject: deliveries of one subject are sent in sequence. */
function aboutEvent(eventId: string, content: string): Pick<StoredDelivery, "eventId" | "type" | "subject"> {
  const { type, data = {} } = JSON.parse(content) as { type: string; data?: EventData };
  const { booking, lead, conversion, email } = data;
  const subject = booking?.bookingUid ?? (lead ?? conversion)?.leadId ?? email?.messageId;
  return { eventId, type, ...(subject === undefined ? {} : { subject }) };
}

/** Sends an endpoint a test event, even if it is disabled: a success enables it again. */
export async function testWebhook(runtime: Runtime, input: WebhookPath): Promise<{ delivery: Delivery }> {
  const { handle, webhookId } = input;
  await webhookRecords.read(runtime, handle, webhookId);
  const { event, data } = eventJob(runtime, handle, { type: testEventType, data: { handle, webhookId } });
  await runtime.redis.set(event.key, event.content, "PX", event.retentionMs);
  return deliver(runtime, input, { eventId: data.eventId, type: testEventType });
}

/** Sends an event to its endpoint again, as a new delivery with the same `webhook-id`. */
export async function redeliverEvent(
  runtime: Runtime,
  input: Input<"handle" | "webhookId" | "deliveryId">,
): Promise<{ delivery: Delivery }> {
  const { handle, webhookId, deliveryId } = input;
  await webhookRecords.read(runtime, handle, webhookId);
  const [known] = await readDeliveries(runtime, handle, [deliveryId]);
  if (known?.webhookId !== webhookId) throw new Fail("not_found", { detail: "The delivery does not exist." });
  return deliver(runtime, input, { eventId: known.eventId, type: known.type });
}

/** The deliveries of an endpoint in the last 30 days, newest first. */
export async function listDeliveries(
  runtime: Runtime,
  input: ListInput<keyof WebhookPath>,
): Promise<Listed<"deliveries", Delivery>> {
  await webhookRecords.read(runtime, input.handle, input.webhookId);
  const { ids, nextCursor } = await listIds(runtime, keys.webhookDeliveries(input.handle, input.webhookId), input);
  const stored = await readDeliveries(runtime, input.handle, ids);
  const deliveries = stored.map((one) => onlyOf(webhookDelivery, one));
  return { deliveries: await withAnswers(runtime, input.handle, deliveries), nextCursor };
}

/** Deliveries with the stored answers to their attempts; those of earlier versions have them. */
async function withAnswers({ redis }: Runtime, handle: string, deliveries: Delivery[]): Promise<Delivery[]> {
  const stored = await pipelined(redis, (pipeline) => {
    for (const { eventId, deliveryId, attempts } of deliveries)
      for (const at of attempts.keys())
        pipeline.hget(keys.webhookAnswers(handle, eventId), answerField(deliveryId, at));
  });
  const answers = stored as (string | null)[];
  const filled = (attempt: DeliveryAttempt): DeliveryAttempt => {
    const answer = answers.shift();
    return { ...attempt, responseSnippet: attempt.responseSnippet || answer || "" };
  };
  return deliveries.map((one) => ({ ...one, attempts: one.attempts.map(filled) }));
}

/** Deliveries by their ids, without missing ones. */
async function readDeliveries({ redis }: Runtime, handle: string, ids: string[]): Promise<StoredDelivery[]> {
  if (ids.length === 0) return [];
  const found = await redis.mget(ids.map((id) => keys.webhookDelivery(handle, id)));
  return found.flatMap((json) => (json === null ? [] : [JSON.parse(json) as StoredDelivery]));
}

/** Queues a delivery that the owner requested. */
async function deliver(
  runtime: Runtime,
  path: WebhookPath,
  event: Pick<Delivery, "eventId" | "type">,
): Promise<{ delivery: Delivery }> {
  const made = { ...event, deliveryId: runtime.id("dlv_"), asked: true };
  const [delivery] = await queueDeliveries(runtime, path, [made]);
  return { delivery: onlyOf(webhookDelivery, delivery as StoredDelivery) };
}

/** Adds deliveries to their endpoint's queue and wakes its sender. */
async function queueDeliveries(
  runtime: Runtime,
  { handle, webhookId }: WebhookPath,
  made: Pick<StoredDelivery, "deliveryId" | "eventId" | "type" | "asked" | "subject">[],
): Promise<StoredDelivery[]> {
  const now = Date.now();
  const at = new Date(now).toISOString();
  const fresh = { webhookId, status: "PENDING", nextAttemptAt: at, createdAt: at } as const;
  const deliveries = made.map((one): StoredDelivery => ({ ...one, ...fresh, attempts: [] }));
  // All are due at once, in the order of their events' creation. Redis orders those of a ms by their ids.
  const written = deliveries.map((one) => {
    const due = one.asked ? now : Math.min(now, createdAtOf(one.eventId));
    return { id: one.deliveryId, json: JSON.stringify(one), due };
  });
  const input = { now, keepMs: EVENT_TTL_MS, callMs: CALL_TTL_MS, deliveries: written };
  await runtime.queues.step(handle, [wakeJob(runtime, handle, webhookId)], (outbox, jobs) => {
    const scriptKeys = {
      delivery: keys.webhookDelivery(handle, ""),
      list: keys.webhookDeliveries(handle, webhookId),
      queue: keys.webhookQueue(handle, webhookId),
      awake: keys.webhookAwake(handle, webhookId),
    };
    return scripts.queueDeliveries(runtime.redis, { ...scriptKeys, outbox }, { ...input, jobs });
  });
  return deliveries;
}

/** Wakes the sender of an endpoint: a separate job each time. */
export function wakeJob({ id }: Store, handle: string, webhookId: string): Job {
  return job("webhooks.deliver", id(`deliver-${webhookId}-`), { handle, webhookId });
}
