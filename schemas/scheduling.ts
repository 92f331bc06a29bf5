// Over 300 lines: the shapes of one noun, which share their fields; each is read on its own.
import {
  anything,
  array,
  boolean,
  decoration,
  either,
  email,
  folded,
  handle,
  type Infer,
  id,
  ignored,
  instant,
  integer,
  language,
  line,
  listing,
  map,
  merge,
  needed,
  nullable,
  object,
  oneOf,
  optional,
  partial,
  type Schema,
  slug,
  string,
  text,
  timeZone,
  trimmed,
  withCode,
  withDefault,
} from "./schema.ts";

const clockTime = string({ pattern: "^(?:[01]\\d|2[0-3]):[0-5]\\d$" });
const endTime = string({ pattern: "^(?:(?:[01]\\d|2[0-3]):[0-5]\\d|24:00)$" });
const date = string({ format: "date" });
const stamps = ignored("version", "createdAt", "updatedAt");

export const weeklyRow = object({ day: integer(0, 6), startTime: clockTime, endTime });
/** One of `{date, startTime, endTime}`, `{date, unavailable: true}`, `{from, to, unavailable: true}`. */
export const overrideRow = object({
  date: optional(date),
  from: optional(date),
  to: optional(date),
  startTime: optional(clockTime),
  endTime: optional(endTime),
  unavailable: optional(boolean),
});

/** `POST …/scheduling/schedules`: creates the schedule of this id, or replaces it. */
export const newSchedule = object({
  handle,
  scheduleId: optional(id),
  timeZone,
  weeklyAvailability: withDefault(array(weeklyRow, { maxItems: 200 }), []),
  overrides: withDefault(array(overrideRow, { maxItems: 2000 }), []),
  expectedVersion: optional(integer(0)),
  ...stamps,
});

/** The path of one schedule. */
export const schedulePath = object({ handle: string(), scheduleId: string() });
/** `GET …/scheduling/schedules` and `…/event-types`. */
export const schedulingListing = object({ handle, ...listing });

/** An override of the weekly hours for one date or a range of dates. */
export type Override =
  | { date: string; startTime: string; endTime: string }
  | { date: string; unavailable: true }
  | { from: string; to: string; unavailable: true };

/** A schedule as its owner reads it. */
export const schedule = object({
  handle,
  scheduleId: id,
  timeZone,
  weeklyAvailability: array(weeklyRow),
  overrides: array(overrideRow),
  version: integer(1),
  createdAt: instant,
  updatedAt: instant,
});
/** A schedule as it is stored. */
export type StoredSchedule = Omit<Infer<typeof schedule>, "handle" | "version" | "overrides"> & {
  overrides: Override[];
};
export const scheduleAnswer = object({ schedule });
export const scheduleList = object({ schedules: array(schedule), nextCursor: nullable(string()) });

/** Types of question of an event type. */
const fieldTypes = [
  "text",
  "textarea",
  "text_area",
  "text-area",
  "email",
  "phone",
  "number",
  "select",
  "radio",
  "checkbox",
  "boolean",
  "url",
] as const;

/** Types of location with special behaviour; others only show their label. */
const locationTypes = ["in_person", "phone", "link", "google_meet", "teams", "zoom"] as const;

export const bookingField = object({
  id: string({ pattern: "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$" }),
  label: line(200),
  type: folded(oneOf(...fieldTypes), fieldTypes),
  required: withDefault(boolean, false),
  options: optional(array(line(200), { minItems: 1, maxItems: 100, uniqueItems: true })),
});
/** One question of an event type. */
export type BookingField = Infer<typeof bookingField>;

export const location = object({
  type: folded(string({ pattern: "^[a-z][a-z0-9_:-]{0,31}$" }), locationTypes),
  label: withDefault(string({ maxLength: 500, format: "line" }), ""),
});
const buffer = integer(0, 1440);
const currency = string({ pattern: "^[A-Za-z]{3}$" });
const price = integer(1, 99_999_999);

