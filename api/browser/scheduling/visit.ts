import type { EventPage } from "../../../core/scheduling/face.ts";
import type { PageWords } from "./words.ts";

/** The data that the service wrote into the page. */
export interface PageData extends EventPage {
  /** The language of the page (ISO 639-1), which is the visitor's if the service has it, and its texts. */
  language: string;
  /** The languages that the visitor can choose. */
  languages: string[];
  words: PageWords;
}

/** Reads the data; undefined on any other page. */
export function readVisit(): PageData | undefined {
  const text = document.getElementById("scheduling-visit")?.textContent;
  return text ? JSON.parse(text) : undefined;
}

/** The URL of this page with or without a booking, in this or another language; it stays embedded if it is now. */
export function addressOf(bookingUid?: string, language?: string): string {
  const query = new URLSearchParams();
  if (bookingUid) query.set("booking", bookingUid);
  const given = new URLSearchParams(location.search);
  for (const name of ["embed", "theme", "accent", "language"]) if (given.has(name)) query.set(name, given.get(name)!);
  if (language) query.set("language", language);
  return `${location.pathname}${query.size > 0 ? `?${query}` : ""}`;
}
