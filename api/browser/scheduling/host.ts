import type { Booking, BookingAnswer } from "../../../schemas/scheduling.ts";
import type { BookableSlot, Calls } from "./calls.ts";
import type { Draft } from "./draft.ts";

/** The shared state of the steps, and the navigation between them. */
export interface Host {
  calls: Calls;
  /** Kept while the visitor chooses another time, and over a reload. */
  draft: Draft;
  /** The booking that is shown or moved. */
  booking: Booking | null;
  /** The service's time in ms. */
  now(): number;
  /** Announces to screen readers. */
  say(words: string): void;
  /** Shows the free times; with a notice if the visitor is sent back. */
  choose(notice?: string): void;
  /** Shows the form for a chosen time. */
  enter(slot: BookableSlot): void;
  /** Shows the free times for moving the current booking. */
  move(): void;
  /** Shows a booking; with a title if it has just changed. */
  finish(booking: Booking, title?: string): void;
  /** Opens the checkout of a booking. */
  pay(answer: BookingAnswer): void;
}
