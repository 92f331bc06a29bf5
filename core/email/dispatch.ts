import { setTimeout as sleep } from "node:timers/promises";
import type { ClaimedLane } from "../engines/lanes/lanes.ts";
import { Breaker, SmtpFailure, SmtpPool } from "../engines/mail/mail.ts";
import { waitAtMost } from "../platform/clock.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { parseStored } from "../store/records.ts";
import { isRedisAway } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";
import { tokenInterval, tokenWait } from "../store/throttle.ts";
import { attemptDelivery, deferDamaged, type LeasedDelivery, type StoredContent } from "./delivery.ts";
import { type DeliveryName, mailKeys } from "./events.ts";
import { MAX_RANKS, type MailQueueName, mailQueue, PARK_MS, park } from "./mail-queues.ts";
import type { StoredMessage } from "./messages.ts";

/** Real ms without a heartbeat after which a worker loses its leases. */
const LEASE_MS = 15_000;
/** Real ms between two polls of the idle fair queue. */
const POLL_MS = 100;
/** Real ms within which attempts may finish when the process stops; another worker retries the others. */
const DRAIN_MS = 15_000;
/** Mails per second and burst of one handle, across all processes. */
const HANDLE_LIMIT = { interval: tokenInterval(500), burst: 1000 };

/** Sends due mails until the signal, then lets running attempts finish. Returns at once without a mail server. */
export async function dispatchMail(runtime: Runtime, signal: AbortSignal): Promise<void> {
  const { SMTP_URL } = runtime.env;
  if (SMTP_URL !== undefined) await new Dispatcher(runtime, SMTP_URL).run(signal);
}

/**
 * Keeps a small window of attempts from the handles' queues. The window is as large as the number of connections, so that mails wait in
 * Redis, where the fair queue decides the order. With three connections or more, one attempt is reserved for verification codes, and no
 * handle gets all the others, so that a hanging mail server of one handle delays no other.
 */
class Dispatcher {
  readonly #runtime: Runtime;
  readonly #pool: SmtpPool;
  readonly #breaker = new Breaker();
  /** The running attempts and their ends. */
  readonly #running = new Map<LeasedDelivery, Promise<void>>();
  /** Why the last round failed; it is logged once. */
  #failure: string | undefined;

  constructor(runtime: Runtime, server: string) {
    this.#runtime = runtime;
    this.#pool = new SmtpPool(server);
  }

