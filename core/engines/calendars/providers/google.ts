import { clip } from "../../../platform/characters.ts";
import { sha256 } from "../../../platform/digest.ts";
import type { Env } from "../../../platform/env.ts";
import { mustGrant, secretFor, tokensIn } from "../access-tokens.ts";
import { AccountApi, type ApiCall, GONE, getWithGrant } from "../account-api.ts";
import { instantsOf, type ListedEvent, readItems, readMarked, wholeDays } from "../busy-objects.ts";
import { awaitMeeting, bringTo, meetingLink } from "../event-states.ts";
import { revokeGrant } from "../oauth.ts";
import { calendarRefusals, listRefusals } from "../server-error.ts";
import type { CalendarEvent, OAuthSettings, Provider, ProviderCalendars } from "./provider.ts";

/** Google Calendar (API v3) with Meet. */
const calendars: ProviderCalendars = {
  meeting: "google_meet",
  async list(runtime, account) {
    const calls = new AccountApi({ runtime, account, settings: settingsFrom(runtime.env) }, listRefusals);
    const listing = await listAll<GoogleCalendar>(calls, "/users/me/calendarList?maxResults=250");
    return (listing?.items ?? []).map(({ id, summary = id, summaryOverride, primary = false, accessRole }) => ({
      calendarId: id,
      name: summaryOverride ?? summary,
      primary,
      writable: accessRole === "owner" || accessRole === "writer",
    }));
  },

  /**
   * Changes list series as such; the busy time of a changed series is read from its instances. The listing of instances has sync tokens
   * too, but doesn't show which instances a change of a series removed.
   */
  async busy(runtime, account, question) {
    const calls = new AccountApi({ runtime, account, settings: settingsFrom(runtime.env) }, calendarRefusals);
    const events = eventsOf(question.calendarId);
    const read = async (path: string, query: Record<string, string>, absent?: readonly number[]) => {
      const first = `${path}?${new URLSearchParams({ ...everyReading, ...query })}`;
      const listing = await listAll<GoogleEvent>(calls, first, absent);
      const { nextSyncToken: mark = null, timeZone = question.zone } = listing?.last ?? {};
      return listing && { mark, events: readItems(runtime, listing.items, (event) => toListedEvent(event, timeZone)) };
    };
    return readMarked(
      {
        async newMark() {
          return (await read(events, { fields: "timeZone,nextPageToken,nextSyncToken" }))?.mark ?? null;
        },
        changesSince: ({ mark }) => read(events, { syncToken: mark, fields: busyFields }, [400, 410]),
        async instances(series) {
          const path = series ? `${events}/${encodeURIComponent(series)}/instances` : events;
          const [timeMin, timeMax] = instantsOf(question);
          const query = { timeMin, timeMax, fields: busyFields, ...(series ? {} : { singleEvents: "true" }) };
          return (await read(path, query, GONE))?.events ?? [];
        },
      },
      question,
    );
  },

  /** The event's id is derived from the booking, so that retries create it once. */
  async put(runtime, account, write) {
    const { calendarId, event, earlier } = write;
    const calls = new AccountApi({ runtime, account, settings: settingsFrom(runtime.env) }, calendarRefusals);
    // Event ids allow base32hex only. The booking's own uid would let every guest cancel.
    const id = earlier?.eventId ?? digest(event.uid);
    const read = (): Promise<GoogleEvent | undefined> => calls.find({ path: `${eventsOf(calendarId)}/${id}` });
    const state = await bringTo<GoogleEvent>(write, {
      write: (current) => writeEvent(calls, eventsOf(calendarId), { id, event, current }),
      read,
      sequenceOf: ({ status, extendedProperties }) =>
        status === "cancelled" ? -1 : Number(extendedProperties?.private?.sequence ?? -1),
    });
    const made = await awaitMeeting(state, {
      awaits: (current) => awaitsMeeting(event, current),
      read: async () => (await read()) ?? state,
    });
    if (made.id !== id) throw new Error("Google did not answer with the event.");
    return { eventId: id, meetingUrl: meetingUrlOf(made) };
  },

  async remove(runtime, account, { calendarId, eventId }) {
    const path = `${eventsOf(calendarId)}/${eventId}?sendUpdates=none`;
    const calls = new AccountApi({ runtime, account, settings: settingsFrom(runtime.env) }, calendarRefusals);
    await calls.find({ method: "DELETE", path });
  },
};

