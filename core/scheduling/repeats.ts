import type { BookingAnswer } from "../../schemas/scheduling.ts";
import { Fail } from "../platform/errors.ts";
import { withOutcome } from "../platform/outcome.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";
import { keyDigest } from "../store/idempotency.ts";
import { keys } from "../store/keys.ts";

/** Where the answer to a request with an `Idempotency-Key` is stored (docs/reference.md, "Idempotency"), and the digest of its body. */
export interface IdempotencyRecord {
  key: string;
  digest: string;
}

/** The record of a first request: its answer, or a booking whose checkout it is about to open. */
type StoredAnswer = { body: string; answer: BookingAnswer } | { body: string; bookingUid: string; until: number };

/** Real ms after which a request that makes a checkout counts as dead, and a repeated one finishes it. */
const CHECKOUT_TIMEOUT_MS = 30_000;

/** Where a request's answer is stored: by route, handle, event slug and key; undefined without a key. */
export function idempotencyRecordOf(
  input: { handle: string; eventSlug: string },
  { idempotencyKey, bodyDigest }: Caller,
): IdempotencyRecord | undefined {
  if (idempotencyKey === undefined || bodyDigest === undefined) return undefined;
  const route = `bookings-${input.eventSlug}`;
  return { key: keys.idempotent(input.handle, route, keyDigest(idempotencyKey)), digest: bodyDigest };
}

/** The record of the first request with this key; undefined for a first one. `idempotency_conflict` if its body was another. */
export async function readStoredAnswer(
  { redis }: Pick<Runtime, "redis">,
  idempotency: IdempotencyRecord,
): Promise<StoredAnswer | undefined> {
  const record = await redis.get(idempotency.key);
  return record === null ? undefined : parseStoredAnswer(idempotency, record);
}

/** Reads a record; `idempotency_conflict` if the body was another. */
export function parseStoredAnswer(idempotency: IdempotencyRecord, record: string): StoredAnswer {
  const stored = JSON.parse(record) as StoredAnswer;
  if (stored.body !== idempotency.digest) throw new Fail("idempotency_conflict");
  return stored;
}

/** The stored answer, marked as replayed; `idempotency_in_progress` while the first request is running. */
export function replayed(stored: StoredAnswer): BookingAnswer | undefined {
  if ("answer" in stored) return withOutcome(stored.answer, "replayed");
  if (Date.now() < stored.until) throw new Fail("idempotency_in_progress", { retryAfter: 1 });
  return undefined;
}

/** Stores the record for repeated requests: the answer, a checkout in progress, or none. */
export interface Replay {
  idempotency: IdempotencyRecord;
  finds: "answer" | "checkout" | "nothing";
}

/** What repeats of a request find; undefined for a request without a key. */
export function replayOf(
  { idempotency }: { idempotency: IdempotencyRecord | undefined },
  finds: Replay["finds"],
): Replay | undefined {
  return idempotency && { idempotency, finds };
}

/** The value of a record that is to be removed. */
const FORGET = "forget";

/** The record of a replay as the booking's script writes it. */
export function replayRecord({ idempotency, finds }: Replay, answer: BookingAnswer): { key: string; value: string } {
  if (finds === "nothing") return { key: idempotency.key, value: FORGET };
  const found =
    finds === "answer" ? { answer } : { bookingUid: answer.bookingUid, until: Date.now() + CHECKOUT_TIMEOUT_MS };
  return { key: idempotency.key, value: JSON.stringify({ body: idempotency.digest, ...found } satisfies StoredAnswer) };
}
