import type { Redis } from "ioredis";
import type { JobData } from "../../schemas/jobs.ts";
import { addressDigest, asciiAddress } from "../platform/address.ts";
import { instantAt } from "../platform/clock.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { withLock } from "../store/lock.ts";
import { transact } from "../store/redis.ts";
import { eraseEventsOf } from "../webhooks/face.ts";
import { cancelDelivery } from "./events.ts";
import { findMessage } from "./messages.ts";
import { ERASED_ADDRESS, eraseSuppression } from "./suppressions.ts";

/**
 * Removes a person from a handle's mails and webhook events. Unsent deliveries are cancelled; messages to that person alone are removed
 * with their events; in others the address is replaced. A suppression stays as a digest, so that the person's wish outlives the data.
 * A job may run late: what was added after its `until`, in real ms by the clocks of processes, stays.
 */
export async function erasePerson(
  runtime: Runtime,
  { handle, address }: JobData<"leads.erase">,
  until?: number,
): Promise<void> {
  const { redis } = runtime;
  const instant = until === undefined ? undefined : instantAt(runtime, until);
  const list = keys.emailEvents(handle, `to:${address}`);
  const erased = new Set<string>();
  for (const messageId of new Set((await redis.zrevrange(list, 0, -1)).map(messageOf))) {
    const message = await findMessage(redis, handle, messageId);
    if (message !== undefined && instant && message.createdAt > instant) continue;
    erased.add(messageId);
    await withLock(redis, keys.messageErasure(handle, messageId), () =>
      eraseFrom(runtime, { handle, messageId, address }),
    );
  }
  const events = (await redis.zrange(list, 0, "-1")).filter((name) => erased.has(messageOf(name)));
  if (events.length > 0) await redis.zrem(list, ...events);
  await eraseSuppression(runtime, { handle, digest: address, until: instant });
  await eraseEventsOf(runtime, { handle, person: address, until });
}

/** The message of an entry of an event list. */
function messageOf(name: string): string {
  return name.split(":")[0] as string;
}

interface MessageRecipient {
  handle: string;
  messageId: string;
  address: string;
}

async function eraseFrom(runtime: Runtime, { handle, messageId, address }: MessageRecipient): Promise<void> {
  const message = await findMessage(runtime.redis, handle, messageId);
  if (message === undefined) return;
  const n = message.deliveries.findIndex(({ recipient }) => addressDigest(recipient) === address);
  if (n === -1) return;
  await cancelDelivery(runtime, { handle, messageId, n });
  const named = { handle, messageId, address };
  const recipient = message.deliveries[n]?.recipient ?? "";
  // The message names this answer, so it comes first.
  await eraseFromAnswer(runtime, named, recipient);
  if (message.deliveries.length === 1) await removeMessage(runtime, named, message.purpose);
  else await replaceRecipient(runtime, named, { n, recipient });
}

/** Replaces the address in the stored answer to the request that sent the message (docs/reference.md, "Idempotency"). */
async function eraseFromAnswer({ redis }: Runtime, named: MessageRecipient, recipient: string): Promise<void> {
  const digest = await redis.hget(keys.message(named.handle, named.messageId), "idempotent");
  if (digest === null) return;
  const key = keys.idempotent(named.handle, "messages", digest);
  const answer = await redis.get(key);
  if (answer !== null) await redis.set(key, withoutAddress(answer, recipient), "KEEPTTL", "XX");
}

function withoutAddress(json: string, recipient: string): string {
  return json.replaceAll(JSON.stringify(recipient), JSON.stringify(ERASED_ADDRESS));
}

async function removeMessage(
  { redis }: Runtime,
  { handle, messageId }: MessageRecipient,
  purpose: string,
): Promise<void> {
  const events = await redis.llen(keys.messageEvents(handle, messageId));
  const names = Array.from({ length: events }, (_, position) => `${messageId}:${position}`);
  await transact(redis, (transaction) => {
    transaction
      .del(keys.message(handle, messageId), keys.messageEvents(handle, messageId))
      .zrem(keys.messages(handle), messageId);
    if (names.length > 0) transaction.zrem(keys.emailEvents(handle, purpose), ...names);
  });
}

async function replaceRecipient(
  { redis }: Runtime,
  { handle, messageId }: MessageRecipient,
  { n, recipient }: { n: number; recipient: string },
): Promise<void> {
  const message = keys.message(handle, messageId);
  const timeline = keys.messageEvents(handle, messageId);
  const [json, about] = await redis.hmget(message, "json", `about:${n}`);
  // First, so that no event is written with the address after the events have been read.
  const replaced = {
    [`about:${n}`]: withoutAddress(about ?? "", recipient),
    [`digest:${n}`]: addressDigest(ERASED_ADDRESS),
  };
  await redis.hset(message, replaced);
  // A server may name this recipient to another one.
  await rewriteEvents(redis, timeline, (event) => withoutMentions(withoutAddress(event, recipient), recipient));
  // Last: an interrupted erasure is repeated as long as the message names the recipient.
  await redis.hset(message, "json", withoutAddress(json ?? "", recipient));
}

/** Replaces a person's address in what mail servers said of a message to somebody else; does nothing if there is no such message. */
export async function eraseMentions(
  { redis }: Runtime,
  { handle, messageId, email }: Omit<MessageRecipient, "address"> & { email: string },
): Promise<void> {
  await rewriteEvents(redis, keys.messageEvents(handle, messageId), (event) => withoutMentions(event, email));
}

async function rewriteEvents(redis: Redis, timeline: string, change: (event: string) => string): Promise<void> {
  for (const [position, event] of (await redis.lrange(timeline, 0, -1)).entries()) {
    const changed = change(event);
    if (changed !== event) await redis.lset(timeline, position, changed);
  }
}

/** An event without the address in any spelling: mail servers quote it in their reasons. */
function withoutMentions(event: string, recipient: string): string {
  const spellings = [recipient, asciiAddress(recipient) ?? recipient];
  const literal = spellings.map((text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"));
  // Not the end or the beginning of another address. A reply of several lines has a hyphen behind its code.
  const whole = `(?<![\\p{L}\\p{N}_.+]|(?<!\\b\\d{3})-)(?:${literal.join("|")})(?![.-]?[\\p{L}\\p{N}_])`;
  return event.replace(new RegExp(whole, "giu"), ERASED_ADDRESS);
}
