import { sha256 } from "../../../platform/digest.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { mustGrant, secretFor, tokensIn } from "../access-tokens.ts";
import { type ApiCall, callWithToken, isGone, responseJson } from "../authorised-calls.ts";
import { bringTo, untilMeeting } from "../event-states.ts";
import { revokeGrant } from "../oauth.ts";
import {
  askGoogle,
  eventsOf,
  FULL_SCOPE,
  GOOGLE_SCOPES,
  type GoogleEvent,
  googlePages,
  googleSettings,
  googleUrl,
} from "./google-api.ts";
import { readGoogleBusy } from "./google-busy.ts";
import type {
  CalendarEvent,
  EventWrite,
  Provider,
  ProviderAccount,
  ProviderCalendar,
  WrittenEvent,
} from "./provider.ts";

/** Google Calendar (API v3) with Meet. */
export const google: Provider = {
  oauth: googleSettings,
  async connect(runtime, grant) {
    mustGrant(grant, ...GOOGLE_SCOPES.map((scope) => [scope, FULL_SCOPE]));
    const url = googleUrl(runtime.env, "/users/me/calendarList/primary");
    const primary = responseJson<{ id: string }>(await callWithToken(runtime, grant.accessToken, { url }));
    // The id of the primary calendar is the account's address.
    return { account: primary.id, secret: secretFor(grant) };
  },
  async disconnect(runtime, { secret }) {
    const settings = googleSettings(runtime.env);
    const { refreshToken, accessToken } = tokensIn(secret);
    if (settings) await revokeGrant(runtime, settings, refreshToken ?? accessToken);
  },
  calendars: { meeting: "google_meet", list: listCalendars, busy: readGoogleBusy, put: putEvent, remove: removeEvent },
};

interface GoogleCalendar {
  id: string;
  summary?: string;
  summaryOverride?: string;
  primary?: boolean;
  accessRole: string;
}

async function listCalendars(runtime: Runtime, account: ProviderAccount): Promise<ProviderCalendar[]> {
  const listing = { path: "/users/me/calendarList", query: { maxResults: "250" } };
  const pages = await googlePages<{ items?: GoogleCalendar[] }>(runtime, account, listing);
  return pages.flatMap(({ items = [] }) =>
    items.map(({ id, summary = id, summaryOverride, primary = false, accessRole }) => ({
      calendarId: id,
      name: summaryOverride ?? summary,
      primary,
      writable: accessRole === "owner" || accessRole === "writer",
    })),
  );
}

/** The event's id is derived from the booking, so that retries create it once. */
async function putEvent(runtime: Runtime, account: ProviderAccount, asked: EventWrite): Promise<WrittenEvent> {
  const { calendarId, event, earlier } = asked;
  // Event ids allow base32hex only. The booking's own uid would let every guest cancel.
  const id = earlier?.eventId ?? digest(event.uid);
  const place = { path: eventsOf(calendarId), id, event };
  const assumed = earlier && assumedOf(earlier);
  const state = await bringTo(event.sequence, assumed, {
    write: (current) => writeEvent(runtime, account, { ...place, current }),
    read: () => readEvent(runtime, account, place),
    sequenceOf: ({ status, extendedProperties }) =>
      status === "cancelled" ? -1 : Number(extendedProperties?.private?.sequence ?? -1),
  });
  const made = await untilMeeting(state, {
    awaits: (current) => awaitsMeeting(event, current),
    read: async () => (await readEvent(runtime, account, place)) ?? state,
  });
  const { credentialId } = account.credential;
  return { credentialId, calendarId, eventId: id, etag: made.etag ?? null, meetingUrl: meetingUrlOf(made) };
}

/** The state of the last write; undefined if that returned no etag. */
function assumedOf({ eventId: id, etag, meetingUrl }: WrittenEvent): GoogleEvent | undefined {
  return etag === null ? undefined : { id, etag, ...(meetingUrl ? { hangoutLink: meetingUrl } : {}) };
}

interface EventAddress {
  path: string;
  id: string;
  event: CalendarEvent;
}

async function writeEvent(
  runtime: Runtime,
  account: ProviderAccount,
  { path, id, event, current }: EventAddress & { current: GoogleEvent | undefined },
): Promise<GoogleEvent | undefined> {
  const [etag, body] = [current?.etag, bodyOf(event, id, current)];
  const query = "?conferenceDataVersion=1&sendUpdates=none";
  const call: ApiCall = etag
    ? { method: "PATCH", path: `${path}/${id}${query}`, headers: { "if-match": etag }, json: body }
    : { method: "POST", path: `${path}${query}`, json: { id, ...body } };
  const answer = await askGoogle(runtime, account, call);
  const isElsewhere = etag ? [404, 410, 412].includes(answer.status) : answer.status === 409;
  return isElsewhere ? undefined : responseJson(answer);
}

async function readEvent(
  runtime: Runtime,
  account: ProviderAccount,
  { path, id }: EventAddress,
): Promise<GoogleEvent | undefined> {
  const answer = await askGoogle(runtime, account, { path: `${path}/${id}` });
  return isGone(answer) ? undefined : responseJson(answer);
}

const digest = (text: string): string => sha256(text).toString("hex").slice(0, 40);

function bodyOf(event: CalendarEvent, id: string, current: GoogleEvent | undefined): object {
  const { uid, sequence, title, description, start, end, timeZone, location } = event;
  return {
    // Restores an event that its owner deleted.
    status: "confirmed",
    summary: title,
    // Google interprets it as HTML.
    description: description.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`),
    location: location ?? "",
    start: { dateTime: start, timeZone },
    end: { dateTime: end, timeZone },
    extendedProperties: { private: { uid, sequence: String(sequence) } },
    ...(wantsMeeting(event, current) ? meetingFor(id, current) : {}),
  };
}

function wantsMeeting({ meeting }: CalendarEvent, current: GoogleEvent | undefined): boolean {
  return meeting === "google_meet" && (current === undefined || meetingUrlOf(current) === null);
}

/** A used request id creates no second meeting; after a failure, a new id asks again. */
function meetingFor(id: string, current: GoogleEvent | undefined): object {
  const requestId = current && meetingState(current) === "failure" ? digest(`${id} ${current.etag}`) : id;
  return { conferenceData: { createRequest: { requestId, conferenceSolutionKey: { type: "hangoutsMeet" } } } };
}

/** True while Google still creates the meeting; throws if it has failed. */
function awaitsMeeting(event: CalendarEvent, current: GoogleEvent): boolean {
  const isWanted = wantsMeeting(event, current);
  if (isWanted && meetingState(current) === "failure") throw new Error("Google made no meeting.");
  return isWanted;
}

function meetingState({ conferenceData }: GoogleEvent): string | undefined {
  return conferenceData?.createRequest?.status?.statusCode;
}

function meetingUrlOf({ hangoutLink, conferenceData }: GoogleEvent): string | null {
  const video = conferenceData?.entryPoints?.find(({ entryPointType }) => entryPointType === "video");
  return hangoutLink ?? video?.uri ?? null;
}

async function removeEvent(
  runtime: Runtime,
  account: ProviderAccount,
  { calendarId, eventId }: WrittenEvent,
): Promise<void> {
  const path = `${eventsOf(calendarId)}/${eventId}?sendUpdates=none`;
  const answer = await askGoogle(runtime, account, { method: "DELETE", path });
  if (!isGone(answer)) responseJson(answer);
}