  async run(signal: AbortSignal): Promise<void> {
    const renewing = setInterval(() => void this.#renew().catch((error: Error) => this.#report(error)), LEASE_MS / 3);
    let poll: Promise<void> | undefined;
    while (!signal.aborted) {
      const running = [...this.#running.values()];
      const started = await this.#tryRound();
      if (started) continue;
      poll ??= sleep(POLL_MS, undefined, { signal })
        .catch(() => undefined)
        .finally(() => {
          poll = undefined;
        });
      // An attempt that ended during the round makes room for another one.
      await Promise.race([...running, poll]);
    }
    await waitAtMost(Promise.all(this.#running.values()), DRAIN_MS);
    clearInterval(renewing);
    this.#pool.close();
  }

  /** A round; 0 if it fails. */
  async #tryRound(): Promise<number> {
    const last = this.#failure;
    this.#failure = undefined;
    try {
      return await this.#round();
    } catch (error) {
      this.#failure = (error as Error).message;
      if (this.#failure !== last) this.#report(error as Error);
      return 0;
    }
  }

  /** Polls both fair queues. Returns the number of started attempts. */
  async #round(): Promise<number> {
    if (!(await this.#canSend())) return 0;
    const urgent = await this.#serve("urgent", this.#window - this.#running.size);
    const normal = await this.#serve("normal", Math.max(1, this.#window - 1) - this.#running.size);
    return urgent + normal;
  }

  get #window(): number {
    return this.#pool.settings.maxConnections;
  }

  /** After a server failure, a probe must succeed first; it costs no message an attempt. */
  async #canSend(): Promise<boolean> {
    if (this.#breaker.wait > 0) return false;
    if (!this.#breaker.open) return true;
    try {
      await this.#pool.probe();
    } catch (error) {
      if (!(error instanceof SmtpFailure)) throw error;
      this.#breaker.failed();
      this.#runtime.log.warn({ error: error.message }, "email.server.unavailable");
      return false;
    }
    this.#breaker.succeeded();
    this.#runtime.log.info({}, "email.server.available");
    return true;
  }

  async #serve(queue: MailQueueName, free: number): Promise<number> {
    if (free <= 0) return 0;
    const { claimed, due } = await mailQueue(this.#runtime.redis, queue).claim(free);
    const share = Math.max(1, Math.floor(free / due));
    let started = 0;
    for (const claim of claimed) {
      const max = Math.min(free - started, this.#maxOfHandle(queue) - this.#runningOf(claim.lane));
      if (max > 0) started += await this.#take(claim, { queue, share, max });
    }
    return started;
  }

  #maxOfHandle(queue: MailQueueName): number {
    return Math.max(1, this.#window - (queue === "urgent" ? 1 : 2));
  }

  #runningOf(handle: string): number {
    return [...this.#running.keys()].filter((one) => one.handle === handle).length;
  }

  async #take(
    claim: ClaimedLane,
    { queue, share, max }: { queue: MailQueueName; share: number; max: number },
  ): Promise<number> {
    const { redis, id, now } = this.#runtime;
    const [token, real, at] = [id(""), Date.now(), now()];
    const scriptKeys = {
      ...mailKeys(claim.lane),
      bucket: keys.throttle("email", claim.lane),
      handle: keys.handle(claim.lane),
    };
    const [nextPoll, ...rows] = await scripts.takeDeliveries(redis, scriptKeys, {
      ...{ share, maxRank: MAX_RANKS[queue], max, token, ...HANDLE_LIMIT },
      ...{ now: real, leaseEndsAt: real + LEASE_MS, at, instant: new Date(at).toISOString() },
    });
    for (const row of rows) await this.#begin(leaseOf(claim.lane, token, row), row);
    const until = Math.min(Number(nextPoll || Number.POSITIVE_INFINITY), real + PARK_MS);
    if (until > real) await park(redis, queue, claim, until);
    return rows.length;
  }

  async #begin(leased: Lease, row: Row): Promise<void> {
    let delivery: LeasedDelivery;
    try {
      delivery = leasedDelivery(leased, row);
    } catch (error) {
      return deferDamaged(this.#runtime, leased, error as Error);
    }
    const ended = this.#attempt(delivery).finally(() => this.#running.delete(delivery));
    this.#running.set(delivery, ended);
  }

  async #attempt(delivery: LeasedDelivery): Promise<void> {
    try {
      await this.#serverToken();
      const { to, serverFailed } = await attemptDelivery(this.#runtime, this.#pool, delivery);
      if (serverFailed) this.#pause();
      await this.#runtime.redis.hincrby(keys.mailAttempts, to, 1);
    } catch (error) {
      this.#report(error as Error);
    }
  }

  /** The first failure pauses sending. A probe may take minutes to say more, and the reply to an attempt may name a person. */
  #pause(): void {
    const error = "An attempt failed; its message's timeline has the reason.";
    if (!this.#breaker.open) this.#runtime.log.warn({ error }, "email.server.unavailable");
    this.#breaker.failed();
  }

  /** Waits for the server's rate limit, which all processes share. */
  async #serverToken(): Promise<void> {
    const { host, rateLimit, rateDelta } = this.#pool.settings;
    if (rateLimit === 0) return;
    const bucket = { name: "smtp", tag: host, rate: (rateLimit * 1000) / rateDelta, burst: rateLimit };
    const take = () => tokenWait(this.#runtime, bucket);
    for (let wait = await take(); wait > 0; wait = await take()) await sleep(wait);
  }

  /** Renews the leases of this process. */
  async #renew(): Promise<void> {
    const until = Date.now() + LEASE_MS;
    await Promise.all(
      [...this.#running.keys()].map(({ handle, messageId, n }) =>
        this.#runtime.redis.zadd(keys.emailLeases(handle), "XX", until, `${messageId}:${n}`),
      ),
    );
  }

  #report(error: Error): void {
    const message = isRedisAway(error) ? "email.dispatch.redis_unavailable" : "email.dispatch.failed";
    this.#runtime.log.warn({ error: error.message }, message);
  }
}

type Row = [name: string, json: string, content: string, attempt: number, quota: string | null];
type Lease = DeliveryName & Pick<LeasedDelivery, "attempt" | "token">;

function leaseOf(handle: string, token: string, [name, , , attempt]: Row): Lease {
  const [messageId = "", n] = name.split(":");
  return { handle, messageId, n: Number(n), attempt, token };
}

/** Throws the key of a damaged message. */
function leasedDelivery(lease: Lease, [, json, content, , quota]: Row): LeasedDelivery {
  const key = keys.message(lease.handle, lease.messageId);
  const message = parseStored<StoredMessage>(key, json);
  const [recipient, domain] = [message.recipients[lease.n] as string, message.from.address.split("@")[1] ?? ""];
  const read = { message, content: parseStored<StoredContent>(key, content), recipient, domain };
  return { ...lease, ...read, quotaBefore: Number(quota ?? 0) };
}
