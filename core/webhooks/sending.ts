import type { JobData } from "../../schemas/jobs.ts";
import type { DeliveryAttempt, StoredDelivery, StoredWebhook } from "../../schemas/webhooks.ts";
import { Fail } from "../errors.ts";
import type { OutboundAnswer } from "../outbound.ts";
import { job } from "../queues.ts";
import { readRecord } from "../records.ts";
import { keys, script } from "../redis.ts";
import type { Runtime } from "../runtime.ts";
import { readDeliveries } from "./deliveries.ts";
import { forgetQueue, sealPlace, setWebhookStatus } from "./endpoints.ts";
import { askedWait, failuresEndAfter, waitAfter } from "./retries.ts";
import { secretsOf, signedHeaders } from "./signature.ts";

/** Deliveries to one endpoint that are under way at a time, in all processes: only one sends to an endpoint. */
const atOnce = 20;
/** Ms in which an endpoint must have answered (contract 8). */
const patience = 15_000;
/** Ms after which a delivery whose process died is taken again, and in which a sender must give a sign of life. */
const leaseLasts = 20_000;
/** Ms between two looks for more while something is under way. */
const looksEvery = 100;
/** Bytes of an answer that the log keeps. */
const longestSnippet = 1024;
/** Ms in which a quick endpoint's answers gather, so that the next deliveries are taken together. */
const gathers = 2;
/** Ms that an endpoint may be quiet before its sender goes to sleep until the next delivery is due. */
const staysFor = 1000;

type Place = JobData<"webhooks.deliver">;

/**
 * Sends an endpoint what is due until nothing is: one sender an endpoint, so that a slow one delays no other. Whoever finds
 * another sender at work looks again when its lease must have ended, for that one may have died.
 */
export async function sendDeliveries(
  runtime: Runtime,
  place: Place,
  { signal }: { signal: AbortSignal },
): Promise<void> {
  const sender = runtime.id("");
  const underWay = new Set<Promise<void>>();
  for (;;) {
    const [word, ...found] = signal.aborted ? ["stopped"] : await take(runtime, place, { sender, busy: underWay.size });
    if (word === "busy") return look(runtime, place, Date.now() + leaseLasts, "lease");
    if (word === "stopped") return stop(runtime, place, underWay);
    if (word === "asleep" && !(await isDueSoon(runtime, place, found[0] ?? ""))) return;
    if (word === "taken" && !(await start(runtime, place, { ids: found, underWay }))) return;
    if (underWay.size > 0 && (found.length === 0 || underWay.size >= atOnce)) await oneOf(underWay);
  }
}

async function take(
  { redis }: Runtime,
  { handle, webhookId }: Place,
  { sender, busy }: { sender: string; busy: number },
): Promise<string[]> {
  const now = Date.now();
  return script<string[]>(
    redis,
    "takeWebhookDeliveries",
    [keys.webhookQueue(handle, webhookId), keys.webhookAwake(handle, webhookId)],
    [sender, now, now + leaseLasts, atOnce - busy, busy, leaseLasts],
  );
}

/** Starts what was taken; false when the endpoint is gone. */
async function start(
  runtime: Runtime,
  place: Place,
  { ids, underWay }: { ids: string[]; underWay: Set<Promise<void>> },
): Promise<boolean> {
  if (ids.length === 0) return true;
  const { redis } = runtime;
  const { handle, webhookId } = place;
  const [webhook, deliveries] = await Promise.all([
    readRecord<StoredWebhook>(redis, keys.webhook(handle, webhookId)),
    readDeliveries(runtime, handle, ids),
  ]);
  if (webhook === undefined) {
    await forgetQueue(runtime, place);
    return false;
  }
  const secrets = secretsOf(runtime, sealPlace(handle, webhookId), webhook);
  const bodies = await bodiesOf(runtime, handle, deliveries);
  await dropUnknown(runtime, place, { ids, deliveries });
  for (const [at, delivery] of deliveries.entries()) {
    const sending = sendOne(runtime, place, { webhook, secrets, delivery, body: bodies[at] ?? null });
    const watched: Promise<void> = sending
      .catch((error: Error) => runtime.log.warn({ error: error.message }, "webhook.not_settled"))
      .finally(() => underWay.delete(watched));
    underWay.add(watched);
  }
  return true;
}

async function bodiesOf({ redis }: Runtime, handle: string, list: StoredDelivery[]): Promise<(string | null)[]> {
  if (list.length === 0) return [];
  const found = await redis.mget(list.map(({ eventId }) => keys.webhookEvent(handle, eventId)));
  return found.map((content) => content && bodyOf(content));
}

/** What leaves the service of an event, always in the same bytes. */
function bodyOf(content: string): string {
  const { type, timestamp, data } = JSON.parse(content) as Record<string, unknown>;
  return JSON.stringify({ type, timestamp, data });
}

/** Takes out of the queue what is no longer kept. */
async function dropUnknown(
  { redis }: Runtime,
  { handle, webhookId }: Place,
  { ids, deliveries }: { ids: string[]; deliveries: StoredDelivery[] },
): Promise<void> {
  const known = new Set(deliveries.map(({ deliveryId }) => deliveryId));
  const gone = ids.filter((id) => !known.has(id));
  if (gone.length > 0) await redis.zrem(keys.webhookQueue(handle, webhookId), ...gone);
}

interface Sending {
  webhook: StoredWebhook;
  secrets: string[];
  delivery: StoredDelivery;
  body: string | null;
}

