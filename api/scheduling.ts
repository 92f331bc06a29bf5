import * as core from "../core/scheduling/face.ts";
import * as shape from "../schemas/scheduling.ts";
import { listOf, listQuery, nothing, object } from "../schemas/schema.ts";
import { anyone, creator, page, type Row, route, type View } from "./route.ts";
import * as view from "./scheduling-view.ts";

const owned = "/v2/handles/:handle/scheduling";
const schedules = `${owned}/schedules` as const;
const eventTypes = `${owned}/event-types` as const;
const bookings = `${owned}/bookings` as const;
const publicPath = "/v2/public/scheduling/:handle";
const event = `${publicPath}/:eventSlug` as const;
const booking = `${event}/bookings/:bookingUid` as const;
const feed = `${owned}/calendar-feed` as const;
const pagePath = "/apps/public/scheduling/:handle";
const ownerLink = "/apps/scheduling/:handle/:bookingUid/:purpose/:token";

const visitor = { guard: core.admitVisitor, tag: "Booking" };
const visitorPage = {
  errorView: view.schedulingFailure,
  failureTexts: { not_found: "eventMissing", service_unavailable: "calendarAway" },
} as const;
const unchanged = { 304: "The copy whose `ETag` is in `If-None-Match` is current" };

/**
 * Scheduling: owners' settings and decisions, visitors' slots and bookings, the feed of a handle's bookings at a secret address, the pages
 * where visitors book and manage bookings, and the pages behind the links of owners' mails.
 */
