import { type Words, wordsOf } from "../../schemas/languages.ts";
import type { Booking, BookingField, MailKind } from "../../schemas/scheduling.ts";
import type { Fact, MailLayout } from "../engines/mail/mail.ts";
import { formatMinutes, formatMoney, formatTime } from "../platform/formats.ts";
import { locationName } from "../platform/locations.ts";
import { fillPlaceholders } from "../platform/placeholders.ts";
import { isTrue } from "./field-answers.ts";
import type { BookingRecord } from "./ledger.ts";

export interface Recipient {
  email: string;
  as: "attendee" | "guest" | "owner";
  /** True for an owner's address, even if the owner is the attendee or a guest too. */
  isOwner: boolean;
  /** A supported language (BCP 47). */
  language: string;
  /** The public name of the handle. */
  host: string;
  /** The recipient's actions, the main one first. */
  links: (readonly [action: keyof Words["mails"]["booking"]["actions"], address: string])[];
}

/** A booking as far as its mails and pages tell of it. */
type PresentedBooking = Omit<BookingRecord, "buffers" | "reminderMinutes">;

/** A booking for a reader; `kind` is that of a mail. */
interface BookingView {
  stored: PresentedBooking;
  kind?: MailKind | undefined;
  recipient: Pick<Recipient, "as" | "language">;
  /** Those of its event type; undefined if that was deleted. */
  questions: readonly BookingField[] | undefined;
}

interface BookingMailView extends BookingView {
  kind: MailKind;
  recipient: Recipient;
  /** Who caused the mail, if not the visitor. */
  by?: "owner" | undefined;
  /** True if the visitor gets no mail, for want of a sender. */
  isUntold: boolean;
}

/** The contents of a mail about a booking for its recipient. */
export function bookingLayout(view: BookingMailView): MailLayout {
  const { stored, kind, recipient, isUntold } = view;
  const { language } = recipient;
  const { bookingPage, mails } = wordsOf(language);
  const { booking: words } = mails;
  const side = recipient.as === "owner" ? "owner" : "visitor";
  const { state, text } = wordsFor(view);
  const time = formatTime(stored.start, { language, timeZone: zoneOf(stored, recipient), length: "short" });
  const isOver = kind === "cancelled" || kind === "declined" || kind === "refunded";
  // Behind the same link is then the way to another time.
  const actions = isOver ? { ...words.actions, manage: bookingPage.bookAnother } : words.actions;
  return {
    language,
    subject: fillPlaceholders(words.subject[side], { state, title: stored.title, name: stored.attendee.name, time }),
    sender: recipient.host,
    title: text,
    paragraphs: paymentOf(view, words),
    facts: bookingFacts(view),
    actions: recipient.links.map(([action, address]) => [actions[action], address]),
    ...(recipient.as === "guest" && { footer: words.whyGuest }),
    ...(isUntold &&
      recipient.as === "owner" && { footer: fillPlaceholders(words.whyUntold, { name: recipient.host }) }),
  };
}

/** The state and its sentence for one side. To owners only what they did not do themselves is new. */
function wordsFor({ stored, kind, by, recipient }: BookingMailView): { state: string; text: string } {
  const { mails, ownerBookingPage } = wordsOf(recipient.language);
  const { kinds, unrefunded } = mails.booking;
  if (kind === "unrefunded") return unrefunded;
  const wording = kind === "rescheduled" && stored.status === "PENDING" ? "moveRequested" : kind;
  if (recipient.as !== "owner") return kinds[wording].visitor;
  const isApproved = kind === "confirmed" && by === "owner";
  return isApproved ? { state: kinds.confirmed.visitor.state, text: ownerBookingPage.accepted } : kinds[wording].owner;
}

/** The facts of a booking, each with a name. Guests see neither the attendee nor any free text. */
export function bookingFacts({ stored, kind, recipient, questions }: BookingView): Fact[] {
  const { language } = recipient;
  const { mails, bookingPage } = wordsOf(language);
  const { facts: names } = mails.booking;
  const { title, start, durationMinutes, rescheduledFrom, location, meetingUrl, payment, status } = stored;
  const isOver = status === "CANCELLED" || status === "REJECTED";
  const time = (instant: string) => longTime(instant, language, zoneOf(stored, recipient));
  const facts: Fact[] = [
    [names.what, title],
    [names.when, `${time(start)}, ${formatMinutes(durationMinutes, language)}`],
  ];
  if (kind === "rescheduled" && rescheduledFrom) facts.push([names.before, time(rescheduledFrom.start)]);
  if (meetingUrl && !isOver) facts.push([names.where, meetingUrl, meetingUrl]);
  if (!meetingUrl && location) facts.push([names.where, location.label || locationName(location.type, bookingPage)]);
  const reason = reasonOf({ stored, kind, recipient });
  if (reason) facts.push([names.reason, reason]);
  if (recipient.as === "guest") return facts;
  if (payment?.status === "PAID") facts.push([mails.purchase.paid, formatMoney(payment, language)]);
  const who = recipient.as === "owner" ? stored.attendee.name : presentableName(stored.attendee.name);
  return [...facts, ...peopleFacts(stored, { who, questions, language })];
}

