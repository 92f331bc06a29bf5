import type { testEventType, WebhookEventType } from "../../schemas/webhooks.ts";
import type { Job, Runtime } from "../platform/runtime.ts";
import { job } from "../store/outbox.ts";
import { keys } from "../store/keys.ts";

/** Ms for which events and deliveries are kept (contract 8). */
export const eventLasts = 30 * 86_400_000;

/** An event that is about to be written: its content goes under its key for `eventLasts`, its job into the outbox, in one step. */
export interface WebhookEvent {
  eventId: string;
  key: string;
  content: string;
  job: Job;
}

/** Makes an event of a handle; `timestamp` is an instant of domain time. The one who has the cause writes it. */
export function webhookEvent(
  { id, now }: Pick<Runtime, "id" | "now">,
  handle: string,
  { type, data }: { type: WebhookEventType | typeof testEventType; data: unknown },
): WebhookEvent {
  const eventId = id("evt_");
  return {
    eventId,
    key: keys.webhookEvent(handle, eventId),
    content: JSON.stringify({ type, timestamp: new Date(now()).toISOString(), data }),
    job: job("webhooks.dispatch", `dispatch-${eventId}`, { handle, eventId }),
  };
}
