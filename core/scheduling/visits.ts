import type { Booking, PublicEvent, schedulingVisit } from "../../schemas/scheduling.ts";
import type { Infer } from "../../schemas/schema.ts";
import { settingsOf } from "../account/face.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { readPublicBooking } from "./bookings.ts";
import { readPublicEventType } from "./offers.ts";

/** The initial contents of the visitor's page. */
export interface EventPage {
  handle: string;
  /** The host: the handle's display name and logo. */
  host: { name: string; logoUrl: string | null };
  eventSlug: string;
  /** Null if the event type is hidden or deleted: then only the booking is shown. */
  event: PublicEvent | null;
  booking: Booking | null;
  /** Domain time in ms, by which the page corrects the visitor's clock. */
  now: number;
  isEmbedded: boolean;
}

/**
 * An event type for its page, and the booking of the uid, which can be read and cancelled even if the event type is hidden.
 * `event_type_not_found`, `booking_not_found`.
 */
export async function visitEvent(runtime: Runtime, input: Infer<typeof schedulingVisit>): Promise<EventPage> {
  const { handle, eventSlug, booking: bookingUid } = input;
  const booking = bookingUid ? (await readPublicBooking(runtime, { handle, eventSlug, bookingUid })).booking : null;
  const event = await readPublicEventType(runtime, input).then(
    (read) => read.event,
    (error) => {
      if (booking && error instanceof Fail && error.code === "event_type_not_found") return null;
      throw error;
    },
  );
  const { displayName, logoUrl = null } = await settingsOf(runtime.redis, handle);
  const host = { name: displayName ?? handle, logoUrl };
  return { handle, host, eventSlug, event, booking, now: runtime.now(), isEmbedded: input.embed === "1" };
}
