// Not on engines/lanes: a job wakes the sender, and one round trip stores results and renews its lease.
import { setTimeout } from "node:timers/promises";
import type { StoredDelivery, StoredWebhook } from "../../schemas/webhooks.ts";
import { waitAtMost } from "../platform/clock.ts";
import type { JobAttempt, Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { isRedisAway } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";
import { type AttemptResult, answerField, callEndpoint, type DueDelivery } from "./attempts.ts";
import { wakeJob } from "./deliveries.ts";
import { forgetQueue, setWebhookStatus, type WebhookPath } from "./endpoints.ts";
import { sealBinding, signersOf } from "./signature.ts";

/** Concurrent deliveries per endpoint over all processes: only one sender works for an endpoint. */
const MAX_CONCURRENT_DELIVERIES = 20;
/** Concurrent deliveries of a process, which its senders share unless they wait for the next one; each may make one. */
const MAX_PROCESS_DELIVERIES = 10_000;
let senders = 0;
/** The real ms until which a sender of this process waits for the next delivery of an endpoint. */
const waiting = new Map<string, number>();
/** Ms after which a delivery whose process died is taken again, and in which a sender must send a heartbeat. */
const LEASE_MS = 20_000;
/**
 * Ms between two polls with running deliveries. It doubles while none starts, so that hanging endpoints cost Redis little; a sender at its
 * limit waits longest.
 */
const MIN_POLL_MS = 100;
const MAX_POLL_MS = 2000;
/** Ms in which a quick endpoint's answers gather, so that the next deliveries are taken together. */
const GATHER_MS = 4;
/**
 * Longest wait in ms for the next delivery; before a longer one the sender goes to sleep. Clocks of processes may differ by as much: a job
 * that begins before its instant can't add itself again.
 */
const MAX_IDLE_MS = 10_000;
/** Ms of uninterrupted failures after which an endpoint is disabled (docs/reference.md, "Webhook delivery"). */
const DISABLE_AFTER_MS = 5 * 86_400_000;
/** Ms for which the first failure of an endpoint is known. */
const FIRST_FAILURE_TTL_MS = 30 * 86_400_000;
/** Ms that a delivery waits for an earlier one of its subject: together with its timeout less than its lease. */
const EARLIER_WAIT_MS = 4000;
/** Ms between two attempts of a turn without Redis. */
const RETRY_INTERVAL_MS = 500;

type TurnReply = Awaited<ReturnType<typeof scripts.turnWebhookSender>>;

/**
 * Sends an endpoint's due deliveries until none is due. There is one sender per endpoint, so that a slow one delays no other. A process
 * that finds another sender at work checks again when that sender's lease must have ended, since it may have died. At the signal it waits
 * for running deliveries and leaves the rest to another process.
 */
export async function sendDeliveries(
  runtime: Runtime,
  path: WebhookPath,
  { signal }: Pick<JobAttempt, "signal">,
): Promise<void> {
  const sender = new Sender(runtime, path, signal);
  senders++;
  try {
    while (await sender.takeTurn()) await sender.waitForResult();
  } finally {
    senders--;
  }
}

/** The sender of an endpoint and its work in progress. */
class Sender {
  readonly #runtime: Runtime;
  readonly #path: WebhookPath;
  readonly #signal: AbortSignal;
  readonly #id: string;
  readonly #running = new Set<Promise<void>>();
  /** Results that are not stored yet. */
  readonly #results: AttemptResult[] = [];
  /** The newest running delivery of each subject. */
  readonly #newest = new Map<string, Promise<void>>();
  #pollMs = MIN_POLL_MS;

  constructor(runtime: Runtime, path: WebhookPath, signal: AbortSignal) {
    this.#runtime = runtime;
    this.#path = path;
    this.#signal = signal;
    this.#id = runtime.id("");
  }

  /** Stores results and starts due deliveries; false when this sender has finished. */
  async takeTurn(): Promise<boolean> {
    const { reply, results } = await this.#turn();
    await this.#updateStatus(results, Number(reply[0])).catch((error: Error) =>
      this.#runtime.log.warn({ error: error.message }, "webhook.status_update_failed"),
    );
    if (reply[1] === "asleep") return this.#staysUp(reply[2]);
    if (reply[1] === "awake") this.#start(reply);
    if (reply[1] === "gone") await forgetQueue(this.#runtime, this.#path);
    if (reply[1] !== "busy") return reply[1] === "awake";
    const hasWork = this.#running.size + this.#results.length > 0;
    if (!hasWork) await this.#pollAgain(Date.now() + LEASE_MS, "lease");
    return hasWork;
  }

  /** Waits for a result, or for the next poll. */
  async waitForResult(): Promise<void> {
    if (this.#running.size === 0) return;
    const pollMs = this.#running.size < MAX_CONCURRENT_DELIVERIES ? this.#pollMs : MAX_POLL_MS;
    this.#pollMs = Math.min(2 * pollMs, MAX_POLL_MS);
    if (this.#results.length === 0) await waitAtMost(Promise.race(this.#running), pollMs);
    if (this.#running.size + this.#results.length > MAX_CONCURRENT_DELIVERIES / 4) await setTimeout(GATHER_MS);
  }

  /** One turn in Redis, and the results that it stored. Without Redis a sender keeps its deliveries as long as their leases last. */
  async #turn(): Promise<{ reply: TurnReply; results: AttemptResult[] }> {
    const { redis, log } = this.#runtime;
    const until = Date.now() + LEASE_MS;
    const results: AttemptResult[] = [];
    for (let tries = 1; ; tries++) {
      results.push(...this.#results.splice(0));
      const busy = this.#running.size;
      try {
        const reply = await scripts.turnWebhookSender(redis, turnKeys(this.#path), {
          ...{ senderId: this.#id, now: Date.now(), leaseMs: LEASE_MS, failureMs: FIRST_FAILURE_TTL_MS },
          ...{ busy, max: this.#signal.aborted ? 0 : Math.max(0, share() - busy) },
          results: results.map(storedResult),
        });
        return { reply, results };
      } catch (error) {
        if (!isRedisAway(error) || this.#signal.aborted || Date.now() > until) throw error;
        if (tries === 1) log.warn({ error: (error as Error).message }, "webhook.result_save_failed");
        await setTimeout(RETRY_INTERVAL_MS);
      }
    }
  }

  /**
   * Disables an endpoint that is gone or has failed for days; a success enables it again. `since`: its first failure after a success, or 0.
   */
  async #updateStatus(results: AttemptResult[], since: number): Promise<void> {
    const isOver = since > 0 && Date.now() - since >= DISABLE_AFTER_MS;
    const disables = ({ outcome }: AttemptResult) => outcome === "gone" || (outcome === "failed" && isOver);
    if (results.some(({ webhook, outcome }) => webhook.status === "DISABLED" && outcome === "succeeded"))
      await setWebhookStatus(this.#runtime, this.#path, "ACTIVE");
    else if (results.some((one) => one.webhook.status === "ACTIVE" && disables(one)))
      await setWebhookStatus(this.#runtime, this.#path, "DISABLED");
  }

  /** True if waiting here for the next delivery is worthwhile; else a job stores its time and, at the signal, another process takes over. */
  async #staysUp(next: string): Promise<boolean> {
    if (next === "") return false;
    const { queues } = this.#runtime;
    const { handle, webhookId } = this.#path;
    const isHere = !this.#signal.aborted && Number(next) - Date.now() <= MAX_IDLE_MS;
    if (isHere) return this.#waitUntil(Number(next));
    if (this.#signal.aborted) await queues.later(wakeJob(this.#runtime, handle, webhookId));
    else await this.#pollAgain(Number(next), "due");
    return false;
  }

  /** Waits until an instant or the signal; false at once if another sender of this process waits until then. */
  async #waitUntil(at: number): Promise<boolean> {
    const { webhookId } = this.#path;
    if (at >= (waiting.get(webhookId) ?? Number.POSITIVE_INFINITY)) return false;
    waiting.set(webhookId, at);
    senders--;
    await setTimeout(Math.max(at - Date.now(), 1), undefined, { signal: this.#signal }).catch(() => undefined);
    senders++;
    if (waiting.get(webhookId) === at) waiting.delete(webhookId);
    return true;
  }

  /** Polls the endpoint again at an instant (real ms), once per second, or once per lease of another sender. */
  async #pollAgain(at: number, why: "due" | "lease"): Promise<void> {
    const { webhookId } = this.#path;
    const step = why === "lease" ? LEASE_MS : 1000;
    const second = (Math.ceil(at / step) * step) / 1000;
    const delay = Math.max(1, second * 1000 - Date.now());
    const id = `deliver-${webhookId}-${why}-${second}`;
    await this.#runtime.queues.later(job("webhooks.deliver", id, this.#path, { delay }));
  }

  #start([, , json, ...found]: Extract<TurnReply, [string, "awake", ...unknown[]]>): void {
    if (json === undefined) return;
    this.#pollMs = MIN_POLL_MS;
    const { handle, webhookId } = this.#path;
    const webhook = JSON.parse(json) as StoredWebhook;
    const signers = signersOf(this.#runtime.env, sealBinding(handle, webhookId), webhook);
    for (const [stored, body] of found)
      this.#send({ webhook, signers, delivery: JSON.parse(stored) as StoredDelivery, body });
  }

  /** Sends a delivery after the earlier one of its subject, so that a receiver gets them in order of creation. */
  #send(due: DueDelivery): void {
    const { subject = due.delivery.deliveryId } = due.delivery;
    const sent = this.#sendAfter(this.#newest.get(subject), due);
    this.#newest.set(subject, sent);
    this.#running.add(sent);
    void sent.then(() => {
      this.#running.delete(sent);
      if (this.#newest.get(subject) === sent) this.#newest.delete(subject);
    });
  }

  /** The delivery once it has waited for an earlier one; without a body if its event was erased meanwhile. */
  async #dueAfter(earlier: Promise<void>, due: DueDelivery): Promise<DueDelivery> {
    await waitAtMost(earlier, EARLIER_WAIT_MS);
    const event = keys.webhookEvent(this.#path.handle, due.delivery.eventId);
    return (await this.#runtime.redis.exists(event)) ? due : { ...due, body: "" };
  }

  /** Makes one attempt; the next turn stores the result. Never rejects. */
  async #sendAfter(earlier: Promise<void> | undefined, due: DueDelivery): Promise<void> {
    try {
      this.#results.push(await callEndpoint(this.#runtime, earlier ? await this.#dueAfter(earlier, due) : due));
    } catch (error) {
      this.#runtime.log.warn({ error: (error as Error).message }, "webhook.result_save_failed");
    }
  }
}

/** Concurrent deliveries that a sender may make now. */
function share(): number {
  return Math.min(MAX_CONCURRENT_DELIVERIES, Math.max(1, Math.floor(MAX_PROCESS_DELIVERIES / senders)));
}

function turnKeys({ handle, webhookId }: WebhookPath): Parameters<typeof scripts.turnWebhookSender>[1] {
  return {
    queue: keys.webhookQueue(handle, webhookId),
    awake: keys.webhookAwake(handle, webhookId),
    failing: keys.webhookFailing(handle, webhookId),
    endpoint: keys.webhook(handle, webhookId),
    delivery: keys.webhookDelivery(handle, ""),
    event: keys.webhookEvent(handle, ""),
    answers: keys.webhookAnswers(handle, ""),
  };
}

/** The endpoint's answers are stored apart, so that they are erased with the event, which they may quote. */
function storedResult({ delivery, outcome }: AttemptResult) {
  const { deliveryId: id, eventId, attempts, nextAttemptAt } = delivery;
  const due = nextAttemptAt === null ? undefined : Date.parse(nextAttemptAt);
  const json = JSON.stringify({ ...delivery, attempts: attempts.map((one) => ({ ...one, responseSnippet: "" })) });
  const answers = attempts.flatMap(({ responseSnippet: answer }, at) => (answer ? [answerField(id, at), answer] : []));
  return { id, json, due, outcome, eventId, answers };
}
