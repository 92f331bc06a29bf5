import {
  admitVisitor,
  cancelBooking,
  cancelPublicBooking,
  confirmBooking,
  createBooking,
  createEventType,
  declineBooking,
  deleteEventType,
  deleteSchedule,
  listBookings,
  listEventTypes,
  listPublicEventTypes,
  listSchedules,
  listSlots,
  mustBePublic,
  putSchedule,
  readBooking,
  readCalendarFile,
  readEventType,
  readPublicBooking,
  readPublicEventType,
  readSchedule,
  rescheduleBooking,
  resynchronizeBooking,
  type SlotAnswer,
  updateEventType,
} from "../core/scheduling/face.ts";
import {
  bookingAnswer,
  bookingList,
  bookingListing,
  bookingMove,
  bookingPath,
  bookingRead,
  declining,
  eventTypeAnswer,
  eventTypeChange,
  eventTypeList,
  eventTypePath,
  newBooking,
  newEventType,
  newSchedule,
  ownerCancellation,
  publicBookingPath,
  publicCancellation,
  publicEventAnswer,
  publicEventList,
  publicEventPath,
  publicHandle,
  scheduleAnswer,
  scheduleList,
  schedulePath,
  schedulingListing,
  slotList,
  slotQuery,
} from "../schemas/scheduling.ts";
import { anyone, creator, type Row, route, type View } from "./route.ts";

const owned = "/v2/handles/:handle/scheduling";
const schedules = `${owned}/schedules` as const;
const eventTypes = `${owned}/event-types` as const;
const bookings = `${owned}/bookings` as const;
const publicPath = "/v2/public/scheduling/:handle";
const event = `${publicPath}/:eventSlug` as const;
const booking = `${event}/bookings/:bookingUid` as const;

