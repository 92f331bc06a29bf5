import type { Redis } from "ioredis";
import { batchesOf } from "../platform/batches.ts";
import { keys } from "../store/keys.ts";
import { pipelined, scanKeys } from "../store/redis.ts";

/**
 * How a kind of key is transferred when a handle moves to another installation or name: unchanged, sealed again with the importing
 * installation's key, made again by the import, or left behind. Kinds of earlier versions are in files that those have written.
 */
type Carriage = "as is" | "sealed again" | "made again" | "left behind" | "of earlier versions";

/** Every kind of key that a handle has, by how it is transferred; a test compares them with the key table. */
const kinds: Readonly<Record<Carriage, string>> = {
  "as is": `
    audit page pages document documents lead leads lead-recent conversions person campaign campaigns rule rules rule-sends
    rule-counts sender senders template templates template-content message messages message-events email-events email-stamp
    email-once suppressed suppressions schedule schedules event-type event-types event-type-slugs catalog-version booking
    unsynced unrefunded bookings attendee-bookings calendar-feed blocks busy times-version credentials selected-calendars
    page-purchase page-purchases page-buyer page-refund webhooks`,
  "sealed again": "credential webhook",
  "made again": "handle chunk knowledge busy-state calendar-objects",
  "left behind": `
    outbox bucket strategy-context lead-code lead-notices lead-digest booking-notices booking-digest far-sends email-queue email-leases
    email-quota mail-caps idempotent message-erasure catalog-lock sync-lock network-bucket busy-draft webhook-event refresh-lock
    provider-pause calendar-draft webhook-audience webhook-queue webhook-awake webhook-failing person-events webhook-delivery webhook-answers
    webhook-deliveries waiting-answers waiting-documents chat chat-section lead-section`,
  "of earlier versions":
    "pages-version rules-version campaigns-version senders-version templates-version credentials-version webhooks-version",
};

export const carriage: Readonly<Record<string, Carriage>> = Object.fromEntries(
  Object.entries(kinds).flatMap(([how, names]) => (names.match(/\S+/g) ?? []).map((kind) => [kind, how as Carriage])),
);

/** The kind of a key: its first word. */
export function kindOf(key: string): string {
  return key.slice(0, key.indexOf(":"));
}

/** True for a key that an export contains and an import writes; all others are made again or left behind. */
export function isCarried(key: string): boolean {
  return carriage[kindOf(key)] === "as is" || carriage[kindOf(key)] === "sealed again";
}

/** True for a key that belongs to the handle and is erased with it: an account, a queue or a user may have the same name. */
export function isOfHandle(key: string, handle: string): boolean {
  const [, kind = "", tag] = /^([a-z-]+)(?::[a-z-]+)?:\{([^}]*)\}/.exec(key) ?? [];
  return tag === handle && Object.hasOwn(carriage, kind);
}

/** Keys per round trip. */
export const KEY_BATCH = 200;

/** The keys of a handle, in batches. */
export async function* keysOf(redis: Redis, handle: string): AsyncGenerator<string[]> {
  for await (const found of scanKeys(redis, `*:{${handle}}*`)) {
    const names = found.filter((key) => isOfHandle(key, handle));
    yield* batchesOf(names, KEY_BATCH);
  }
}

/** Removes every key of a handle but its record. Returns the number removed, without buckets: visitors make new ones all the time. */
export async function removeKeys(redis: Redis, handle: string): Promise<number> {
  const message = keys.message(handle, "");
  let removed = 0;
  for await (const found of keysOf(redis, handle)) {
    const names = found.filter((key) => key !== keys.handle(handle));
    const messages = names.filter((key) => key.startsWith(message)).map((key) => key.slice(message.length));
    await Promise.all(messages.map((id) => disownMessage(redis, handle, id)));
    const counts = await pipelined(redis, (pipeline) => names.forEach((key) => void pipeline.unlink(key)));
    removed += counts.filter((count, at) => count === 1 && kindOf(names[at] as string) !== "bucket").length;
  }
  return removed;
}

/** The message's own tag names the handle; after an import it names another one. */
async function disownMessage(redis: Redis, handle: string, messageId: string): Promise<void> {
  const owner = keys.messageOwner(messageId);
  if ((await redis.get(owner)) === handle) await redis.unlink(owner);
}
