/*
 * Not on engines/lanes, for a measured reason. With one leased lane for each endpoint (claimed, renewed and released by three more scripts,
 * in a loop that polls) the tests passed, but the code grew by 196 lines. Here a job wakes the sender, and the turn that stores results
 * renews its lease in the same round trip.
 */
import { setTimeout } from "node:timers/promises";
import type { JobData } from "../../schemas/jobs.ts";
import type { DeliveryAttempt, StoredDelivery, StoredWebhook } from "../../schemas/webhooks.ts";
import type { OutboundAnswer } from "../platform/outbound.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { isRedisAway } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";
import { wakeJob } from "./deliveries.ts";
import { forgetQueue, setWebhookStatus } from "./endpoints.ts";
import { askedWait, DISABLE_AFTER_MS, waitAfter } from "./retries.ts";
import { type Signer, sealedPlace, signedHeaders, signersOf } from "./signature.ts";

/** Concurrent deliveries per endpoint over all processes: only one sender works for an endpoint. */
const MAX_CONCURRENT_DELIVERIES = 20;
/** Ms within which an endpoint must respond (docs/reference.md, "Webhook delivery"). */
const TIMEOUT_MS = 15_000;
/** Ms after which a delivery whose process died is taken again, and in which a sender must send a heartbeat. */
const LEASE_MS = 20_000;
/** Ms between two polls with running deliveries, and between two heartbeats of a sender at its limit. */
const POLL_INTERVAL_MS = 100;
const HEARTBEAT_INTERVAL_MS = 2000;
/** Bytes of a response to store. */
const MAX_SNIPPET_BYTES = 1024;
/** Ms in which a quick endpoint's answers gather, so that the next deliveries are taken together. */
const GATHER_MS = 4;
/** Longest wait in ms for the next delivery; before a longer one the sender goes to sleep. */
const MAX_IDLE_MS = 1000;
/** Ms for which the first failure of an endpoint is known. */
const FIRST_FAILURE_TTL_MS = 30 * 86_400_000;
/** Ms that a delivery waits for an earlier one of its subject: together with its timeout less than its lease. */
const EARLIER_WAIT_MS = 4000;
/** Ms between two attempts of a turn without Redis. */
const RETRY_INTERVAL_MS = 500;

type DeliveryRef = JobData<"webhooks.deliver">;
type TurnInput = Parameters<typeof scripts.turnWebhookSender>[2];
type TurnReply = Awaited<ReturnType<typeof scripts.turnWebhookSender>>;

/** An endpoint in the version that its sender has. */
interface Endpoint {
  version: string;
  webhook: StoredWebhook;
  signers: Signer[];
}

type Outcome = "succeeded" | "failed" | "gone";

/** A delivery after an attempt, and the endpoint's response; empty if it wasn't called. */
interface Ended {
  delivery: StoredDelivery;
  webhook: StoredWebhook;
  outcome: Outcome | "";
}

/** The sender of an endpoint and its work in progress. */
interface Sender {
  id: string;
  place: DeliveryRef;
  endpoint?: Endpoint;
  running: Set<Promise<void>>;
  /** Results that are not stored yet. */
  ended: Ended[];
  /** The newest running delivery of each subject. */
  newest: Map<string, Promise<void>>;
}

/**
 * Sends an endpoint's due deliveries until none is due. There is one sender per endpoint, so that a slow one delays no other. A process
 * that finds another sender at work checks again when that sender's lease must have ended, since it may have died. At the signal it waits
 * for running deliveries and leaves the rest to another process.
 */
export async function sendDeliveries(
  runtime: Runtime,
  place: DeliveryRef,
  { signal }: { signal: AbortSignal },
): Promise<void> {
  const sender: Sender = { id: runtime.id(""), place, running: new Set(), ended: [], newest: new Map() };
  while (await takeTurn(runtime, sender, signal)) if (sender.running.size > 0) await oneOf(sender);
}

/** Stores results and starts due deliveries; false when this sender has finished. */
async function takeTurn(runtime: Runtime, sender: Sender, signal: AbortSignal): Promise<boolean> {
  const { place } = sender;
  const { reply, ended } = await turn(runtime, sender, signal);
  const [since, word] = reply;
  await updateStatus(runtime, place, { ended, since: Number(since) }).catch((error: Error) =>
    runtime.log.warn({ error: error.message }, "webhook.status_update_failed"),
  );
  if (reply[1] === "taken") start(runtime, sender, reply);
  if (word === "gone") await forgetQueue(runtime, place);
  if (reply[1] === "asleep") return staysUp(runtime, place, { next: reply[2], signal });
  if (word === "taken" || (word === "busy" && sender.running.size + sender.ended.length > 0)) return true;
  if (word === "busy") await lookAgain(runtime, place, { at: Date.now() + LEASE_MS, why: "lease" });
  return false;
}

