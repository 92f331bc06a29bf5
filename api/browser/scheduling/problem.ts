import { Problem } from "./calls.ts";
import type { Host } from "./host.ts";
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
    scheduling_slot_unavailable: words.taken,
    invalid_booking_answers: words.checkEntries,
    booking_required_fields: words.checkEntries,
    invalid_request: words.checkEntries,
  };
  return limits[limit] ?? known[code] ?? words.failed;
}

/** Shows a booking as it is now if it has ended meanwhile, as in another tab; every other problem is thrown again. */
export function endedTo(host: Host, bookingUid: string): (error: unknown) => Promise<undefined> {
  return async (error) => {
    const hasEnded = error instanceof Problem && /^booking_not_(cancellable|reschedulable)$/.test(error.code);
    if (!hasEnded) throw error;
    host.finish(await host.calls.read(bookingUid));
    return undefined;
  };
}