/** Makes one attempt and writes what became of it. */
async function sendOne(runtime: Runtime, place: Place, sending: Sending): Promise<void> {
  const { webhook, delivery, body } = sending;
  if (body === null || (webhook.status === "DISABLED" && !delivery.asked))
    return settle(runtime, place, { ...delivery, status: "FAILED", nextAttemptAt: null });
  const { attempt, wait } = await makeAttempt(runtime, sending, body);
  const attempts = [...delivery.attempts, attempt];
  const isTaken = attempt.status !== null && attempt.status >= 200 && attempt.status < 300;
  const next = isTaken || attempt.status === 410 ? undefined : waitAfter(attempts.length, wait);
  await settle(runtime, place, {
    ...delivery,
    attempts,
    status: isTaken ? "SUCCEEDED" : next === undefined ? "FAILED" : "PENDING",
    nextAttemptAt: next === undefined ? null : new Date(Date.now() + next).toISOString(),
  });
  await judge(runtime, place, { webhook, isTaken, isGone: attempt.status === 410 });
}

async function makeAttempt(
  { outbound }: Runtime,
  { webhook, secrets, delivery }: Sending,
  body: string,
): Promise<{ attempt: DeliveryAttempt; wait: number }> {
  const started = Date.now();
  const headers = signedHeaders(secrets, { eventId: delivery.eventId, body });
  const call = { method: "POST", headers, body, patience, limit: longestSnippet, beyond: "drop" } as const;
  const answer = await outbound.request(webhook.url, call).catch((error: Error) => error);
  const attempt = { at: new Date(started).toISOString(), durationMs: Date.now() - started, ...outcomeOf(answer) };
  return { attempt, wait: answer instanceof Error ? 0 : askedWait(answer.headers["retry-after"], Date.now()) };
}

function outcomeOf(answer: OutboundAnswer | Error): Pick<DeliveryAttempt, "status" | "error" | "responseSnippet"> {
  if (answer instanceof Error) return { status: null, error: faultOf(answer), responseSnippet: "" };
  const isTaken = answer.status >= 200 && answer.status < 300;
  return {
    status: answer.status,
    error: isTaken ? null : `The endpoint answered ${answer.status}.`,
    responseSnippet: answer.body.toString("utf8"),
  };
}

function faultOf(error: Error): string {
  return (error instanceof Fail ? (error.details.detail ?? error.code) : error.message).slice(0, 200);
}

/**
 * Writes a delivery as it now is; out of the queue, or due again. No transaction, which costs more than the delivery: a crash
 * between the two sends it again when its lease ends.
 */
async function settle({ redis }: Runtime, { handle, webhookId }: Place, delivery: StoredDelivery): Promise<void> {
  const { deliveryId, nextAttemptAt } = delivery;
  const queue = keys.webhookQueue(handle, webhookId);
  await Promise.all([
    redis.set(keys.webhookDelivery(handle, deliveryId), JSON.stringify(delivery), "KEEPTTL"),
    nextAttemptAt === null ? redis.zrem(queue, deliveryId) : redis.zadd(queue, Date.parse(nextAttemptAt), deliveryId),
  ]);
}

/** Disables an endpoint that is gone or has failed for days; a success ends the count, and enables it again. */
async function judge(
  runtime: Runtime,
  place: Place,
  { webhook, isTaken, isGone }: { webhook: StoredWebhook; isTaken: boolean; isGone: boolean },
): Promise<void> {
  const failing = keys.webhookFailing(place.handle, place.webhookId);
  if (isTaken) {
    await runtime.redis.del(failing);
    if (webhook.status === "DISABLED") await setWebhookStatus(runtime, place, "ACTIVE");
    return;
  }
  await runtime.redis.set(failing, Date.now(), "EX", 30 * 86_400, "NX");
  const since = Number(await runtime.redis.get(failing));
  const isOver = isGone || Date.now() - since >= failuresEndAfter;
  if (isOver && webhook.status === "ACTIVE") await setWebhookStatus(runtime, place, "DISABLED");
}

/** True when it is worth to wait for the next delivery here; else its time is noted as a job. */
async function isDueSoon(runtime: Runtime, place: Place, next: string): Promise<boolean> {
  if (next === "") return false;
  const wait = Number(next) - Date.now();
  if (wait > staysFor) await look(runtime, place, Number(next), "due");
  else await sleep(Math.max(wait, 1));
  return wait <= staysFor;
}

/** Looks at the endpoint again at an instant (real ms), once for each second, or each lease of another sender. */
async function look({ queues }: Runtime, { handle, webhookId }: Place, at: number, why: string): Promise<void> {
  const step = why === "lease" ? leaseLasts : 1000;
  const second = (Math.ceil(at / step) * step) / 1000;
  const delay = Math.max(1, second * 1000 - Date.now());
  await queues.later(
    job("webhooks.deliver", `deliver-${webhookId}-${why}-${second}`, { handle, webhookId }, { delay }),
  );
}

/** Waits for what is under way and leaves the rest to another process. */
async function stop(runtime: Runtime, place: Place, underWay: Set<Promise<void>>): Promise<void> {
  await Promise.allSettled(underWay);
  await runtime.redis.del(keys.webhookAwake(place.handle, place.webhookId));
  const { handle, webhookId } = place;
  await runtime.queues.later(job("webhooks.deliver", runtime.id(`deliver-${webhookId}-`), { handle, webhookId }));
}

/** Until one of them has ended, or it is time to look for more. */
async function oneOf(underWay: Set<Promise<void>>): Promise<void> {
  await Promise.race([...underWay, sleep(looksEvery)]);
  if (underWay.size > atOnce / 2) await sleep(gathers);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
