// Over 300 lines: the shapes of one noun, which share their fields; each is read on its own.
import * as s from "./schema.ts";

const clockTime = s.formed("^(?:[01]\\d|2[0-3]):[0-5]\\d$", "must be a time, such as 09:30");
const endTime = s.formed("^(?:(?:[01]\\d|2[0-3]):[0-5]\\d|24:00)$", "must be a time, such as 17:30, or 24:00");
const date = s.string({ format: "date" });

const weeklyRow = s.component("WeeklyHours", { day: s.integer(0, 6), startTime: clockTime, endTime });
/** One of `{date, startTime, endTime}`, `{date, unavailable: true}`, `{from, to, unavailable: true}`. */
const overrideRow = s.component("ScheduleOverride", {
  date: s.optional(date),
  from: s.optional(date),
  to: s.optional(date),
  startTime: s.optional(clockTime),
  endTime: s.optional(endTime),
  unavailable: s.optional(s.boolean),
});

/** `POST …/scheduling/schedules`: creates the schedule of this id, or replaces it. */
export const newSchedule = s.object({
  scheduleId: s.optional(s.id),
  timeZone: s.timeZone,
  weeklyAvailability: s.withDefault(s.array(weeklyRow, { maxItems: 200 }), []),
  overrides: s.withDefault(s.array(overrideRow, { maxItems: 2000 }), []),
  ...s.expected,
  ...s.ignored("version", "createdAt", "updatedAt"),
});

export type Override =
  | { date: string; startTime: string; endTime: string }
  | { date: string; unavailable: true }
  | { from: string; to: string; unavailable: true };

export const schedule = s.component("Schedule", {
  handle: s.handle,
  scheduleId: s.id,
  timeZone: s.timeZone,
  weeklyAvailability: s.array(weeklyRow),
  overrides: s.array(overrideRow),
  ...s.stamps,
});
export type StoredSchedule = Omit<s.Infer<typeof schedule>, "handle" | "version" | "overrides"> & {
  overrides: Override[];
};

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

const bookingField = s.component("BookingField", {
  id: s.formed(
    "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$",
    "must be 1 to 64 letters, digits, _, ., : and -, the first a letter or digit",
  ),
  label: s.line(200),
  type: s.folded(s.oneOf(...fieldTypes), fieldTypes),
  required: s.withDefault(s.boolean, false),
  options: s.optional(s.array(s.line(200), { minItems: 1, maxItems: 100, uniqueItems: true })),
});
export type BookingField = s.Infer<typeof bookingField>;

const location = s.component("Location", {
  type: s.folded(
    s.formed("^[a-z][a-z0-9_:-]{0,31}$", "must be 1 to 32 letters, digits, _, : and -, the first a letter"),
    locationTypes,
  ),
  label: s.withDefault(s.string({ maxLength: 500, format: "line" }), ""),
});
const buffer = s.integer(0, 1440);
const { currency } = s;
const price = s.integer(1, 99_999_999);

const eventTypeBody = {
  slug: s.slug,
  title: s.line(200),
  durationMinutes: s.integer(1, 1440),
  description: s.withDefault(s.text(5000), ""),
  timeZone: s.optional(s.nullable(s.timeZone)),
  scheduleId: s.optional(s.nullable(s.id)),
  hidden: s.withDefault(s.boolean, false),
  status: s.withDefault(s.oneOf("ACTIVE", "PAUSED", "ARCHIVED"), "ACTIVE"),
  confirmationRequired: s.withDefault(s.boolean, false),
  minimumNoticeMinutes: s.withDefault(s.integer(0, 525_600), 0),
  slotIntervalMinutes: s.optional(s.nullable(s.integer(1, 1440))),
  bookingWindowDays: s.optional(s.nullable(s.integer(1, 3650))),
  maxBookingsPerDay: s.optional(s.nullable(s.integer(1, 1440))),
  reminderMinutes: s.optional(s.nullable(s.integer(1, 43_200))),
  locations: s.withDefault(s.array(location, { maxItems: 20 }), []),
  bookingFields: s.withDefault(s.array(bookingField, { maxItems: 50 }), []),
};
const bufferFields = { beforeMinutes: s.withDefault(buffer, 0), afterMinutes: s.withDefault(buffer, 0) };
const buffers = s.object(bufferFields);
/** Default number of minutes before the start until which a visitor's cancellation is refunded. */
export const REFUND_MINUTES = 1440;
const paymentFields = {
  enabled: s.withDefault(s.boolean, false),
  amountMinor: s.optional(s.nullable(price)),
  currency: s.optional(s.nullable(currency)),
  refundUntilMinutes: s.optional(s.integer(0, 525_600)),
};
const payment = s.object(paymentFields);
const derived = s.ignored("version", "createdAt", "updatedAt", "revision", "url", "bookable", "reason");