/** Google, with calendars. */
export const google: Provider = {
  oauth: settingsFrom,
  async connect(runtime, grant, settings) {
    mustGrant(grant, ...SCOPES.map((scope) => [scope, FULL_SCOPE]));
    const url = `${settings.api}/users/me/calendarList/primary`;
    // The id of the primary calendar is the account's address.
    const { id } = await getWithGrant<{ id: string }>(runtime, grant, url);
    return { account: id, secret: secretFor(grant) };
  },
  async disconnect(runtime, { secret }) {
    const { refreshToken, accessToken } = tokensIn(secret);
    await revokeGrant(runtime, settingsFrom(runtime.env), refreshToken ?? accessToken);
  },
  calendars,
};

/** Scopes of a grant, without their common prefix. */
const SCOPES = ["calendar.events", "calendar.calendarlist.readonly"];
/** The scope that includes all others. */
const FULL_SCOPE = "auth/calendar";

/** Google issues a refresh token only with consent, so every authorisation asks for consent. */
function settingsFrom(env: Env): OAuthSettings {
  return {
    clientId: env.GOOGLE_CLIENT_ID ?? "",
    clientSecret: env.GOOGLE_CLIENT_SECRET ?? "",
    authorize: `${env.GOOGLE_AUTH_BASE}/o/oauth2/v2/auth`,
    token: `${env.GOOGLE_TOKEN_BASE}/token`,
    revoke: `${env.GOOGLE_TOKEN_BASE}/revoke`,
    api: `${env.GOOGLE_API_BASE}/calendar/v3`,
    scope: SCOPES.map((scope) => `https://www.googleapis.com/auth/${scope}`).join(" "),
    login: "post",
    parameters: { access_type: "offline", prompt: "consent" },
  };
}

function eventsOf(calendarId: string): string {
  return `/calendars/${encodeURIComponent(calendarId)}/events`;
}

interface Page<T> {
  items?: T[];
  nextPageToken?: string;
  /** The last page of a listing of events has a sync token; each one names the calendar's zone. */
  nextSyncToken?: string;
  timeZone?: string;
}

/** All pages of a listing; undefined if its status is one of `absent`. */
function listAll<T>(calls: AccountApi, first: string, absent?: readonly number[]) {
  const read = ({ items, nextPageToken: pageToken, nextSyncToken, timeZone }: Page<T>) => {
    // A part of a page has no items if there are none.
    const isPage = [pageToken, nextSyncToken, timeZone].some((part) => part !== undefined);
    return {
      items: items ?? (isPage ? [] : undefined),
      next: pageToken && `${first}&${new URLSearchParams({ pageToken })}`,
    };
  };
  return calls.list(first, read, absent);
}

interface GoogleCalendar {
  id: string;
  summary?: string;
  summaryOverride?: string;
  primary?: boolean;
  accessRole: string;
}

/** An event, or an instance of one. */
interface GoogleEvent {
  id: string;
  etag?: string;
  status?: "confirmed" | "tentative" | "cancelled";
  transparency?: string;
  eventType?: string;
  recurrence?: string[];
  /** The series of an instance. */
  recurringEventId?: string;
  start?: { date?: string; dateTime?: string };
  end?: { date?: string; dateTime?: string };
  attendees?: { self?: boolean; responseStatus?: string }[];
  extendedProperties?: { private?: Record<string, string> };
  hangoutLink?: string;
  conferenceData?: {
    createRequest?: { status?: { statusCode?: string } };
    entryPoints?: { entryPointType: string; uri: string }[];
  };
}

/** Parameters that must stay the same over all incremental readings. */
const everyReading = { maxResults: "2500", maxAttendees: "1" };
const busyFields =
  "timeZone,nextPageToken,nextSyncToken,items(id,status,transparency,eventType,start,end,recurringEventId,recurrence,attendees(self,responseStatus),extendedProperties/private)";