const eventTypeBody = {
  slug,
  title: line(200),
  durationMinutes: integer(1, 1440),
  description: withDefault(text(5000), ""),
  timeZone: optional(nullable(timeZone)),
  scheduleId: optional(nullable(id)),
  hidden: withDefault(boolean, false),
  status: withDefault(oneOf("ACTIVE", "PAUSED", "ARCHIVED"), "ACTIVE"),
  confirmationRequired: withDefault(boolean, false),
  minimumNoticeMinutes: withDefault(integer(0, 525_600), 0),
  slotIntervalMinutes: optional(nullable(integer(1, 1440))),
  bookingWindowDays: optional(nullable(integer(1, 3650))),
  maxBookingsPerDay: optional(nullable(integer(1, 1440))),
  reminderMinutes: optional(nullable(integer(1, 43_200))),
  locations: withDefault(array(location, { maxItems: 20 }), []),
  bookingFields: withDefault(array(bookingField, { maxItems: 50 }), []),
};
const buffers = object({ beforeMinutes: withDefault(buffer, 0), afterMinutes: withDefault(buffer, 0) });
/** Default number of minutes before the start until which a visitor's cancellation is refunded. */
export const usualRefundMinutes = 1440;
const payment = object({
  enabled: withDefault(boolean, false),
  amountMinor: optional(nullable(price)),
  currency: optional(nullable(currency)),
  refundUntilMinutes: optional(integer(0, 525_600)),
});
const derived = { ...stamps, ...ignored("revision", "url", "bookable", "reason") };

/** `POST …/scheduling/event-types`. */
export const newEventType = object({
  handle,
  ...eventTypeBody,
  buffers: withDefault(buffers, { beforeMinutes: 0, afterMinutes: 0 }),
  payment: withDefault(payment, { enabled: false }),
  ...derived,
  ...ignored("eventTypeId"),
});

/** `PUT …/scheduling/event-types/{eventTypeId}`: absent fields keep their value, inside `buffers` and `payment` too. */
export const eventTypeChange = merge(
  object({
    handle,
    eventTypeId: string(),
    expectedVersion: optional(integer(0)),
    buffers: optional(partial(buffers)),
    payment: optional(partial(payment)),
    ...derived,
  }),
  partial(object(eventTypeBody)),
);

/** The path of one event type. */
export const eventTypePath = object({ handle: string(), eventTypeId: string() });

/** A stored event type; without its own zone it uses its schedule's. */
export type StoredEventType = Omit<
  Infer<typeof newEventType>,
  "handle" | "version" | "createdAt" | "updatedAt" | "revision" | "url" | "bookable" | "reason" | "eventTypeId"
> & {
  eventTypeId: string;
  createdAt: string;
  updatedAt: string;
};

/** An event type as its owner reads it. */
export const eventType = object({
  handle,
  eventTypeId: id,
  ...eventTypeBody,
  buffers,
  payment,
  url: string({ format: "uri" }),
  /** False if its payment can't be taken: every booking is refused then, for the reason. */
  bookable: boolean,
  reason: nullable(oneOf("payment_provider_not_connected", "price_missing")),
  version: integer(1),
  revision: integer(1),
  createdAt: instant,
  updatedAt: instant,
});
export const eventTypeAnswer = object({ eventType });
export const eventTypeList = object({ eventTypes: array(eventType), nextCursor: nullable(string()) });

export const publicEvent = object({
  handle,
  eventTypeId: id,
  slug,
  title: string(),
  description: string(),
  duration: integer(1),
  locations: array(location),
  timeZone,
  bookingFields: array(bookingField),
  paymentRequired: boolean,
  price: nullable(object({ amountMinor: price, currency })),
  confirmationRequired: boolean,
  availableActions: array(oneOf("book", "cancel", "reschedule")),
});
/** An event type as visitors see it. */
export type PublicEvent = Infer<typeof publicEvent>;
export const publicEventAnswer = object({ event: publicEvent });
export const publicEventList = object({ events: array(publicEvent) });

/** The path of a public event or list; anything unknown is a 404. */
export const publicHandle = object({ handle: string() });
export const publicEventPath = object({ handle: string(), eventSlug: string() });
export const publicBookingPath = object({ handle: string(), eventSlug: string(), bookingUid: string() });

