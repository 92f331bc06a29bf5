import type { BookingAnswer } from "../../schemas/scheduling.ts";
import { Fail } from "../platform/errors.ts";
import { keyDigest } from "../store/idempotency.ts";
import { withOutcome } from "../platform/outcome.ts";
import { keys } from "../store/keys.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";

/** A request that may come again (header `Idempotency-Key`, docs/reference.md, "Idempotency"): where its answer is kept, and the digest of its body. */
export interface IdempotencyRecord {
  key: string;
  digest: string;
}

/** What a first request left: its answer, or a booking whose checkout it is about to make. */
export type StoredAnswer =
  | { body: string; answer: BookingAnswer }
  | { body: string; bookingUid: string; until: number };

/** Real ms after which a request that makes a checkout counts as dead, and a repeated one goes on in its place. */
const CHECKOUT_TIMEOUT_MS = 30_000;

/** Where a request's answer is kept: by route, handle, event slug and key; undefined where it has no key. */
export function idempotencyRecordOf(
  { handle, eventSlug }: { handle: string; eventSlug: string },
  { idempotencyKey, bodyDigest }: Caller,
): IdempotencyRecord | undefined {
  if (idempotencyKey === undefined || bodyDigest === undefined) return undefined;
  return { key: keys.idempotent(handle, `bookings-${eventSlug}`, keyDigest(idempotencyKey)), digest: bodyDigest };
}

/** What the first request with this key left; undefined for a first one. `idempotency_conflict` where its body was another. */
export async function readStoredAnswer(
  { redis }: Pick<Runtime, "redis">,
  repeatable: IdempotencyRecord,
): Promise<StoredAnswer | undefined> {
  const record = await redis.get(repeatable.key);
  return record === null ? undefined : parseStoredAnswer(repeatable, record);
}

/** Reads a record; `idempotency_conflict` where the body was another. */
export function parseStoredAnswer(repeatable: IdempotencyRecord, record: string): StoredAnswer {
  const left = JSON.parse(record) as StoredAnswer;
  if (left.body !== repeatable.digest) throw new Fail("idempotency_conflict");
  return left;
}

/** The stored answer, as one that is given again; `idempotency_in_progress` while the first request is at work. */
export function replayed(left: StoredAnswer): BookingAnswer | undefined {
  if ("answer" in left) return withOutcome(left.answer, "replayed");
  if (Date.now() < left.until) throw new Fail("idempotency_in_progress", { retryAfter: 1 });
  return undefined;
}

/** The record of a request that is done. */
export function doneRecord({ key, digest }: IdempotencyRecord, answer: BookingAnswer): { key: string; value: string } {
  return { key, value: JSON.stringify({ body: digest, answer } satisfies StoredAnswer) };
}

/** The record of a request whose booking is made and whose checkout isn't. */
export function inProgressRecord(
  { key, digest }: IdempotencyRecord,
  bookingUid: string,
): { key: string; value: string } {
  return {
    key,
    value: JSON.stringify({ body: digest, bookingUid, until: Date.now() + CHECKOUT_TIMEOUT_MS } satisfies StoredAnswer),
  };
}