function toListedEvent(event: GoogleEvent, zone: string): ListedEvent {
  const { id, status, recurrence, recurringEventId } = event;
  const isRemoved = status === "cancelled";
  const isOfSeries = recurringEventId !== undefined || (recurrence !== undefined && !isRemoved);
  const kind = isOfSeries ? "series" : isRemoved ? "removed" : "single";
  return { objectId: recurringEventId ?? id, kind, busy: busyTimeOf(event, zone) };
}

function busyTimeOf(event: GoogleEvent, zone: string): ListedEvent["busy"] {
  const { id, status, transparency, eventType = "", start, end, attendees = [] } = event;
  const isDeclined = attendees.some(({ self, responseStatus }) => self && responseStatus === "declined");
  const isFree = transparency === "transparent" || ["workingLocation", "birthday"].includes(eventType);
  if (status === "cancelled" || isDeclined || isFree || !start || !end) return undefined;
  const uid = event.extendedProperties?.private?.uid ?? id;
  if (start.date && end.date) return { uid, ...wholeDays(start.date, end.date, zone) };
  return { uid, from: Date.parse(start.dateTime ?? ""), to: Date.parse(end.dateTime ?? "") };
}

/** Updates the current state, or creates the event; undefined if Google has another state. */
function writeEvent(
  calls: AccountApi,
  path: string,
  { id, event, current }: { id: string; event: CalendarEvent; current: GoogleEvent | undefined },
): Promise<GoogleEvent | undefined> {
  const [etag, body] = [current?.etag, bodyOf(event, id, current)];
  const query = "?conferenceDataVersion=1&sendUpdates=none";
  const call: ApiCall = etag
    ? { method: "PATCH", path: `${path}/${id}${query}`, headers: { "if-match": etag }, json: body }
    : { method: "POST", path: `${path}${query}`, json: { id, ...body } };
  return calls.find(call, etag ? [...GONE, 412] : [409]);
}

const digest = (text: string): string => sha256(text).toString("hex").slice(0, 40);

function bodyOf(event: CalendarEvent, id: string, current: GoogleEvent | undefined): object {
  const { uid, sequence, title, description, start, end, timeZone, location } = event;
  return {
    // Restores an event that its owner deleted.
    status: "confirmed",
    summary: title,
    description: htmlOf(description),
    location: location ?? "",
    start: { dateTime: start, timeZone },
    end: { dateTime: end, timeZone },
    extendedProperties: { private: { uid, sequence: String(sequence) } },
    ...(wantsMeeting(event, current) ? meetingFor(id, current) : {}),
  };
}

/** Most characters of a description: Google refuses events with a longer one. */
const MAX_DESCRIPTION_LENGTH = 8000;

/** A text as the HTML that Google expects, cut before a reference rather than inside it. */
function htmlOf(text: string): string {
  const html = text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  return clip(html, MAX_DESCRIPTION_LENGTH).replace(/&[^;]*$/, "");
}

function wantsMeeting({ meeting }: CalendarEvent, current: GoogleEvent | undefined): boolean {
  return meeting === "google_meet" && (current === undefined || meetingUrlOf(current) === null);
}

/** A used request id creates no second meeting; after a failure, a new id asks again. */
function meetingFor(id: string, current: GoogleEvent | undefined): object {
  const requestId = current && hasMeetingFailed(current) ? digest(`${id} ${current.etag}`) : id;
  return { conferenceData: { createRequest: { requestId, conferenceSolutionKey: { type: "hangoutsMeet" } } } };
}

/** True while Google still creates the meeting; throws if it has failed. */
function awaitsMeeting(event: CalendarEvent, current: GoogleEvent): boolean {
  const isWanted = wantsMeeting(event, current);
  if (isWanted && hasMeetingFailed(current)) throw new Error("Google made no meeting.");
  return isWanted;
}

function hasMeetingFailed({ conferenceData }: GoogleEvent): boolean {
  return conferenceData?.createRequest?.status?.statusCode === "failure";
}

function meetingUrlOf({ hangoutLink, conferenceData }: GoogleEvent): string | null {
  const video = conferenceData?.entryPoints?.find(({ entryPointType }) => entryPointType === "video");
  return meetingLink(hangoutLink ?? video?.uri);
}