/** An owner's link to a booking: `token` signs the rest of the path. */
const ownerLinkFields = {
  handle: string(),
  bookingUid: string(),
  purpose: string(),
  token: string(),
  visitorLanguage: optional(string()),
};
/** `GET /apps/scheduling/{handle}/{bookingUid}/{purpose}/{token}`. */
export const ownerVisit = object(ownerLinkFields);
/** The form of that page; the reason is for a declined booking. */
export const ownerDecision = object({ ...ownerLinkFields, reason: optional(text(1000)) });

/** The visitor's page: `booking` is the uid of the booking to manage, `embed=1` allows framing. */
export const schedulingVisit = object({
  handle: string(),
  eventSlug: string(),
  booking: optional(string({ maxLength: 128 })),
  embed: optional(string({ maxLength: 8 })),
});

/** `GET …/slots`; `bookingUid` names a booking that is being moved, whose own time counts as free. */
export const slotQuery = object({
  handle: string(),
  eventSlug: string(),
  start: instant,
  end: instant,
  timeZone: optional(timeZone),
  bookingUid: optional(string({ maxLength: 128 })),
});
/** A start and end that can be booked. */
export const availableSlot = object({
  start: instant,
  end: instant,
  timeZone,
  sourceAvailability: object({ kind: oneOf("weekly", "override", "default"), label: string() }),
  bookingNonce: string(),
});
export const slotList = object({ slots: array(availableSlot), displayTimeZone: timeZone });

const missing = "booking_required_fields";
const filledText = { minLength: 1, pattern: "\\S" };
const name = string({ ...filledText, maxLength: 200, format: "line" });
const attendee = object({
  name: trimmed(needed(name, missing)),
  email: trimmed(needed({ ...email, ...filledText } as Schema<string>, missing)),
  timeZone: optional(timeZone),
});
const slotInstant = optional(needed({ ...instant, ...filledText } as Schema<string>, missing));
const slot = object({
  start: slotInstant,
  end: slotInstant,
  bookingNonce: optional(nullable(string({ maxLength: 200 }))),
});
const guest = either(
  trimmed(email),
  object({ email: trimmed(email), name: optional(string({ maxLength: 200, format: "line" })) }),
);
const reason = optional(nullable(text(1000)));
const trackingText = optional(decoration(text(200)));

/** `POST …/bookings`. Start and end may be in `slot` or at the top level. */
export const newBooking = object({
  handle: string(),
  eventSlug: string(),
  attendee: needed(attendee, missing),
  slot: optional(needed(slot, missing)),
  start: slotInstant,
  end: slotInstant,
  answers: withDefault(withCode(map(anything), "invalid_booking_answers"), {}),
  guests: withDefault(array(guest, { maxItems: 20 }), []),
  location: optional(decoration(object({ type: optional(decoration(string({ maxLength: 32 }))) }))),
  tracking: optional(decoration(object({ source: trackingText, placement: trackingText }))),
  // BCP 47: the language of the booking page, else of the header.
  language: optional(decoration(language)),
  visitorLanguage: optional(string()),
});

/** `POST …/reschedule`. */
export const bookingMove = object({
  handle: string(),
  eventSlug: string(),
  bookingUid: string({ minLength: 1, maxLength: 128 }),
  slot: optional(needed(slot, missing)),
  start: slotInstant,
  end: slotInstant,
  reschedulingReason: reason,
});

/** `POST …/bookings/{uid}/cancel` by a visitor. */
export const publicCancellation = object({
  handle: string(),
  eventSlug: string(),
  bookingUid: string(),
  cancellationReason: reason,
});
/** `POST …/scheduling/bookings/{uid}/cancel` by the owner. */
export const ownerCancellation = object({ handle, bookingUid: string(), cancellationReason: reason });
/** `POST …/scheduling/bookings/{uid}/decline`. */
export const declining = object({ handle, bookingUid: string(), reason });
/** The path of a booking as its owner names it. */
export const bookingPath = object({ handle, bookingUid: string() });

const bookingStatuses = ["ACCEPTED", "PENDING", "PENDING_PAYMENT", "REJECTED", "CANCELLED"] as const;
export type BookingStatus = (typeof bookingStatuses)[number];

