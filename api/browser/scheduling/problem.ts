import type { Problem } from "./calls.ts";
import { words } from "./visit.ts";

/** The message for a failed call, in the visitor's language; `reassurance` follows if no reply came. */
export function sentenceOf({ code, limit }: Problem, reassurance = ""): string {
  const limits: Record<string, string> = {
    network: words.limitNetwork,
    attendee: words.limitAttendee,
    moves: words.limitMoves,
  };
  const known: Record<string, string> = {
    offline: `${words.offline} ${reassurance}`.trim(),
    rate_limited: words.busy,
    event_type_not_found: words.gone,
    payment_provider_not_connected: words.unpayable,
    booking_not_cancellable: words.notCancellable,
    booking_not_reschedulable: words.notMovable,
    scheduling_slot_unavailable: words.taken,
    invalid_booking_answers: words.checkEntries,
    booking_required_fields: words.checkEntries,
    invalid_request: words.checkEntries,
  };
  return limits[limit] ?? known[code] ?? words.failed;
}
