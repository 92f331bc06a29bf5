import {
  cancelAsOwner,
  cancelAsVisitor,
  confirmBooking,
  declineBooking,
  listBookings,
  readBooking,
  readCalendarFile,
  readPublicBooking,
} from "../core/scheduling/bookings.ts";
import { resyncBooking } from "../core/scheduling/calendar-events.ts";
import {
  changeEventType,
  createEventType,
  deleteEventType,
  listEventTypes,
  readEventType,
} from "../core/scheduling/event-types.ts";
import {
  admitVisitor,
  listEvents,
  listSlots,
  mustBePublic,
  readEvent,
  type Written,
} from "../core/scheduling/offers.ts";
import { createBooking, rescheduleBooking } from "../core/scheduling/reservations.ts";
import { deleteSchedule, listSchedules, putSchedule, readSchedule } from "../core/scheduling/schedules.ts";
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
import { creator, open, type Row, route, type View } from "./route.ts";

const owned = "/v2/handles/:handle/scheduling";
const schedules = `${owned}/schedules` as const;
const eventTypes = `${owned}/event-types` as const;
const bookings = `${owned}/bookings` as const;
const shown = "/v2/public/scheduling/:handle";
const event = `${shown}/:eventSlug` as const;
const booking = `${event}/bookings/:bookingUid` as const;

/** Scheduling: what owners set up and decide, and what visitors see and book. */
export const schedulingRows: Row[] = [
  route(`POST ${schedules}`, creator, newSchedule, putSchedule, {
    created: 201,
    returns: scheduleAnswer,
    summary: "Create or replace a schedule",
  }),
  route(`GET ${schedules}`, creator, schedulingListing, listSchedules, {
    returns: scheduleList,
    summary: "List schedules",
  }),
  route(`GET ${schedules}/:scheduleId`, creator, schedulePath, readSchedule, {
    returns: scheduleAnswer,
    summary: "Get a schedule",
  }),
  route(`DELETE ${schedules}/:scheduleId`, creator, schedulePath, deleteSchedule, { summary: "Delete a schedule" }),
  route(`POST ${eventTypes}`, creator, newEventType, createEventType, {
    status: 201,
    returns: eventTypeAnswer,
    summary: "Create an event type",
  }),
  route(`GET ${eventTypes}`, creator, schedulingListing, listEventTypes, {
    returns: eventTypeList,
    summary: "List event types",
  }),
  route(`GET ${eventTypes}/:eventTypeId`, creator, eventTypePath, readEventType, {
    returns: eventTypeAnswer,
    summary: "Get an event type",
  }),
  route(`PUT ${eventTypes}/:eventTypeId`, creator, eventTypeChange, changeEventType, {
    returns: eventTypeAnswer,
    summary: "Update an event type",
  }),
  route(`DELETE ${eventTypes}/:eventTypeId`, creator, eventTypePath, deleteEventType, {
    summary: "Delete an event type",
  }),
  route(`GET ${bookings}`, creator, bookingListing, listBookings, {
    returns: bookingList,
    summary: "List bookings",
    tool: { name: "bookings_list", scope: "agent.bookings.read" },
  }),
  route(`GET ${bookings}/:bookingUid`, creator, bookingPath, readBooking, {
    returns: bookingRead,
    summary: "Get a booking",
  }),
  route(`POST ${bookings}/:bookingUid/confirm`, creator, bookingPath, confirmBooking, {
    returns: bookingRead,
    summary: "Confirm a booking",
  }),
  route(`POST ${bookings}/:bookingUid/decline`, creator, declining, declineBooking, {
    returns: bookingRead,
    summary: "Decline a booking",
  }),
  route(`POST ${bookings}/:bookingUid/cancel`, creator, ownerCancellation, cancelAsOwner, {
    returns: bookingRead,
    summary: "Cancel a booking",
  }),
  route(`POST ${bookings}/:bookingUid/sync`, creator, bookingPath, resyncBooking, {
    status: 202,
    returns: bookingRead,
    summary: "Synchronize a booking with its calendar",
  }),

  route(`GET ${shown}`, open, publicHandle, listEvents, {
    guard: admitVisitor,
    returns: publicEventList,
    summary: "List the public event types of a handle",
  }),
  route(`GET ${event}`, open, publicEventPath, readEvent, {
    guard: admitVisitor,
    returns: publicEventAnswer,
    summary: "Get a public event type",
  }),
  route(`GET ${event}/slots`, open, slotQuery, listSlots, {
    guard: admitVisitor,
    subject: mustBePublic,
    view: slotsView,
    returns: slotList,
    summary: "List available slots",
  }),
  route(`POST ${event}/bookings`, open, newBooking, createBooking, {
    guard: admitVisitor,
    subject: mustBePublic,
    status: 201,
    returns: bookingAnswer,
    summary: "Book a slot",
  }),
  route(`GET ${booking}`, open, publicBookingPath, readPublicBooking, {
    guard: admitVisitor,
    returns: bookingRead,
    summary: "Get a booking as a visitor",
  }),
  route(`GET ${booking}/calendar.ics`, open, publicBookingPath, readCalendarFile, {
    guard: admitVisitor,
    view: calendarView,
    summary: "Download a booking as a calendar file",
  }),
  route(`POST ${booking}/cancel`, open, publicCancellation, cancelAsVisitor, {
    guard: admitVisitor,
    returns: bookingAnswer,
    summary: "Cancel a booking as a visitor",
  }),
  route(`POST ${event}/reschedule`, open, bookingMove, rescheduleBooking, {
    guard: admitVisitor,
    subject: mustBePublic,
    returns: bookingAnswer,
    summary: "Reschedule a booking",
  }),
];

/** Slots change with every booking: kept by nobody, but asked again at the price of a 304. */
function slotsView({ body, etag }: Written): View {
  return { type: "application/json; charset=utf-8", body, headers: { ETag: etag, "Cache-Control": "no-cache" } };
}

function calendarView({ text, method }: { text: string; method: string }): View {
  const headers = { "Content-Disposition": 'attachment; filename="booking.ics"', "Cache-Control": "no-store" };
  return { type: `text/calendar; charset=utf-8; method=${method}`, body: text, headers };
}