export const newEventType = s.object({
  ...eventTypeBody,
  buffers: s.withDefault(buffers, { beforeMinutes: 0, afterMinutes: 0 }),
  payment: s.withDefault(payment, { enabled: false }),
  ...derived,
  ...s.ignored("eventTypeId"),
});

/** `PUT …/scheduling/event-types/{eventTypeId}`: absent fields keep their value, inside `buffers` and `payment` too. */
export const eventTypeChange = s.object({
  ...s.expected,
  buffers: s.optional(s.object(s.partial(bufferFields))),
  payment: s.optional(s.object(s.partial(paymentFields))),
  ...derived,
  ...s.partial(eventTypeBody),
});

export const eventType = s.component("EventType", {
  handle: s.handle,
  eventTypeId: s.id,
  ...eventTypeBody,
  buffers,
  payment,
  url: s.string({ format: "uri" }),
  /** False if its payment can't be taken: bookings are refused then, for the reason. */
  bookable: s.boolean,
  reason: s.nullable(s.oneOf("payment_provider_not_connected", "price_missing")),
  revision: s.integer(1),
  ...s.stamps,
});
/** A stored event type; without its own zone it uses its schedule's. */
export type StoredEventType = Omit<
  s.Infer<typeof eventType>,
  "handle" | "url" | "bookable" | "reason" | "revision" | "version"
>;

export const publicEvent = s.component("PublicEventType", {
  handle: s.handle,
  eventTypeId: s.id,
  slug: s.slug,
  title: s.string(),
  description: s.string(),
  duration: s.integer(1),
  locations: s.array(location),
  timeZone: s.timeZone,
  bookingFields: s.array(bookingField),
  paymentRequired: s.boolean,
  price: s.nullable(s.object({ amountMinor: price, currency })),
  confirmationRequired: s.boolean,
  availableActions: s.array(s.oneOf("book", "cancel", "reschedule")),
});
export type PublicEvent = s.Infer<typeof publicEvent>;
export const publicEventList = s.object({ events: s.array(publicEvent) });

const visitorLanguage = s.optional(s.string());
/** `GET /apps/scheduling/{handle}/{bookingUid}/{purpose}/{token}`: the token signs the rest of the path. */
export const ownerVisit = s.object({ visitorLanguage });
/** The form of that page; the reason is for a declined booking. */
export const ownerDecision = s.object({ visitorLanguage, reason: s.optional(s.text(1000)) });

/** The visitor's page: `booking` is the uid of the booking to manage, `embed=1` allows framing. */
export const schedulingVisit = s.object({
  booking: s.optional(s.string({ maxLength: 128 })),
  embed: s.optional(s.string({ maxLength: 8 })),
});

/** `GET …/slots`; `bookingUid` names a booking that is being moved, whose own time counts as free. */
export const slotQuery = s.object({
  start: s.instant,
  end: s.instant,
  timeZone: s.optional(s.timeZone),
  bookingUid: s.optional(s.string({ maxLength: 128 })),
});
const availableSlot = s.component("Slot", {
  start: s.instant,
  end: s.instant,
  timeZone: s.timeZone,
  sourceAvailability: s.object({ kind: s.oneOf("weekly", "override", "default"), label: s.string() }),
  bookingNonce: s.string(),
});
export const slotList = s.object({ slots: s.array(availableSlot), displayTimeZone: s.timeZone });

const missing = "booking_required_fields";
const name = s.string({ ...s.filled, maxLength: 200, format: "line" });
const attendee = s.object({
  name: s.trimmed(s.needed(name, missing)),
  email: s.trimmed(s.needed({ ...s.email, ...s.filled } as s.Schema<string>, missing)),
  timeZone: s.optional(s.timeZone),
});
const slotInstant = s.optional(s.needed({ ...s.instant, ...s.filled } as s.Schema<string>, missing));
const slot = s.object({
  start: slotInstant,
  end: slotInstant,
  bookingNonce: s.optional(s.nullable(s.string({ maxLength: 200 }))),
});
const guest = s.either(
  s.trimmed(s.email),
  s.object({ email: s.trimmed(s.email), name: s.optional(s.string({ maxLength: 200, format: "line" })) }),
);
const reason = s.optional(s.nullable(s.text(1000)));
const trackingText = s.optional(s.decoration(s.text(200)));

/** `POST …/bookings`. Start and end may be in `slot` or at the top level. */
export const newBooking = s.object({
  attendee: s.needed(attendee, missing),
  slot: s.optional(s.needed(slot, missing)),
  start: slotInstant,
  end: slotInstant,
  answers: s.withDefault(s.withCode(s.map(s.anything), "invalid_booking_answers"), {}),
  guests: s.withDefault(s.array(guest, { maxItems: 20 }), []),
  location: s.optional(s.decoration(s.object({ type: s.optional(s.decoration(s.string({ maxLength: 32 }))) }))),
  tracking: s.optional(s.decoration(s.object({ source: trackingText, placement: trackingText }))),
  // BCP 47: the language of the booking page, else of the header.
  language: s.optional(s.decoration(s.language)),
  visitorLanguage,
});