/** One turn in Redis, and the results that it stored. Without Redis a sender keeps its deliveries as long as their leases last. */
async function turn(
  { redis, log }: Runtime,
  sender: Sender,
  signal: AbortSignal,
): Promise<{ reply: TurnReply; ended: Ended[] }> {
  const since = Date.now();
  const ended: Ended[] = [];
  for (let tries = 1; ; tries++) {
    ended.push(...sender.ended.splice(0));
    const busy = sender.running.size;
    try {
      const reply = await scripts.turnWebhookSender(redis, turnKeys(sender.place), {
        ...{ senderId: sender.id, now: Date.now(), leaseMs: LEASE_MS, failureMs: FIRST_FAILURE_TTL_MS },
        ...{ busy, max: signal.aborted ? 0 : MAX_CONCURRENT_DELIVERIES - busy },
        ...{ version: sender.endpoint?.version ?? "", ended: ended.map(endedOf) },
      });
      return { reply, ended };
    } catch (error) {
      if (!isRedisAway(error) || signal.aborted || Date.now() > since + LEASE_MS) throw error;
      if (tries === 1) log.warn({ error: (error as Error).message }, "webhook.result_save_failed");
      await setTimeout(RETRY_INTERVAL_MS);
    }
  }
}

function turnKeys({ handle, webhookId }: DeliveryRef): Parameters<typeof scripts.turnWebhookSender>[1] {
  return {
    queue: keys.webhookQueue(handle, webhookId),
    awake: keys.webhookAwake(handle, webhookId),
    failing: keys.webhookFailing(handle, webhookId),
    endpoint: keys.webhook(handle, webhookId),
    delivery: keys.webhookDelivery(handle, ""),
    event: keys.webhookEvent(handle, ""),
  };
}

/** The result of a delivery, as the script expects it. */
function endedOf({ delivery, outcome }: Ended): TurnInput["ended"][number] {
  const { deliveryId: id, nextAttemptAt } = delivery;
  const due = nextAttemptAt === null ? undefined : Date.parse(nextAttemptAt);
  return { id, json: JSON.stringify(delivery), due, outcome };
}

/** Starts the leased deliveries; the endpoint's JSON is present only if its version is new. */
function start(
  runtime: Runtime,
  sender: Sender,
  [, , version, json, ...found]: Extract<TurnReply, [string, "taken", ...unknown[]]>,
): void {
  if (json) sender.endpoint = endpointOf(runtime, sender.place, { version, json });
  for (const [stored, body] of found) {
    const delivery = JSON.parse(stored) as StoredDelivery;
    sendInOrder(runtime, sender, { endpoint: sender.endpoint as Endpoint, delivery, body });
  }
}

/** Sends a delivery after the earlier one of its subject, so that a receiver gets them in order of creation. */
function sendInOrder(runtime: Runtime, sender: Sender, sending: Sending): void {
  const { subject = sending.delivery.deliveryId } = sending.delivery;
  const { newest, running } = sender;
  const sent = sendOne(runtime, sender, { ...sending, earlier: newest.get(subject) });
  newest.set(subject, sent);
  running.add(sent);
  void sent.then(() => {
    running.delete(sent);
    if (newest.get(subject) === sent) newest.delete(subject);
  });
}

function endpointOf(
  runtime: Runtime,
  { handle, webhookId }: DeliveryRef,
  { version, json }: { version: string; json: string },
): Endpoint {
  const webhook = JSON.parse(json) as StoredWebhook;
  return { version, webhook, signers: signersOf(runtime, sealedPlace(handle, webhookId), webhook) };
}

interface Sending {
  endpoint: Endpoint;
  delivery: StoredDelivery;
  /** The body to send, always the same bytes; empty if the event is no longer stored. */
  body: string;
  /** The previous delivery of the same subject, while it is running. */
  earlier?: Promise<void> | undefined;
}

/** Makes one attempt; the sender's next turn stores the result. Never rejects. */
async function sendOne(runtime: Runtime, sender: Sender, sending: Sending): Promise<void> {
  try {
    if (sending.earlier) await atMost(sending.earlier, EARLIER_WAIT_MS);
    sender.ended.push(await attempted(runtime, sending));
  } catch (error) {
    runtime.log.warn({ error: (error as Error).message }, "webhook.result_save_failed");
  }
}

