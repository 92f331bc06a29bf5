import type { Booking, PublicEvent } from "../../../schemas/scheduling.ts";
import type { Words } from "./words.ts";

/** What the service wrote into the page. */
export interface Visit {
  handle: string;
  /** The host of the booking. */
  host: { name: string; logoUrl: string | null };
  eventSlug: string;
  /** Null where the event type is hidden or gone: then only the booking can be looked at. */
  event: PublicEvent | null;
  booking: Booking | null;
  /** The service's time when it made the page, in ms. */
  now: number;
  isEmbedded: boolean;
  /** The language of the page, which is the visitor's if the service speaks it (ISO 639-1), and its words. */
  language: string;
  words: Words;
}

/** Reads it; undefined on a page that is none of an event type. */
export function readVisit(): Visit | undefined {
  const text = document.getElementById("scheduling-visit")?.textContent;
  return text ? JSON.parse(text) : undefined;
}

/** The address of this page with or without a booking, and as embedded as it is now. */
export function addressOf(bookingUid?: string): string {
  const query = new URLSearchParams();
  if (bookingUid) query.set("booking", bookingUid);
  const given = new URLSearchParams(location.search);
  for (const name of ["embed", "theme", "accent"]) if (given.has(name)) query.set(name, given.get(name)!);
  return `${location.pathname}${query.size > 0 ? `?${query}` : ""}`;
}