export const bookingMove = s.object({
  bookingUid: s.string({ minLength: 1, maxLength: 128 }),
  slot: s.optional(s.needed(slot, missing)),
  start: slotInstant,
  end: slotInstant,
  reschedulingReason: reason,
});

/** `POST …/bookings/{uid}/cancel` by a visitor or the owner. */
export const cancellation = s.object({ cancellationReason: reason });
export const declining = s.object({ reason });

const bookingStatuses = ["ACCEPTED", "PENDING", "PENDING_PAYMENT", "REJECTED", "CANCELLED"] as const;
export type BookingStatus = (typeof bookingStatuses)[number];

/** `GET …/scheduling/bookings`: by start, `from` inclusive and `to` exclusive. */
export const bookingListing = s.object({
  status: s.optional(s.oneOf(...bookingStatuses)),
  from: s.optional(s.instant),
  to: s.optional(s.instant),
  order: s.withDefault(s.oneOf("asc", "desc"), "desc"),
  ...s.listing,
});

export const bookingPayment = s.component("BookingPayment", {
  amountMinor: price,
  currency,
  status: s.oneOf("REQUIRED", "PAID", "REFUND_DUE", "REFUNDED"),
  checkoutUrl: s.optional(s.nullable(s.string())),
  /** Until when a visitor's cancellation is refunded, and whether that applies now. */
  refundUntil: s.instant,
  refundable: s.boolean,
});

/** A stored payment, with the account and the session of its checkout, and its provider's payment id once it is paid. */
type StoredPayment = Omit<s.Infer<typeof bookingPayment>, "refundUntil" | "refundable"> & {
  refundUntilMinutes?: number;
  /** The end of a refund period that was over when the booking moved. */
  refundUntil?: string;
  account?: string;
  session?: string;
  paid?: { account: string; intent: string };
  /** Seconds since 1970 of the provider's newest report about its refund, which counts whatever comes later. */
  refundReportedAt?: number;
};

export const booking = s.component("Booking", {
  bookingUid: s.id,
  handle: s.handle,
  eventTypeId: s.id,
  eventSlug: s.slug,
  title: s.string(),
  status: s.oneOf(...bookingStatuses),
  start: s.instant,
  end: s.instant,
  durationMinutes: s.integer(1),
  timeZone: s.timeZone,
  attendee: s.object({ name: s.string(), email: s.email, timeZone: s.timeZone }),
  guests: s.array(s.object({ email: s.email, name: s.optional(s.string()) })),
  answers: s.map(s.string()),
  tracking: s.nullable(
    s.object({ source: s.optional(s.nullable(s.string())), placement: s.optional(s.nullable(s.string())) }),
  ),
  location: s.nullable(location),
  meetingUrl: s.nullable(s.string()),
  /** Language (BCP 47) of the mails to its visitor; absent from bookings of an earlier version. */
  language: s.optional(s.nullable(s.string())),
  sequence: s.integer(0),
  syncStatus: s.oneOf("OK", "DEGRADED"),
  payment: s.nullable(bookingPayment),
  holdUntil: s.nullable(s.instant),
  cancellationReason: s.nullable(s.string()),
  cancelledBy: s.nullable(s.oneOf("visitor", "owner", "service")),
  reschedulingReason: s.nullable(s.string()),
  rescheduledFrom: s.nullable(s.object({ start: s.instant, end: s.instant })),
  confirmedAt: s.nullable(s.instant),
  ...s.stamps,
});
export type Booking = s.Infer<typeof booking>;

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

export const nextAction = s.component("NextAction", {
  type: s.oneOf("redirect_to_checkout"),
  url: s.string({ format: "uri" }),
});
export const bookingAnswer = s.object({
  bookingUid: s.id,
  status: s.oneOf(...bookingStatuses),
  booking,
  nextAction: s.optional(nextAction),
});
export type BookingAnswer = s.Infer<typeof bookingAnswer>;

export const mailKinds = [
  "confirmed",
  "requested",
  "declined",
  "rescheduled",
  "cancelled",
  "reminder",
  "link",
  "refunded",
  "unrefunded",
] as const;
export type MailKind = (typeof mailKinds)[number];

export const newCalendarFeed = s.object(s.ignored("createdAt", "url"));
/** A calendar feed without its address. */
export const calendarFeed = s.component("CalendarFeed", { createdAt: s.instant });
export type CalendarFeed = s.Infer<typeof calendarFeed>;
/** A calendar feed with its address, which is shown only once. */
export const calendarFeedWithAddress = s.component("NewCalendarFeed", {
  createdAt: s.instant,
  url: s.string({ format: "uri" }),
});
export type CalendarFeedWithAddress = s.Infer<typeof calendarFeedWithAddress>;
