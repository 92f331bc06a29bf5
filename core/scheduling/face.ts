/** What other modules may import from scheduling. */

export { sendBookingDigest, sendMails } from "./booking-mails.ts";
export { expireHold, recordFailedRefund, recordRefund, releaseHold, settlePayment } from "./booking-payments.ts";
export { bookingFacts } from "./booking-texts.ts";
export {
  cancelBooking,
  cancelPublicBooking,
  confirmBooking,
  declineBooking,
  type EventPage,
  listBookings,
  readBooking,
  readCalendarFile,
  readPublicBooking,
  resumeBookings,
  visitEvent,
} from "./bookings.ts";
export { pullCalendars, resumePulls, scheduleNextPull } from "./busy-calendars.ts";
export { resynchronizeBooking, syncBooking } from "./calendar-events.ts";
export { createCalendarFeed, deleteCalendarFeed, readCalendarFeed, readFeed } from "./calendar-feeds.ts";
export { connectCaldav, listCalendars, selectCalendars } from "./calendars.ts";
export { credentialRecords, openCredentials, rebindCredentials, resealCredentials } from "./credentials.ts";
export { createEventType, deleteEventType, listEventTypes, readEventType, updateEventType } from "./event-types.ts";
export {
  disconnectAccount,
  disconnectAll,
  finishAuthorization,
  listIntegrations,
  startAuthorization,
} from "./integrations.ts";
export { findBooking } from "./ledger.ts";
export { decideByLink, type OwnerState, type OwnerVisit, visitOwnerLink } from "./owner-decisions.ts";
export {
  askForConsent,
  type ConsentQuestion,
  decideConsent,
  type Redirect,
  returnFromProvider,
} from "./provider-consent.ts";
export {
  admitVisitor,
  listPublicEventTypes,
  listSlots,
  mustBePublic,
  readPublicEventType,
  type SlotAnswer,
} from "./public-events.ts";
export { createBooking, rescheduleBooking } from "./reservations.ts";
export { deleteSchedule, listSchedules, putSchedule, readSchedule } from "./schedules.ts";
