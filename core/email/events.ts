import type { Redis } from "ioredis";
import {
  type eventListing,
  type MessageEvent,
  type MessageStatus,
  purposes,
  type Suppression,
  type SuppressionSource,
} from "../../schemas/email.ts";
import type { Input } from "../../schemas/schema.ts";
import { addressDigest, canonicalAddress } from "../platform/address.ts";
import { Fail } from "../platform/errors.ts";
import type { EventJob, Runtime, Store } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { cursorAfter, type Listed, pageOf } from "../store/paging.ts";
import { pairsOf, pipelined } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";
import { eventJob } from "../webhooks/face.ts";
import { suppressionKeys, suppressionOf } from "./suppressions.ts";

/** The keys of every email script; the first four are prefixes. */
export function mailKeys(handle: string) {
  return {
    messages: keys.message(handle, ""),
    timelines: keys.messageEvents(handle, ""),
    events: keys.emailEvents(handle, ""),
    queues: keys.emailQueue(handle, ""),
    stamp: keys.emailStamp(handle),
    leases: keys.emailLeases(handle),
  };
}

/** One recipient's delivery of a message: `n` is the recipient's index, from 0. */
export interface DeliveryName {
  handle: string;
  messageId: string;
  n: number;
}

/** A status change of a delivery, or an event without one. */
export interface Move {
  from: readonly MessageStatus[];
  /** The new status; absent keeps the old one. */
  to?: MessageStatus;
  type: MessageEvent["type"];
  reason?: string | undefined;
  smtpCode?: number | undefined;
  /** Lease token of the sending worker; with one, another worker's result is refused. */
  token?: string;
  /** Real ms of the next attempt. */
  due?: number | undefined;
  /** True if the attempt doesn't count. */
  givesBack?: boolean;
  suppression?: Suppression | undefined;
  /** A suppression to lift; if it is already gone or has changed, nothing is written. */
  lifted?: Suppression;
  caused?: EventJob[];
}

/**
 * Changes a delivery and writes its event, its suppression and its webhook events in one step; false if nothing is written: the
 * delivery has none of the statuses or another lease, or its suppression is not as expected.
 */
export async function moveDelivery(
  { redis, now, queues }: Store,
  { handle, messageId, n }: DeliveryName,
  { reason, smtpCode, suppression, lifted, caused = [], ...move }: Move,
): Promise<boolean> {
  const at = now();
  const members = JSON.stringify({ reason, smtpCode }).slice(1, -1);
  const scriptKeys = { ...mailKeys(handle), ...suppressionKeys(handle) };
  const input = {
    ...{ ...move, messageId, n, at, instant: new Date(at).toISOString() },
    members: members && `,${members}`,
    suppression: suppression && JSON.stringify(suppression),
    lifted: lifted && JSON.stringify(lifted),
  };
  const moved = await queues.step(handle, caused, (outbox, jobs) =>
    scripts.moveDelivery(redis, { ...scriptKeys, outbox }, { ...input, jobs }),
  );
  return moved === "moved";
}

/** Statuses of a delivery that isn't known to be sent. One that is being sent may still arrive: then it becomes SENT after all. */
export const unsentStatuses = ["QUEUED", "DEFERRED", "SENDING"] as const satisfies MessageStatus[];

/** Cancels a delivery that has one of these statuses; false for any other. */
export function cancelDelivery(
  store: Store,
  name: DeliveryName,
  from: readonly MessageStatus[] = unsentStatuses,
): Promise<boolean> {
  return moveDelivery(store, name, { from, to: "CANCELLED", type: "CANCELLED" });
}

/** The webhook events of mails that came back or were objected to. */
export type ReturnEvent = "email.bounced" | "email.complained";

type ReturnedMail = Pick<MessageEvent, "messageId" | "recipient" | "purpose" | "reason" | "smtpCode"> & {
  handle: string;
  /** Why the address is suppressed because of it; absent if it isn't. */
  source?: SuppressionSource | undefined;
};

