import type { BookingAnswer } from "../../schemas/scheduling.ts";
import { Fail } from "../platform/errors.ts";
import { keyDigest } from "../store/idempotency.ts";
import { withOutcome } from "../platform/outcome.ts";
import { keys } from "../store/keys.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";

/**
 * The storage of a repeatable request's response (header `Idempotency-Key`, docs/reference.md, "Idempotency"), and the digest of its body.
 */
export interface IdempotencyRecord {
  key: string;
  digest: string;
}

/** The result of a first request: its response, or a booking whose checkout it is creating. */
export type StoredAnswer =
  | { body: string; answer: BookingAnswer }
  | { body: string; bookingUid: string; until: number };

/** Real ms after which a request that creates a checkout counts as dead, and a repeated one takes over. */
const CHECKOUT_TIMEOUT_MS = 30_000;

/** The record of a request, by route, handle, event slug and key; undefined without a key. */
export function idempotencyRecordOf(
  { handle, eventSlug }: { handle: string; eventSlug: string },
  { idempotencyKey, bodyDigest }: Caller,
): IdempotencyRecord | undefined {
  if (idempotencyKey === undefined || bodyDigest === undefined) return undefined;
  return { key: keys.idempotent(handle, `bookings-${eventSlug}`, keyDigest(idempotencyKey)), digest: bodyDigest };
}

/** The result of the first request with this key; undefined if this is the first one. `idempotency_conflict` for another body. */
export async function readStoredAnswer(
  { redis }: Pick<Runtime, "redis">,
  repeatable: IdempotencyRecord,
): Promise<StoredAnswer | undefined> {
  const record = await redis.get(repeatable.key);
  return record === null ? undefined : parseStoredAnswer(repeatable, record);
}

/** Parses a record; `idempotency_conflict` for another body. */
export function parseStoredAnswer(repeatable: IdempotencyRecord, record: string): StoredAnswer {
  const left = JSON.parse(record) as StoredAnswer;
  if (left.body !== repeatable.digest) throw new Fail("idempotency_conflict");
  return left;
}

/** The stored response, marked as replayed; `idempotency_in_progress` while the first request is running. */
export function replayed(left: StoredAnswer): BookingAnswer | undefined {
  if ("answer" in left) return withOutcome(left.answer, "replayed");
  if (Date.now() < left.until) throw new Fail("idempotency_in_progress", { retryAfter: 1 });
  return undefined;
}

/** The record of a finished request. */
export function doneRecord({ key, digest }: IdempotencyRecord, answer: BookingAnswer): { key: string; value: string } {
  return { key, value: JSON.stringify({ body: digest, answer } satisfies StoredAnswer) };
}

/** The record of a request whose booking exists, but not its checkout. */
export function inProgressRecord(
  { key, digest }: IdempotencyRecord,
  bookingUid: string,
): { key: string; value: string } {
  return {
    key,
    value: JSON.stringify({ body: digest, bookingUid, until: Date.now() + CHECKOUT_TIMEOUT_MS } satisfies StoredAnswer),
  };
}
