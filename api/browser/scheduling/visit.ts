import type { EventPage } from "../../../core/scheduling/face.ts";
import type { Words } from "../../../schemas/languages.ts";

/** The data that the service wrote into the page. */
export interface PageData extends EventPage {
  /** The language of the page (ISO 639-1), which is the visitor's if the service has it, and its texts. */
  language: string;
  /** The languages that the visitor can choose. */
  languages: string[];
  /** `{…}` are placeholders. */
  words: Words["bookingPage"];
}

/** The data of this page; empty on the page of a failure. */
export const visit: PageData = JSON.parse(document.getElementById("scheduling-visit")?.textContent ?? "{}");
/** The texts of this page. */
export const { words } = visit;

/** The URL of the event's page with or without a booking, in this or another language; it stays embedded if it is now. */
export function addressOf(bookingUid?: string, language?: string): string {
  const query = new URLSearchParams();
  if (bookingUid) query.set("booking", bookingUid);
  const given = new URLSearchParams(location.search);
  for (const name of ["embed", "theme", "accent", "language"]) if (given.has(name)) query.set(name, given.get(name)!);
  if (language) query.set("language", language);
  // The page of an earlier booking may have been opened under an earlier slug.
  return `/apps/public/scheduling/${visit.handle}/${visit.eventSlug}${query.size > 0 ? `?${query}` : ""}`;
}

/** The whole URL of a booking, outside any frame. */
export function ownAddressOf(bookingUid: string): string {
  const address = new URL(addressOf(bookingUid), location.href);
  for (const parameter of ["embed", "theme", "accent"]) address.searchParams.delete(parameter);
  return address.href;
}