/** The attendees and their answers. */
export function peopleFacts(
  { attendee, guests, answers }: Pick<Booking, "attendee" | "guests" | "answers">,
  { who, questions = [], language }: Pick<BookingView, "questions"> & { who: string | undefined; language: string },
): Fact[] {
  const { facts: names } = wordsOf(language).mails.booking;
  const { email } = attendee;
  const facts: Fact[] = [[names.who, who === undefined ? email : `${who} <${email}>`]];
  if (guests.length > 0) facts.push([names.guests, guests.map(({ email }) => email).join(", ")]);
  const answerFact = ([id, answer]: [string, string]): Fact => {
    const question = questions.find((one) => one.id === id);
    return [question?.label ?? id, answerText(question, answer, language)];
  };
  return [...facts, ...Object.entries(answers).map(answerFact)];
}

/** A decision is stored as the word that was sent, such as `true` or `on`. */
function answerText(question: BookingField | undefined, answer: string, language: string): string {
  if (question?.type !== "checkbox" && question?.type !== "boolean") return answer;
  const { yes, no } = wordsOf(language).bookingPage;
  return isTrue(answer) ? yes : no;
}

function zoneOf({ timeZone, attendee }: PresentedBooking, { as }: BookingView["recipient"]): string {
  return as === "owner" ? timeZone : attendee.timeZone;
}

function longTime(instant: string, language: string, timeZone: string): string {
  const time = formatTime(instant, { language, timeZone, length: "long" });
  return timeZone === "UTC" ? time : `${time} (${timeZone})`;
}

/** A visitor's free text reaches the owner and the attendee, never guests: a booking must not be a way to mail strangers. */
function reasonOf({ stored, kind, recipient: { as } }: Omit<BookingView, "questions">): string | null {
  const isMove = kind === "rescheduled";
  const isTold = as !== "guest" || (!isMove && stored.cancelledBy === "owner");
  const tells = isMove || kind === "cancelled" || kind === "declined";
  if (!tells || !isTold) return null;
  return isMove ? stored.reschedulingReason : stored.cancellationReason;
}

/** What happens to the payment of a booking that ends; guests have not paid. */
function paymentOf(
  { stored, kind, recipient }: BookingMailView,
  { payment: words, unrefunded }: Words["mails"]["booking"],
): string[] {
  const { payment } = stored;
  if (payment === null || recipient.as === "guest") return [];
  const side = recipient.as === "owner" ? "Owner" : "Visitor";
  const values = { amount: formatMoney(payment, recipient.language) };
  if (kind === "unrefunded") return [fillPlaceholders(unrefunded.advice, values)];
  if (kind !== "cancelled" && kind !== "declined") return [];
  if (payment.status === "PAID") return [fillPlaceholders(words[`kept${side}`], values)];
  return payment.status === "REQUIRED" ? [] : [fillPlaceholders(words[`refund${side}`], values)];
}

/** Longest name that is shown to others, in characters. */
const MAX_NAME_LENGTH = 60;

/** Signs of web and mail addresses and of markup, line breaks and direction marks, and words that a dot joins, as in `evil.example`. */
const MESSAGE_SIGNS = /[/\\@:<>\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]|[.\u3002\uff0e\uff61][\p{L}\p{N}]{2}/u;
/** Enough digits for a telephone number, with any separators. */
const PHONE_NUMBER = /(?:\p{Nd}[^\p{L}\p{Nd}]*){6}/u;

/**
 * A visitor's name for others' mails and calendar files; undefined if it could be a message: a long text, or one with an address or a
 * telephone number. The owner sees every name as given.
 */
export function presentableName(name: string | undefined): string | undefined {
  if (name === undefined || name.length > MAX_NAME_LENGTH) return undefined;
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