/** Scheduling: owners' settings and decisions, and visitors' slots and bookings. */
export const schedulingRows: Row[] = [
  route(`POST ${schedules}`, creator, newSchedule, putSchedule, {
    created: 201,
    wrote: ({ schedule }) => schedule.scheduleId,
    returns: scheduleAnswer,
    summary: "Create or replace a schedule",
    description: "Without `scheduleId` one is generated. The rows of a date in `overrides` replace its weekly hours.",
  }),
  route(`GET ${schedules}`, creator, schedulingListing, listSchedules, {
    returns: scheduleList,
    summary: "List schedules",
  }),
  route(`GET ${schedules}/:scheduleId`, creator, schedulePath, readSchedule, {
    returns: scheduleAnswer,
    summary: "Get a schedule",
    failures: ["schedule_not_found"],
  }),
  route(`DELETE ${schedules}/:scheduleId`, creator, schedulePath, deleteSchedule, {
    summary: "Delete a schedule",
    failures: ["schedule_not_found"],
  }),
  route(`POST ${eventTypes}`, creator, newEventType, createEventType, {
    status: 201,
    wrote: ({ eventType }) => eventType.eventTypeId,
    returns: eventTypeAnswer,
    summary: "Create an event type",
    description: "Without `scheduleId` the oldest schedule of the handle applies.",
    failures: ["schedule_not_found", "event_type_slug_taken"],
  }),
  route(`GET ${eventTypes}`, creator, schedulingListing, listEventTypes, {
    returns: eventTypeList,
    summary: "List event types",
  }),
  route(`GET ${eventTypes}/:eventTypeId`, creator, eventTypePath, readEventType, {
    returns: eventTypeAnswer,
    summary: "Get an event type",
    failures: ["event_type_not_found"],
  }),
  route(`PUT ${eventTypes}/:eventTypeId`, creator, eventTypeChange, updateEventType, {
    returns: eventTypeAnswer,
    summary: "Update an event type",
    description:
      "An absent field keeps its value, also inside `buffers` and `payment`. Existing bookings keep their times and buffers.",
    failures: ["event_type_not_found", "schedule_not_found", "event_type_slug_taken"],
  }),
  route(`DELETE ${eventTypes}/:eventTypeId`, creator, eventTypePath, deleteEventType, {
    summary: "Delete an event type",
    description: "Its bookings stay.",
    failures: ["event_type_not_found"],
  }),
  route(`GET ${bookings}`, creator, bookingListing, listBookings, {
    returns: bookingList,
    summary: "List bookings",
    description: "Sorted by start; `from` is inclusive, `to` exclusive.",
    tool: {
      name: "bookings_list",
      scope: "agent.bookings.read",
      description:
        "Lists the bookings of the handle, with their visitors' names, addresses and answers, sorted by start. Use `from` and `to` for a period, and `status` to leave out what was cancelled.",
    },
  }),
  route(`GET ${bookings}/:bookingUid`, creator, bookingPath, readBooking, {
    returns: bookingRead,
    summary: "Get a booking",
    failures: ["booking_not_found"],
  }),
  route(`POST ${bookings}/:bookingUid/confirm`, creator, bookingPath, confirmBooking, {
    returns: bookingRead,
    summary: "Confirm a booking",
    description: "Accepts a booking that is PENDING.",
    failures: ["booking_not_found", "booking_not_pending"],
  }),
  route(`POST ${bookings}/:bookingUid/decline`, creator, declining, declineBooking, {
    returns: bookingRead,
    summary: "Decline a booking",
    description: "Rejects a booking that is PENDING and frees its slot.",
    failures: ["booking_not_found", "booking_not_pending"],
  }),
  route(`POST ${bookings}/:bookingUid/cancel`, creator, ownerCancellation, cancelBooking, {
    returns: bookingRead,
    summary: "Cancel a booking",
    description: "Frees the slot, refunds a payment and tells the attendee. Cancelling again is no error.",
    failures: ["booking_not_found", "booking_not_cancellable"],
  }),
  route(`POST ${bookings}/:bookingUid/sync`, creator, bookingPath, resynchronizeBooking, {
    status: 202,
    returns: bookingRead,
    summary: "Synchronize a booking with its calendar",
    description: "Writes the calendar event and the meeting of the booking again, without waiting for the next retry.",
    failures: ["booking_not_found"],
  }),

  route(`GET ${publicPath}`, anyone, publicHandle, listPublicEventTypes, {
    guard: admitVisitor,
    returns: publicEventList,
    summary: "List the public event types of a handle",
    description: "Event types that are ACTIVE and not hidden.",
    failures: ["not_found", "rate_limited"],
  }),
  route(`GET ${event}`, anyone, publicEventPath, readPublicEventType, {
    guard: admitVisitor,
    returns: publicEventAnswer,
    summary: "Get a public event type",
    failures: ["event_type_not_found", "rate_limited"],
  }),
  route(`GET ${event}/slots`, anyone, slotQuery, listSlots, {
    guard: admitVisitor,
    subject: mustBePublic,
    view: slotsView,
    returns: slotList,
    summary: "List available slots",
    description:
      "Lists the slots that start from `start` to before `end`, at most 62 days. `ETag` changes with every booking.",
    failures: ["event_type_not_found", "rate_limited"],
  }),
  route(`POST ${event}/bookings`, anyone, newBooking, createBooking, {
    guard: admitVisitor,
    subject: mustBePublic,
    status: 201,
    returns: bookingAnswer,
    summary: "Book a slot",
    idempotent: true,
    headerInputs: ["visitorLanguage"],
    description:
      "Books a slot that the slots route lists. The booking is ACCEPTED, PENDING if the owner confirms it, or PENDING_PAYMENT with a `nextAction`. `bookingUid` is the visitor's capability to manage the booking.",
    failures: [
      "event_type_not_found",
      "booking_required_fields",
      "invalid_booking_answers",
      "scheduling_slot_unavailable",
      "payment_provider_not_connected",
      "rate_limited",
    ],
  }),
  route(`GET ${booking}`, anyone, publicBookingPath, readPublicBooking, {
    guard: admitVisitor,
    returns: bookingRead,
    summary: "Get a booking as a visitor",
    failures: ["booking_not_found", "rate_limited"],
  }),
  route(`GET ${booking}/calendar.ics`, anyone, publicBookingPath, readCalendarFile, {
    guard: admitVisitor,
    view: calendarView,
    summary: "Download a booking as a calendar file",
    failures: ["booking_not_found", "rate_limited"],
    produces: { types: ["text/calendar"], example: "BEGIN:VCALENDAR\r\n…\r\nEND:VCALENDAR\r\n" },
  }),
  route(`POST ${booking}/cancel`, anyone, publicCancellation, cancelPublicBooking, {
    guard: admitVisitor,
    returns: bookingAnswer,
    summary: "Cancel a booking as a visitor",
    description: "Cancelling again is no error.",
    failures: ["booking_not_found", "booking_not_cancellable", "rate_limited"],
  }),
  route(`POST ${event}/reschedule`, anyone, bookingMove, rescheduleBooking, {
    guard: admitVisitor,
    subject: mustBePublic,
    returns: bookingAnswer,
    summary: "Reschedule a booking",
    description:
      "Moves the booking atomically: its uid stays, and on failure it keeps its slot. A booking that needs confirmation becomes PENDING again.",
    failures: [
      "event_type_not_found",
      "booking_not_found",
      "booking_required_fields",
      "scheduling_slot_unavailable",
      "booking_not_reschedulable",
      "rate_limited",
    ],
  }),
];

/** Slots change with every booking: never cached, but revalidated with an entity tag. */
function slotsView({ body, etag }: SlotAnswer): View {
  return { type: "application/json; charset=utf-8", body, headers: { ETag: etag, "Cache-Control": "no-cache" } };
}

function calendarView({ text, method }: { text: string; method: string }): View {
  const headers = { "Content-Disposition": 'attachment; filename="booking.ics"', "Cache-Control": "no-store" };
  return { type: `text/calendar; charset=utf-8; method=${method}`, body: text, headers };
}