/** `GET …/scheduling/bookings`: by start, `from` inclusive and `to` exclusive. */
export const bookingListing = object({
  handle,
  status: optional(oneOf(...bookingStatuses)),
  from: optional(instant),
  to: optional(instant),
  order: withDefault(oneOf("asc", "desc"), "desc"),
  ...listing,
});

export const bookingPayment = object({
  amountMinor: price,
  currency,
  status: oneOf("REQUIRED", "PAID", "REFUND_DUE", "REFUNDED"),
  checkoutUrl: optional(nullable(string())),
  /** Until when a visitor's cancellation is refunded, and whether that applies now. */
  refundUntil: instant,
  refundable: boolean,
});

/** A stored payment, with its provider's payment id once it is paid. */
type StoredPayment = Omit<Infer<typeof bookingPayment>, "refundUntil" | "refundable"> & {
  refundUntilMinutes?: number;
  paid?: { account: string; intent: string };
};

/** A booking as owner and visitor read it. */
export const booking = object({
  bookingUid: id,
  handle,
  eventTypeId: id,
  eventSlug: slug,
  title: string(),
  status: oneOf(...bookingStatuses),
  start: instant,
  end: instant,
  durationMinutes: integer(1),
  timeZone,
  attendee: object({ name: string(), email, timeZone }),
  guests: array(object({ email, name: optional(string()) })),
  answers: map(string()),
  tracking: nullable(object({ source: optional(nullable(string())), placement: optional(nullable(string())) })),
  location: nullable(location),
  meetingUrl: nullable(string()),
  /** Language (BCP 47) of the mails to its visitor; absent from bookings of an earlier version. */
  language: optional(nullable(string())),
  sequence: integer(0),
  syncStatus: oneOf("OK", "DEGRADED"),
  payment: nullable(bookingPayment),
  holdUntil: nullable(instant),
  cancellationReason: nullable(string()),
  cancelledBy: nullable(oneOf("visitor", "owner", "service")),
  reschedulingReason: nullable(string()),
  rescheduledFrom: nullable(object({ start: instant, end: instant })),
  confirmedAt: nullable(instant),
  version: integer(1),
  createdAt: instant,
  updatedAt: instant,
});
export type Booking = Infer<typeof booking>;

/** A stored booking; its buffers are those of its event type when it was made or last moved. */
export type StoredBooking = Omit<Booking, "handle" | "version" | "payment"> & {
  payment: StoredPayment | null;
  buffers: { beforeMinutes: number; afterMinutes: number };
  reminderMinutes: number | null;
  /** True once it was confirmed, even if a move made it PENDING again. */
  everConfirmed?: boolean;
  /** Instants of its visitor's moves in the 24 hours before the last one. */
  moves?: string[];
};

export const nextAction = object({ type: oneOf("redirect_to_checkout"), url: string({ format: "uri" }) });
export const bookingAnswer = object({
  bookingUid: id,
  status: oneOf(...bookingStatuses),
  booking,
  nextAction: optional(nextAction),
});
export type BookingAnswer = Infer<typeof bookingAnswer>;
export const bookingRead = object({ booking });
export const bookingList = object({ bookings: array(booking), nextCursor: nullable(string()) });

/** Kinds of booking mails. */
export const mailKinds = [
  "confirmed",
  "requested",
  "declined",
  "rescheduled",
  "cancelled",
  "reminder",
  "link",
  "refunded",
] as const;
export type MailKind = (typeof mailKinds)[number];

/** `…/scheduling/calendar-feed`. */
export const calendarFeedPath = object({ handle });
export const newCalendarFeed = object({ handle, ...ignored("createdAt", "url") });
/** A calendar feed without its address. */
export const calendarFeed = object({ createdAt: instant });
export type CalendarFeed = Infer<typeof calendarFeed>;
/** A calendar feed with its address, which is shown only once. */
export const shownCalendarFeed = object({ createdAt: instant, url: string({ format: "uri" }) });
export type ShownCalendarFeed = Infer<typeof shownCalendarFeed>;
export const calendarFeedAnswer = object({ feed: calendarFeed });
export const shownCalendarFeedAnswer = object({ feed: shownCalendarFeed });
/** The address of a calendar feed: its secret with the extension of a calendar file. */
export const publicCalendarFeed = object({ handle: string(), file: string() });
