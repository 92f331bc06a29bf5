import type { Booking, BookingAnswer } from "../../../schemas/scheduling.ts";
import type { Calls, Slot } from "./calls.ts";
import type { Clock } from "./times.ts";
import type { Visit } from "./visit.ts";
import type { Words } from "./words.ts";

/** What the steps need of the page, and the ways from one to another. */
export interface Host {
  visit: Visit;
  words: Words;
  clock: Clock;
  calls: Calls;
  /** What was entered, by path, kept when the visitor goes back for another time. */
  draft: Map<string, string>;
  /** The booking that is shown or moved. */
  booking: Booking | null;
  /** The service's time in ms. */
  now(): number;
  /** Speaks to those who don't see the page. */
  say(words: string): void;
  /** To the free times; with a notice where the visitor is sent back. */
  choose(notice?: string): void;
  /** From a time to the form. */
  enter(slot: Slot): void;
  /** To the free times for the booking that is shown. */
  move(): void;
  /** To a booking; with a title where something has just become of it. */
  finish(booking: Booking, title?: string): void;
  /** To the checkout of a booking. */
  pay(answer: BookingAnswer): void;
  back(): void;
}
