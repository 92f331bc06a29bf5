import type { Redis } from "ioredis";
import type { Message, MessageEvent, MessageStatus } from "../../schemas/email.ts";
import type { Input } from "../../schemas/schema.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime, Store } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { type Listed, type ListInput, listIds } from "../store/paging.ts";
import { parseStored } from "../store/records.ts";
import { pipelined } from "../store/redis.ts";
import { cancelDelivery, timelineOf } from "./events.ts";

/** The immutable part of a message. */
export interface StoredMessage extends Omit<Message, "status" | "recipientCount" | "deliveries"> {
  /** The sender at the time of acceptance. */
  from: { name: string; address: string; replyTo: string | null };
  recipients: string[];
}

type MessageName = Input<"handle" | "messageId">;

/** The handle's messages, newest first. */
export async function listMessages(runtime: Runtime, input: ListInput): Promise<Listed<"messages", Message>> {
  const { ids, nextCursor } = await listIds(runtime, keys.messages(input.handle), input);
  return { messages: await findMessages(runtime.redis, input.handle, ids), nextCursor };
}

/** One message and its events; `message_not_found`. */
export async function readMessage(
  { redis }: Runtime,
  input: MessageName,
): Promise<{ message: Message; timeline: MessageEvent[] }> {
  const { handle, messageId } = input;
  const [message, timeline] = await Promise.all([
    findMessage(redis, handle, messageId),
    timelineOf(redis, handle, messageId),
  ]);
  if (message === undefined) throw new Fail("message_not_found");
  return { message, timeline };
}

/** Cancels the unsent deliveries; `message_not_cancellable` if there is none. */
export async function cancelMessage(runtime: Runtime, input: MessageName): Promise<{ message: Message }> {
  const { message } = await readMessage(runtime, input);
  if ((await withdrawMessage(runtime, message, ["QUEUED", "DEFERRED"])) === 0)
    throw new Fail("message_not_cancellable");
  return { message: (await readMessage(runtime, input)).message };
}

/** Cancels the deliveries of a message with one of these statuses, by default all that aren't known to be sent; returns their number. */
export async function withdrawMessage(
  store: Store,
  { handle, messageId, deliveries }: Message,
  from?: readonly MessageStatus[],
): Promise<number> {
  const cancelled = await Promise.all(deliveries.map((_, n) => cancelDelivery(store, { handle, messageId, n }, from)));
  return cancelled.filter(Boolean).length;
}

/** A message; undefined if it doesn't exist. */
export async function findMessage(redis: Redis, handle: string, messageId: string): Promise<Message | undefined> {
  return (await findMessages(redis, handle, [messageId]))[0];
}

/** A message as its owner sees it. Those of an earlier version have an origin. */
export function viewOf(
  { from: _from, origin: _origin, recipients, ...message }: StoredMessage & { origin?: string },
  status: MessageStatus,
  statuses: MessageStatus[],
): Message {
  const deliveries = recipients.map((recipient, n) => ({ recipient, status: statuses[n] as MessageStatus }));
  return { ...message, status, recipientCount: recipients.length, deliveries };
}

/** The messages of these ids, without missing ones. */
export async function findMessages(redis: Redis, handle: string, ids: string[]): Promise<Message[]> {
  const rows = (await pipelined(redis, (pipeline) => {
    for (const id of ids) pipeline.hmget(keys.message(handle, id), "json", "status", "statuses");
  })) as [json: string | null, status: MessageStatus, statuses: string][];
  return rows.flatMap(([json, status, statuses], at) => {
    if (json === null) return [];
    const stored = parseStored<StoredMessage>(keys.message(handle, ids[at] as string), json);
    return [viewOf(stored, status, statuses.split(",") as MessageStatus[])];
  });
}