async function attempted(runtime: Runtime, sending: Sending): Promise<Ended> {
  const { delivery, body } = sending;
  const { webhook } = sending.endpoint;
  if (body === "" || (webhook.status === "DISABLED" && !delivery.asked))
    return { delivery: { ...delivery, status: "FAILED", nextAttemptAt: null }, webhook, outcome: "" };
  const { attempt, wait } = await makeAttempt(runtime, sending);
  const attempts = [...delivery.attempts, attempt];
  const outcome = outcomeOf(attempt.status);
  const next = outcome === "failed" ? waitAfter(attempts.length, wait) : undefined;
  const nextAttemptAt = next === undefined ? null : new Date(Date.now() + next).toISOString();
  const status = outcome === "succeeded" ? "SUCCEEDED" : next === undefined ? "FAILED" : "PENDING";
  return { delivery: { ...delivery, attempts, status, nextAttemptAt }, webhook, outcome };
}

async function makeAttempt(
  { outbound }: Runtime,
  { endpoint: { webhook, signers }, delivery, body }: Sending,
): Promise<{ attempt: DeliveryAttempt; wait: number }> {
  const started = Date.now();
  const headers = signedHeaders(signers, { eventId: delivery.eventId, body });
  const limits = { timeoutMs: TIMEOUT_MS, limit: MAX_SNIPPET_BYTES, beyond: "drop" } as const;
  const call = { method: "POST", headers, body, ...limits } as const;
  const answer = await outbound.request(webhook.url, call).catch((error: Error) => error);
  const attempt = { at: new Date(started).toISOString(), durationMs: Date.now() - started, ...seen(answer) };
  return { attempt, wait: answer instanceof Error ? 0 : askedWait(answer.headers["retry-after"], Date.now()) };
}

function seen(answer: OutboundAnswer | Error): Pick<DeliveryAttempt, "status" | "error" | "responseSnippet"> {
  if (answer instanceof Error) return { status: null, error: answer.message.slice(0, 200), responseSnippet: "" };
  const { status, body } = answer;
  const error = outcomeOf(status) === "succeeded" ? null : `The endpoint answered ${status}.`;
  return { status, error, responseSnippet: body.toString("utf8") };
}

function outcomeOf(status: number | null): Outcome {
  if (status === 410) return "gone";
  return status !== null && status >= 200 && status < 300 ? "succeeded" : "failed";
}

/**
 * Disables an endpoint that is gone or has failed for days; a success enables it again. `since`: its first failure after a success, or 0.
 */
async function updateStatus(
  runtime: Runtime,
  place: DeliveryRef,
  { ended, since }: { ended: Ended[]; since: number },
): Promise<void> {
  const isOver = since > 0 && Date.now() - since >= DISABLE_AFTER_MS;
  const disables = ({ outcome }: Ended) => outcome === "gone" || (outcome === "failed" && isOver);
  if (ended.some(({ webhook, outcome }) => webhook.status === "DISABLED" && outcome === "succeeded"))
    await setWebhookStatus(runtime, place, "ACTIVE");
  else if (ended.some((one) => one.webhook.status === "ACTIVE" && disables(one)))
    await setWebhookStatus(runtime, place, "DISABLED");
}

/** True if waiting here for the next delivery is worthwhile; else a job stores its time and, at the signal, another process takes over. */
async function staysUp(
  runtime: Runtime,
  place: DeliveryRef,
  { next, signal }: { next: string; signal: AbortSignal },
): Promise<boolean> {
  if (next === "") return false;
  const wait = Number(next) - Date.now();
  const isHere = !signal.aborted && wait <= MAX_IDLE_MS;
  if (isHere) await setTimeout(Math.max(wait, 1));
  else if (signal.aborted) await runtime.queues.later(wakeJob(runtime, place.handle, place.webhookId));
  else await lookAgain(runtime, place, { at: Number(next), why: "due" });
  return isHere;
}

/** Polls the endpoint again at an instant (real ms), once per second, or once per lease of another sender. */
async function lookAgain(
  { queues }: Runtime,
  { handle, webhookId }: DeliveryRef,
  { at, why }: { at: number; why: "due" | "lease" },
): Promise<void> {
  const step = why === "lease" ? LEASE_MS : 1000;
  const second = (Math.ceil(at / step) * step) / 1000;
  const delay = Math.max(1, second * 1000 - Date.now());
  await queues.later(
    job("webhooks.deliver", `deliver-${webhookId}-${why}-${second}`, { handle, webhookId }, { delay }),
  );
}

/** Waits for a result, or for the next poll. */
async function oneOf({ running, ended }: Sender): Promise<void> {
  const pollMs = running.size < MAX_CONCURRENT_DELIVERIES ? POLL_INTERVAL_MS : HEARTBEAT_INTERVAL_MS;
  if (ended.length === 0) await atMost(Promise.race(running), pollMs);
  if (running.size + ended.length > MAX_CONCURRENT_DELIVERIES / 4) await setTimeout(GATHER_MS);
}

async function atMost(work: Promise<void>, ms: number): Promise<void> {
  const timer = new AbortController();
  const late = setTimeout(ms, undefined, { signal: timer.signal }).catch(() => undefined);
  await Promise.race([work, late]);
  timer.abort();
}
