import type { Calendar, Credential } from "../../../../schemas/integrations.ts";
import type { Interval } from "../../../platform/clock.ts";
import type { Env } from "../../../platform/env.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import type { BusyInterval } from "../recurrence.ts";

/** OAuth settings of a provider. */
export interface OAuthSettings {
  /** Id and secret are empty if the installation has no client for the provider. */
  clientId: string;
  clientSecret: string;
  /** URLs of the authorisation page and of the token endpoint. */
  authorize: string;
  token: string;
  /** The revocation endpoint; absent if the provider has none. */
  revoke?: string;
  /** The URL before the paths of its API, and headers of every call. */
  api: string;
  headers?: Record<string, string>;
  scope: string;
  /** Client authentication at the token endpoint (RFC 6749, section 2.3.1). */
  login: "post" | "basic";
  /** Further parameters of the authorisation page. */
  parameters: Record<string, string>;
}

/** The tokens of an account; its sealed secret contains them as JSON. */
export interface Tokens {
  accessToken: string;
  refreshToken: string | null;
  /** Real ms from which the access token is stale; null if it is valid until the provider rejects it. */
  staleAt: number | null;
  /** The provider has ended the grant: only a new connection helps. */
  ended?: true;
}

/** The response of the token endpoint: its tokens, and the whole of it for provider-specific fields. */
export interface ProviderGrant {
  tokens: Tokens;
  answer: Readonly<Record<string, unknown>>;
}

/** A connected account of a handle; the runtime's `credentials` have the secret that `connect` returned. */
export type ProviderAccount = Credential & { handle: string };

/** A calendar of an account; `writable` if this service may create events in it. */
export type ProviderCalendar = Omit<Calendar, "credentialId">;

/** A query for a calendar's busy time in a window, which stays the same for weeks, so that incremental readings remain valid. */
export interface BusyQuestion extends Interval {
  calendarId: string;
  /** IANA zone of floating times, if the calendar has none of its own. */
  zone: string;
  /** The last answer for the same window and zone, if any. */
  known?: {
    mark: string;
    /** Tags of the known objects by id, for providers that compare. */
    tags(): Promise<Map<string, string>>;
  };
}

/** The busy time of a calendar, or its changes since `known`. A provider without incremental reading answers with everything each time. */
export interface BusyAnswer {
  /** Returned as `known.mark` in the next query: a sync token or ctag; null for none. */
  mark: string | null;
  /** True if `changed` is everything. False if `changed` updates the known objects and `removed` removes some. */
  isWhole: boolean;
  changed: BusyObject[];
  removed: string[];
}

/** An event, a series, or any unit that the provider changes as one, with the time that it blocks in the window. */
export interface BusyObject {
  objectId: string;
  /** Its etag; may be empty if the provider doesn't use `tags`. */
  tag: string;
  /** `uid` of an event that this service wrote is the booking's `ownUid`, however the provider stores it. */
  busy: BusyInterval[];
}

/** A booking's desired state in a calendar. It has no attendees: this service mails them, so the provider must not invite them. */
export interface CalendarEvent {
  bookingUid: string;
  /** The iCalendar UID, as in the mails: the booking's `ownUid`. */
  uid: string;
  /** Grows by one with each move; the state with the higher sequence wins. */
  sequence: number;
  title: string;
  /** Plain text: the attendee and the answers. It omits the visitor's management link, since calendars are shared. */
  description: string;
  /** Instants (ISO 8601, UTC). */
  start: string;
  end: string;
  /** IANA zone in which to show the event. */
  timeZone: string;
  /** Plain text or the URL of the meeting. */
  location: string | null;
  /** The meeting that the provider should create with the event, if it can. */
  meeting: "google_meet" | "teams" | null;
  /** Instant of the booking's last change. */
  updatedAt: string;
}

/** An event that was written to a calendar. */
export interface WrittenEvent {
  /** The provider's id. */
  eventId: string;
  /** URL of the meeting that was created with it. */
  meetingUrl: string | null;
}

/** An event to write to a calendar; `earlier` is the result of the last successful write there. */
export interface EventWrite {
  calendarId: string;
  event: CalendarEvent;
  earlier?: WrittenEvent;
}

/** A meeting that was created without a calendar. */
export interface WrittenMeeting {
  meetingId: string;
  url: string;
}

/**
 * Calendars of a provider. Every function may be repeated after a crash at any point, with the same or newer content, but never runs
 * concurrently for one booking. It throws a `Fail` below 500 if the account is at fault (the owner sees its code), else any error; both are
 * retried.
 */
export interface ProviderCalendars {
  /** The location type whose meetings `put` creates; absent if it creates none. */
  meeting?: "google_meet" | "teams";
  list(runtime: Runtime, account: ProviderAccount): Promise<ProviderCalendar[]>;
  busy(runtime: Runtime, account: ProviderAccount, question: BusyQuestion): Promise<BusyAnswer>;
  /**
   * Creates the event, or brings the existing one to this state; at most one per booking and calendar, with or without `earlier`. An event
   * with a higher sequence stays. One that the owner deleted is created again.
   */
  put(runtime: Runtime, account: ProviderAccount, write: EventWrite): Promise<WrittenEvent>;
  /** Deletes the event; a missing one is no failure. */
  remove(runtime: Runtime, account: ProviderAccount, written: { calendarId: string; eventId: string }): Promise<void>;
}

/** Meetings of a provider without calendars, with the guarantees of `ProviderCalendars`. */
export interface ProviderMeetings {
  /** The location type of these meetings. */
  kind: "zoom";
  put(
    runtime: Runtime,
    account: ProviderAccount,
    write: { event: CalendarEvent; earlier?: WrittenMeeting },
  ): Promise<WrittenMeeting>;
  remove(runtime: Runtime, account: ProviderAccount, written: WrittenMeeting): Promise<void>;
}

/** What the service requires of a provider; unsupported parts are absent. */
export interface Provider {
  /** Its OAuth settings; absent for providers without OAuth. */
  oauth?(env: Env): OAuthSettings;
  /** The account of a grant, as the provider names it (unchecked), and the secret to store. */
  connect?(
    runtime: Runtime,
    grant: ProviderGrant,
    settings: OAuthSettings,
  ): Promise<{ account: string; secret: string | null }>;
  /** Revokes the grant at the provider. */
  disconnect?(runtime: Runtime, credential: { account: string; secret: string | null }): Promise<void>;
  calendars?: ProviderCalendars;
  meetings?: ProviderMeetings;
}

/** The iCalendar UID of a booking, in its mails and its calendar events. */
export function ownUid({ BASE_URL }: Pick<Env, "BASE_URL">, bookingUid: string): string {
  return `${bookingUid}@${new URL(BASE_URL).hostname}`;
}