/** The effects of a report on a mail: a suppression, and a webhook event, which is erased with its recipient. */
export function returnEffects(
  runtime: Store,
  type: ReturnEvent | undefined,
  { handle, source, ...mail }: ReturnedMail,
): Pick<Move, "suppression" | "caused"> {
  const { messageId, recipient, reason = null, smtpCode = null } = mail;
  const email = { ...mail, reason, smtpCode, suppressed: source !== undefined };
  return {
    suppression: source && suppressionOf(recipient, { source, messageId, at: runtime.now() }),
    caused: type ? [eventJob(runtime, handle, { type, data: { handle, email }, people: [recipient] })] : [],
  };
}

/** The events of a message, oldest first. */
export async function timelineOf(redis: Redis, handle: string, messageId: string): Promise<MessageEvent[]> {
  return (await redis.lrange(keys.messageEvents(handle, messageId), 0, -1)).map(
    (json) => JSON.parse(json) as MessageEvent,
  );
}

type Filters = Input<"handle", typeof eventListing>;

/** Events of a handle, newest first; one of the four filters is required (`event_filter_required`). */
export async function listMessageEvents(
  { env, redis }: Runtime,
  input: Filters,
): Promise<Listed<"events", MessageEvent>> {
  const { handle, messageId, recipient, purpose, since } = input;
  if ([messageId, recipient, purpose, since].every((filter) => filter === undefined))
    throw new Fail("event_filter_required");
  const list = `events of ${handle}`;
  const { limit, after } = pageOf(env, input, list);
  const range = { below: Number(after ?? Number.MAX_SAFE_INTEGER), since: Date.parse(since ?? "1970-01-01") * 1000 };
  const found: MessageEvent[] = [];
  const newestFirst =
    messageId === undefined ? indexed(redis, input, range) : (await timelineOf(redis, handle, messageId)).reverse();
  for await (const event of newestFirst) {
    if (fits(event, input, range)) found.push(event);
    if (found.length > limit) break;
  }
  const events = found.slice(0, limit);
  const last = found.length > limit ? events.at(-1) : undefined;
  return { events, nextCursor: cursorAfter(env, last && stampOf(last), list) };
}

/** Stamps of events in domain µs, unique on a handle: from `since` on, and before `below`. */
interface Range {
  below: number;
  since: number;
}

function stampOf({ eventId }: MessageEvent): string {
  return eventId.slice("mev_".length);
}

function fits(event: MessageEvent, { recipient, purpose }: Filters, { below, since }: Range): boolean {
  const stamp = Number(stampOf(event));
  const isInRange = stamp >= since && stamp < below;
  const isSame = recipient === undefined || canonicalAddress(event.recipient) === canonicalAddress(recipient);
  return isInRange && isSame && (purpose ?? event.purpose) === event.purpose;
}

/** Index entries per round trip. */
const BATCH_SIZE = 200;

/** Events from the index of the recipient, of the purpose, or of all purposes together. */
async function* indexed(redis: Redis, input: Filters, { below, since }: Range): AsyncGenerator<MessageEvent> {
  const { handle, recipient, purpose } = input;
  const names = recipient ? [`to:${addressDigest(recipient)}`] : purpose ? [purpose] : purposes;
  const lists = names.map((name) => keys.emailEvents(handle, name));
  for (let entries = await newest(redis, lists, { below, since }); ; ) {
    const rows = await pipelined(redis, (pipeline) => {
      for (const [name] of entries) {
        const [messageId = "", position = ""] = name.split(":");
        pipeline.lindex(keys.messageEvents(handle, messageId), Number(position));
      }
    });
    for (const json of rows as (string | null)[]) if (json !== null) yield JSON.parse(json) as MessageEvent;
    const last = entries[BATCH_SIZE - 1];
    if (last === undefined) return;
    entries = await newest(redis, lists, { below: Number(last[1]), since });
  }
}

/** The newest entries of several indexes in a range, newest first. */
async function newest(redis: Redis, lists: string[], { below, since }: Range) {
  const rows = await pipelined(redis, (pipeline) => {
    for (const list of lists) pipeline.zrevrangebyscore(list, `(${below}`, since, "WITHSCORES", "LIMIT", 0, BATCH_SIZE);
  });
  const pairs = (rows as string[][]).flatMap(pairsOf);
  return pairs.sort((one, other) => Number(other[1]) - Number(one[1])).slice(0, BATCH_SIZE);
}
