import type { testEventType, WebhookEventType } from "../../schemas/webhooks.ts";
import { addressDigest } from "../platform/address.ts";
import type { EventJob, Runtime, Store } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { transact } from "../store/redis.ts";

/** Retention of events and deliveries in ms (docs/reference.md, "Webhook delivery"). */
export const EVENT_TTL_MS = 30 * 86_400_000;

interface NewEvent {
  type: WebhookEventType | typeof testEventType;
  data: unknown;
  /** Its domain time in ms, by default now. */
  at?: number;
  /** The addresses in it, by which it can be erased. */
  people?: string[];
}

/** The job of an event, with the event itself, for the step that writes its cause: all three or none. */
export function eventJob(
  { id, now }: Store,
  handle: string,
  { type, data, at = now(), people = [] }: NewEvent,
): EventJob {
  const eventId = stampedId(id);
  const event = {
    key: keys.webhookEvent(handle, eventId),
    content: JSON.stringify({ type, timestamp: new Date(at).toISOString(), data }),
    retentionMs: EVENT_TTL_MS,
    endpoints: keys.webhooks(handle),
    endpoint: keys.webhook(handle, ""),
    audience: keys.webhookAudience(handle, eventId),
    people: people.map((address) => keys.personEvents(handle, addressDigest(address))),
  };
  return { ...job("webhooks.dispatch", `dispatch-${eventId}`, { handle, eventId }), event };
}

/**
 * Erases the events until real ms about a person, by the digest of the address. Their waiting deliveries are not sent, and the answers to
 * the sent ones are erased too.
 */
export async function eraseEventsOf(
  { redis }: Store,
  { handle, person, until = Number.POSITIVE_INFINITY }: { handle: string; person: string; until?: number | undefined },
): Promise<void> {
  const list = keys.personEvents(handle, person);
  const events = (await redis.smembers(list)).filter((key) => createdAtOf(idIn(key)) <= until);
  if (events.length === 0) return;
  const answers = events.map((key) => keys.webhookAnswers(handle, idIn(key)));
  // The list stays: an event that is written meanwhile must be found by the next erasure.
  await transact(redis, (transaction) => transaction.del(...events, ...answers).srem(list, ...events));
}

function idIn(key: string): string {
  return key.split(":").at(-1) as string;
}

/** Characters of the stamp in an event id: real µs in base 36. */
const STAMP_LETTERS = 11;
let newestStamp = 0;

/** An event id that begins with its creation time; the ids of one process grow. */
function stampedId(id: Runtime["id"]): string {
  newestStamp = Math.max(newestStamp + 1, Date.now() * 1000);
  return id(`evt_${newestStamp.toString(36).padStart(STAMP_LETTERS, "0")}`);
}

/** Creation time of an event in real ms. Within a ms, the ids themselves are in the order of creation. */
export function createdAtOf(eventId: string): number {
  return Math.floor(Number.parseInt(eventId.slice("evt_".length).slice(0, STAMP_LETTERS), 36) / 1000);
}