export const schedulingRows: Row[] = [
  route(`POST ${schedules}`, creator, shape.newSchedule, core.putSchedule, {
    created: 201,
    createdId: ({ schedule }) => schedule.scheduleId,
    returns: object({ schedule: shape.schedule }),
    summary: "Create or replace a schedule",
    description: "Without `scheduleId` one is generated. The rows of a date in `overrides` replace its weekly hours.",
  }),
  route(`GET ${schedules}`, creator, listQuery, core.listSchedules, { returns: listOf("schedules", shape.schedule) }),
  route(`GET ${schedules}/:scheduleId`, creator, nothing, core.readSchedule, {
    returns: object({ schedule: shape.schedule }),
  }),
  route(`DELETE ${schedules}/:scheduleId`, creator, nothing, core.deleteSchedule),
  route(`POST ${eventTypes}`, creator, shape.newEventType, core.createEventType, {
    status: 201,
    createdId: ({ eventType }) => eventType.eventTypeId,
    returns: object({ eventType: shape.eventType }),
    description: "Without `scheduleId` the oldest schedule of the handle applies.",
    failures: ["schedule_not_found", "event_type_slug_taken"],
  }),
  route(`GET ${eventTypes}`, creator, listQuery, core.listEventTypes, {
    returns: listOf("eventTypes", shape.eventType),
  }),
  route(`GET ${eventTypes}/:eventTypeId`, creator, nothing, core.readEventType, {
    returns: object({ eventType: shape.eventType }),
  }),
  route(`PUT ${eventTypes}/:eventTypeId`, creator, shape.eventTypeChange, core.updateEventType, {
    returns: object({ eventType: shape.eventType }),
    description:
      "An absent field keeps its value, also inside `buffers` and `payment`. Existing bookings keep their times and buffers.",
    failures: ["event_type_not_found", "schedule_not_found", "event_type_slug_taken"],
  }),
  route(`DELETE ${eventTypes}/:eventTypeId`, creator, nothing, core.deleteEventType, {
    description: "Its bookings stay.",
  }),
  route(`GET ${bookings}`, creator, shape.bookingListing, core.listBookings, {
    returns: listOf("bookings", shape.booking),
    description: "Sorted by start; `from` is inclusive, `to` exclusive.",
    tool: {
      name: "bookings_list",
      scope: "agent.bookings.read",
      description:
        "Lists the bookings of the handle, with their visitors' names, addresses and answers, sorted by start. Use `from` and `to` for a period, and `status` to leave out what was cancelled.",
    },
  }),
  route(`GET ${bookings}/:bookingUid`, creator, nothing, core.readBooking, {
    returns: object({ booking: shape.booking }),
  }),
  route(`POST ${bookings}/:bookingUid/confirm`, creator, nothing, core.confirmBooking, {
    returns: object({ booking: shape.booking }),
    description: "Accepts a booking that is PENDING, until its start.",
    failures: ["booking_not_pending"],
  }),
  route(`POST ${bookings}/:bookingUid/decline`, creator, shape.declining, core.declineBooking, {
    returns: object({ booking: shape.booking }),
    description: "Rejects a booking that is PENDING and frees its slot.",
    failures: ["booking_not_pending"],
  }),
  route(`POST ${bookings}/:bookingUid/cancel`, creator, shape.cancellation, core.cancelBooking, {
    returns: object({ booking: shape.booking }),
    description: "Frees the slot, refunds a payment and tells the attendee. Cancelling again is no error.",
    failures: ["booking_not_cancellable"],
  }),
  route(`POST ${bookings}/:bookingUid/sync`, creator, nothing, core.resynchronizeBooking, {
    status: 202,
    returns: object({ booking: shape.booking }),
    summary: "Synchronize a booking with its calendar",
    description:
      "Writes the calendar event and the meeting of the booking again, and tries its due refund again, without waiting for the next retry.",
  }),

  route(`GET ${publicPath}`, anyone, nothing, core.listPublicEventTypes, {
    ...visitor,
    returns: shape.publicEventList,
    summary: "List the public event types of a handle",
    description: "Event types that are ACTIVE and not hidden.",
    failures: ["not_found"],
  }),
  route(`GET ${event}`, anyone, nothing, core.readPublicEventType, {
    ...visitor,
    returns: object({ event: shape.publicEvent }),
    failures: ["event_type_not_found"],
  }),
  route(`GET ${event}/slots`, anyone, shape.slotQuery, core.listSlots, {
    ...visitor,
    subject: core.mustBePublic,
    view: slotsView,
    returns: shape.slotList,
    empty: unchanged,
    summary: "List available slots",
    description:
      "Lists the slots that start from `start` to before `end`, at most 62 days. `ETag` changes when the slots do.",
    failures: ["event_type_not_found"],
  }),
  route(`POST ${event}/bookings`, anyone, shape.newBooking, core.createBooking, {
    ...visitor,
    subject: core.mustBePublic,
    status: 201,
    createdId: ({ bookingUid }) => bookingUid,
    returns: shape.bookingAnswer,
    summary: "Book a slot",
    idempotent: true,
    description:
      "Books a slot that the slots route lists. The booking is ACCEPTED, PENDING if the owner confirms it, or PENDING_PAYMENT with a `nextAction`. `bookingUid` is the visitor's capability to manage the booking.",
    failures: ["event_type_not_found", "scheduling_slot_unavailable", "payment_provider_not_connected"],
  }),
  route(`GET ${booking}`, anyone, nothing, core.readPublicBooking, {
    ...visitor,
    returns: object({ booking: shape.booking }),
    summary: "Get a booking as a visitor",
  }),
  route(`GET ${booking}/calendar.ics`, anyone, nothing, core.readCalendarFile, {
    ...visitor,
    view: calendarView,
    summary: "Download a booking as a calendar file",
    produces: { types: ["text/calendar"], example: "BEGIN:VCALENDAR\r\n…\r\nEND:VCALENDAR\r\n" },
  }),
  route(`POST ${booking}/cancel`, anyone, shape.cancellation, core.cancelPublicBooking, {
    ...visitor,
    subject: (runtime, path) => core.readPublicBooking(runtime, path as never),
    page: view.cancelledView,
    returns: shape.bookingAnswer,
    empty: { 303: "A browser's form leads back to the booking" },
    summary: "Cancel a booking as a visitor",
    description: "Cancelling again is no error.",
    failures: ["booking_not_cancellable"],
  }),
  route(`POST ${event}/reschedule`, anyone, shape.bookingMove, core.rescheduleBooking, {
    ...visitor,
    subject: core.mustBePublic,
    returns: shape.bookingAnswer,
    description:
      "Moves the booking atomically: its uid stays, and on failure it keeps its slot. A booking that needs confirmation becomes PENDING again.",
    failures: ["event_type_not_found", "booking_not_found", "scheduling_slot_unavailable", "booking_not_reschedulable"],
  }),

  route(`POST ${feed}`, creator, shape.newCalendarFeed, core.createCalendarFeed, {
    status: 201,
    returns: object({ feed: shape.calendarFeedWithAddress }),
    createdId: () => "calendar-feed",
    summary: "Create or rotate the calendar feed",
    description:
      "Answers a secret address that any calendar can subscribe to; it is in this answer only. An earlier address ends at once.",
  }),
  route(`GET ${feed}`, creator, nothing, core.readCalendarFeed, {
    returns: object({ feed: shape.calendarFeed }),
    summary: "Get the calendar feed",
    failures: ["not_found"],
  }),
  route(`DELETE ${feed}`, creator, nothing, core.deleteCalendarFeed, {
    summary: "Revoke the calendar feed",
    description: "Its address answers 404 from the next request on. It is no error if there is none.",
  }),
  route("GET /v2/public/calendars/:handle/:file", anyone, nothing, core.readFeed, {
    view: feedView,
    empty: unchanged,
    summary: "Subscribe to the bookings of a handle",
    description:
      "An iCalendar file of the accepted and pending bookings from 90 days ago on, at most 1,000. The address is the capability.",
    failures: ["not_found", "rate_limited"],
    produces: { types: ["text/calendar"], example: "BEGIN:VCALENDAR\r\n…\r\nEND:VCALENDAR\r\n" },
  }),

  page(`GET ${pagePath}`, nothing, core.listPublicEventTypes, view.eventListView, visitorPage),
  page(`GET ${pagePath}/:eventSlug`, shape.schedulingVisit, core.visitEvent, view.schedulingView, visitorPage),
  page(`GET ${ownerLink}`, shape.ownerVisit, core.visitOwnerLink, view.ownerBookingView),
  page(`POST ${ownerLink}`, shape.ownerDecision, core.decideByLink, view.ownerBookingView, {
    audited: ({ decidedBy }) => decidedBy,
  }),
];

/** Slots change with every booking: never cached, but revalidated with an entity tag. */
function slotsView({ body, etag }: core.SlotAnswer): View {
  return { type: "application/json; charset=utf-8", body, headers: { ETag: etag, "Cache-Control": "no-cache" } };
}

function calendarView({ text, method }: { text: string; method: string }): View {
  const headers = { "Content-Disposition": 'attachment; filename="booking.ics"', "Cache-Control": "no-store" };
  return { type: `text/calendar; charset=utf-8; method=${method}`, body: text, headers };
}

function feedView({ text, etag }: { text: string; etag: string }): View {
  const headers = { ETag: etag, "Cache-Control": "private, no-cache", "Referrer-Policy": "no-referrer" };
  return { type: "text/calendar; charset=utf-8", body: text, headers };
}
