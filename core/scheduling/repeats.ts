import type { BookingAnswer } from "../../schemas/scheduling.ts";
import { Fail } from "../platform/errors.ts";
import { keyDigest } from "../store/idempotency.ts";
import { outcome } from "../platform/outcome.ts";
import { keys } from "../store/keys.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";

/** A request that may come again (header `Idempotency-Key`, docs/reference.md, "Idempotency"): where its answer is kept, and the digest of its body. */
export interface Repeatable {
  key: string;
  digest: string;
}

/** What a first request left: its answer, or a booking whose checkout it is about to make. */
export type Left = { body: string; answer: BookingAnswer } | { body: string; bookingUid: string; until: number };

/** Real ms after which a request that makes a checkout counts as dead, and a repeated one goes on in its place. */
const checkoutTakes = 30_000;

/** Where a request's answer is kept: by route, handle, event slug and key; undefined where it has no key. */
export function repeatableOf(
  { handle, eventSlug }: { handle: string; eventSlug: string },
  { idempotencyKey, bodyDigest }: Caller,
): Repeatable | undefined {
  if (idempotencyKey === undefined || bodyDigest === undefined) return undefined;
  return { key: keys.idempotent(handle, `bookings-${eventSlug}`, keyDigest(idempotencyKey)), digest: bodyDigest };
}

/** What the first request with this key left; undefined for a first one. `idempotency_conflict` where its body was another. */
export async function leftBy({ redis }: Pick<Runtime, "redis">, repeatable: Repeatable): Promise<Left | undefined> {
  const record = await redis.get(repeatable.key);
  return record === null ? undefined : readLeft(repeatable, record);
}

/** Reads a record; `idempotency_conflict` where the body was another. */
export function readLeft(repeatable: Repeatable, record: string): Left {
  const left = JSON.parse(record) as Left;
  if (left.body !== repeatable.digest) throw new Fail("idempotency_conflict");
  return left;
}

/** The stored answer, as one that is given again; `idempotency_in_progress` while the first request is at work. */
export function replayed(left: Left): BookingAnswer | undefined {
  if ("answer" in left) return outcome(left.answer, "replayed");
  if (Date.now() < left.until) throw new Fail("idempotency_in_progress", { retryAfter: 1 });
  return undefined;
}

/** The record of a request that is done. */
export function doneRecord({ key, digest }: Repeatable, answer: BookingAnswer): { key: string; value: string } {
  return { key, value: JSON.stringify({ body: digest, answer } satisfies Left) };
}

/** The record of a request whose booking is made and whose checkout isn't. */
export function halfRecord({ key, digest }: Repeatable, bookingUid: string): { key: string; value: string } {
  return { key, value: JSON.stringify({ body: digest, bookingUid, until: Date.now() + checkoutTakes } satisfies Left) };
}
