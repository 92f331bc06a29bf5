/** What other modules may import from calendars. */
export { settleRefreshes } from "./access-tokens.ts";
export { type CalendarFile, calendarFile, calendarOf, type Organizer } from "./calendar-file.ts";
export { type AuthorisationRequest, exchangeCode, requestAuthorisation, takeState } from "./oauth.ts";
export { login } from "./providers/caldav.ts";
export {
  type BusyAnswer,
  type BusyObject,
  type CalendarEvent,
  type OAuthSettings,
  ownUid,
  type Provider,
  type ProviderAccount,
  type ProviderCalendar,
  type ProviderCalendars,
  type ProviderMeetings,
  type WrittenEvent,
  type WrittenMeeting,
} from "./providers/provider.ts";
export {
  type CheckoutSession,
  closeSession,
  isRefunded,
  isRefundFailed,
  isRevoked,
  openSession,
  readEvent,
  readSession,
  refund,
  type StripeEvent,
} from "./providers/stripe.ts";
export { providers } from "./providers/table.ts";
export type { BusyInterval } from "./recurrence.ts";
export { CalendarServerError } from "./server-error.ts";
