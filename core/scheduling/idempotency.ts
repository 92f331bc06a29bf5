import type { BookingAnswer, StoredBooking } from "../../schemas/scheduling.ts";
import { Fail } from "../platform/errors.ts";
import { withOutcome } from "../platform/outcome.ts";
import type { Caller } from "../platform/runtime.ts";
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

/**
 * The stored answer, marked as replayed, or the booking whose checkout the first request did not open. `idempotency_conflict` if its body
 * was another, `idempotency_in_progress` while it is running.
 */
export function readStoredAnswer(
  { digest }: IdempotencyRecord,
  record: string,
): { answer: BookingAnswer } | { bookingUid: string } {
  const stored = JSON.parse(record) as StoredAnswer;
  if (stored.body !== digest) throw new Fail("idempotency_conflict");
  if ("answer" in stored) return { answer: withOutcome(stored.answer, "replayed") };
  if (Date.now() < stored.until) throw new Fail("idempotency_in_progress", { retryAfter: 1 });
  return stored;
}

/** The record that a change of a booking leaves for repeats, as its script writes it: the answer, a checkout in progress, or none. */
export function storedAnswer(
  { digest }: IdempotencyRecord,
  { status, payment }: StoredBooking,
  answer: BookingAnswer,
): string {
  if (status === "REJECTED") return "forget";
  const isUnopened = status === "PENDING_PAYMENT" && !payment?.checkoutUrl;
  const checkout = { bookingUid: answer.bookingUid, until: Date.now() + CHECKOUT_TIMEOUT_MS };
  return JSON.stringify({ body: digest, ...(isUnopened ? checkout : { answer }) } satisfies StoredAnswer);
}
