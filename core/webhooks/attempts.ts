import type { DeliveryAttempt, SigningSecret, StoredDelivery, StoredWebhook } from "../../schemas/webhooks.ts";
import { clip } from "../platform/characters.ts";
import { hour, minute, second } from "../platform/clock.ts";
import { type Limits, retryAfterMs } from "../platform/exchange.ts";
import type { OutboundResponse } from "../platform/outbound.ts";
import type { Runtime } from "../platform/runtime.ts";
import { signedHeaders } from "./signature.ts";

/** Ms between attempts, the first wait first (docs/reference.md, "Webhook delivery"); after the last one the delivery has failed. */
export const RETRY_DELAYS_MS = [5 * second, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 10 * hour];

/** Ms within which an endpoint must respond (docs/reference.md, "Webhook delivery"). */
const TIMEOUT_MS = 15 * second;
/** Bytes of a response to store. */
const MAX_SNIPPET_BYTES = 1024;

export interface DueDelivery {
  webhook: StoredWebhook;
  signers: SigningSecret[];
  delivery: StoredDelivery;
  /** The body to send, always the same bytes; empty if the event is no longer stored. */
  body: string;
}

type CallOutcome = "succeeded" | "failed" | "gone";

/** A delivery after an attempt, and the endpoint's response; empty if it wasn't called. */
export interface AttemptResult {
  delivery: StoredDelivery;
  webhook: StoredWebhook;
  outcome: CallOutcome | "";
}

/** The field of the stored answer to an attempt of a delivery, from 0. */
export function answerField(deliveryId: string, at: number): string {
  return `${deliveryId} ${at}`;
}

/** Makes one attempt, unless the event or its endpoint is out of use. Returns the delivery as it is to be stored. */
export async function callEndpoint(runtime: Runtime, due: DueDelivery): Promise<AttemptResult> {
  const { webhook, delivery, body } = due;
  if (body === "" || (webhook.status === "DISABLED" && !delivery.asked))
    return { delivery: { ...delivery, status: "FAILED", nextAttemptAt: null }, webhook, outcome: "" };
  const { attempt, wait } = await makeAttempt(runtime, due);
  const attempts = [...delivery.attempts, attempt];
  const outcome = callOutcome(attempt.status);
  const next = outcome === "failed" ? waitAfter(attempts.length, wait) : undefined;
  const nextAttemptAt = next === undefined ? null : new Date(Date.now() + next).toISOString();
  const status = outcome === "succeeded" ? "SUCCEEDED" : next === undefined ? "FAILED" : "PENDING";
  return { delivery: { ...delivery, attempts, status, nextAttemptAt }, webhook, outcome };
}

async function makeAttempt(
  { outbound }: Runtime,
  { webhook, signers, delivery, body }: DueDelivery,
): Promise<{ attempt: DeliveryAttempt; wait: number }> {
  const started = Date.now();
  const headers = signedHeaders(signers, { eventId: delivery.eventId, body });
  const limits: Partial<Limits> = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_SNIPPET_BYTES, beyond: "drop" };
  const call = { method: "POST", headers, body, ...limits };
  const response = await outbound.request(webhook.url, call).catch((error: Error) => error);
  const attempt = { at: new Date(started).toISOString(), durationMs: Date.now() - started, ...responseOf(response) };
  return { attempt, wait: response instanceof Error ? 0 : retryAfterMs(response.headers["retry-after"], Date.now()) };
}

function responseOf(response: OutboundResponse | Error): Pick<DeliveryAttempt, "status" | "error" | "responseSnippet"> {
  if (response instanceof Error) return { status: null, error: clip(response.message, 200), responseSnippet: "" };
  const { status, body } = response;
  const error = callOutcome(status) === "succeeded" ? null : `The endpoint answered ${status}.`;
  return { status, error, responseSnippet: body.toString("utf8") };
}

function callOutcome(status: number | null): CallOutcome {
  if (status === 410) return "gone";
  return status !== null && status >= 200 && status < 300 ? "succeeded" : "failed";
}

/** Ms until the next attempt after `made` failed ones; undefined after the last. Includes up to a fifth of jitter. */
export function waitAfter(made: number, retryAfter: number, chance = Math.random()): number | undefined {
  const wait = RETRY_DELAYS_MS[made - 1];
  return wait === undefined ? undefined : Math.max(Math.round(wait * (1 + chance / 5)), retryAfter);
}
