import type { ProviderKey, StoredCredential } from "../../../../schemas/integrations.ts";
import type { Env } from "../../../platform/env.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import type { BusyInterval } from "../recurrence.ts";

/** What a provider's authorisation needs, from the settings. */
export interface OAuthSettings {
  clientId: string;
  clientSecret: string;
  /** Addresses of the authorisation page and of the token endpoint. */
  authorize: string;
  token: string;
  /** Where tokens are taken back; absent where the provider has no such endpoint. */
  revoke?: string;
  scope: string;
  /** How the client names itself at the token endpoint (RFC 6749, 2.3.1). */
  login: "post" | "basic";
  /** Further parameters of the authorisation page. */
  parameters: Record<string, string>;
}

/** What the token endpoint gave. */
export interface Grant {
  accessToken: string;
  refreshToken: string | null;
  /** Real ms at which the access token ends; null where it doesn't. */
  expiresAt: number | null;
  /** The whole answer, for what a provider adds. */
  answer: Record<string, unknown>;
}

/** A connected account, opened: `secret` is what `connect` gave to be kept. */
export interface Account {
  handle: string;
  credential: StoredCredential;
  secret: string | null;
}

/** A calendar of an account; `writable` where this service may put events into it. */
export interface ProviderCalendar {
  calendarId: string;
  name: string;
  primary: boolean;
  writable: boolean;
}

/** What is asked about a calendar's busy time. */
export interface BusyQuestion {
  calendarId: string;
  /** The window in ms; it stays the same for weeks, so that what was read stays true. */
  from: number;
  to: number;
  /** IANA zone of floating times where the calendar has none of its own. */
  zone: string;
  /** The last answer, where there was one for this very window and zone. */
  known?: {
    mark: string;
    /** Tags of the objects that were read, by their ids; for providers that must compare. */
    tags(): Promise<Map<string, string>>;
  };
}

/**
 * What is busy in a calendar, or what changed there since `known`. A provider that can't list changes answers with everything, as
 * whole, each time.
 */
export interface BusyAnswer {
  /** Comes back as `known.mark`: a sync token, a ctag; null where nothing is to come back. */
  mark: string | null;
  /** True: `changed` is all there is. False: it is added to what is known, object by object, and `removed` taken away. */
  isWhole: boolean;
  changed: BusyObject[];
  removed: string[];
}

/** An event, a series, or whatever else the provider changes as one: the time that it takes within the window, if any. */
export interface BusyObject {
  objectId: string;
  /** Its etag; may be empty where the provider doesn't ask for `tags`. */
  tag: string;
  /** `uid` of an event that this service wrote is `ownUid` of its booking, however the provider keeps it; others may have any. */
  taken: BusyInterval[];
}

/** A booking as it shall stand in a calendar. */
export interface CalendarEvent {
  bookingUid: string;
  /** The iCalendar UID, the same as in the mails: `ownUid` of the booking. */
  uid: string;
  /** Grows by one with each move: of two states the one with the higher sequence counts. */
  sequence: number;
  title: string;
  /** Plain text: the attendee and the answers. The visitor's capability is not in it: calendars are shared. */
  description: string;
  /** Instants (ISO 8601, UTC). */
  start: string;
  end: string;
  /** IANA zone in which the event is shown. */
  timeZone: string;
  /** Plain text or the address of the meeting. */
  location: string | null;
  organiser: { name: string; email: string };
  /** Those who come, the visitor first. They have mails of this service: the provider must not invite them. */
  attendees: { name: string; email: string }[];
  /** The meeting that the provider shall make with the event, where it can. */
  meeting: "google_meet" | "teams" | null;
  /** Instant of the booking's last change. */
  updatedAt: string;
}

/** An event that was put into a calendar. */
export interface WrittenEvent {
  credentialId: string;
  calendarId: string;
  /** What the provider calls it. */
  eventId: string;
  /** Its state as it was written, for the next change; null where the provider gave none. */
  etag: string | null;
  /** Address of the meeting that was made with it. */
  meetingUrl: string | null;
}

/** A meeting that was made without a calendar. */
export interface WrittenMeeting {
  credentialId: string;
  meetingId: string;
  url: string;
}

/**
 * Calendars of a provider. Everything may be called again after a crash at any point, with the same or with newer content, but never
 * twice at the same time for one booking. Failures: a `Fail` under 500 where the account is at fault (its code is told to the
 * owner), else any error; both are tried again later.
 */
export interface ProviderCalendars {
  /** The meeting that `put` makes where the event asks for it: type of the locations that want one. Absent where it makes none. */
  meeting?: "google_meet" | "teams";
  list(runtime: Runtime, account: Account): Promise<ProviderCalendar[]>;
  busy(runtime: Runtime, account: Account, question: BusyQuestion): Promise<BusyAnswer>;
  /**
   * Makes the event, or brings the one that is there to this state: once for each booking and calendar, whether or not `earlier`
   * (what the last call that came to its end gave, for this calendar) is known. One with a higher sequence stays as it is. One that
   * the owner has deleted is made again.
   */
  put(
    runtime: Runtime,
    account: Account,
    asked: { calendarId: string; event: CalendarEvent; earlier?: WrittenEvent },
  ): Promise<WrittenEvent>;
  /** Takes the event out; one that is gone is no failure. */
  remove(runtime: Runtime, account: Account, written: WrittenEvent): Promise<void>;
}

/** Meetings of a provider without calendars. The same promises as for `ProviderCalendars`. */
export interface ProviderMeetings {
  /** Type of the locations that ask for such a meeting. */
  kind: "zoom";
  put(
    runtime: Runtime,
    account: Account,
    asked: { event: CalendarEvent; earlier?: WrittenMeeting },
  ): Promise<WrittenMeeting>;
  remove(runtime: Runtime, account: Account, written: WrittenMeeting): Promise<void>;
}

/** What the service asks of every provider; the parts that one hasn't are absent. */
export interface Provider {
  key: ProviderKey;
  /** Its authorisation, or undefined where the installation has no client of it; absent where it has none. */
  oauth?(env: Env): OAuthSettings | undefined;
  /** The account that a grant is for, and the secret that is to be kept. */
  connect?(runtime: Runtime, grant: Grant): Promise<{ account: string; secret: string | null }>;
  /** Takes the grant back at the provider. */
  disconnect?(runtime: Runtime, credential: { account: string; secret: string | null }): Promise<void>;
  calendars?: ProviderCalendars;
  meetings?: ProviderMeetings;
}

/** The iCalendar UID of a booking, for its mails and its events alike. */
export function ownUid({ BASE_URL }: Pick<Env, "BASE_URL">, bookingUid: string): string {
  return `${bookingUid}@${new URL(BASE_URL).hostname}`;
}
