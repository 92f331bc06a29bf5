import type { Booking } from "../../schemas/scheduling.ts";

/** Longest name that is shown to others, in characters. */
const MAX_LENGTH = 60;

/** Signs of web and mail addresses and of markup, line breaks and direction marks, and words that a dot joins, as in `evil.example`. */
const MESSAGE_SIGNS = /[/\\@:<>\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]|[.\u3002\uff0e\uff61][\p{L}\p{N}]{2}/u;
/** Enough digits for a telephone number, with any separators. */
const PHONE_NUMBER = /(?:\p{Nd}[^\p{L}\p{Nd}]*){6}/u;

/**
 * A visitor's name for others' mails and calendar files; undefined if it could be a message: a long text, or one with an address or a
 * telephone number. The owner sees every name as given.
 */
export function presentableName(name: string | undefined): string | undefined {
  if (name === undefined || name.length > MAX_LENGTH) return undefined;
  return MESSAGE_SIGNS.test(name) || PHONE_NUMBER.test(name) ? undefined : name;
}

/** A booking with presentable names; a person without one gets the email address as name. */
export function withPresentableNames(booking: Booking): Booking {
  const { attendee, guests } = booking;
  const named = <T extends { email: string; name?: string | undefined }>(person: T) => ({
    ...person,
    name: presentableName(person.name) ?? person.email,
  });
  return { ...booking, attendee: named(attendee), guests: guests.map((guest) => (guest.name ? named(guest) : guest)) };
}
