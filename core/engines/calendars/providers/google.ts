import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { mustGrant, secretFor, tokensIn } from "../access-tokens.ts";
import { type AuthorisedCall, callProvider, callWithToken, jsonOf, partyOf, under } from "../authorised-calls.ts";
import { type BusyInstance, busyObjects, MAX_PAGES, takenWithin, MAX_INSTANCES, wholeDays } from "../busy-objects.ts";
import type { Env } from "../../../platform/env.ts";
import type { OutboundAnswer } from "../../../platform/outbound.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { bringTo } from "../event-states.ts";
import { revokeToken } from "../oauth.ts";
import type {
  Account,
  BusyAnswer,
  BusyQuestion,
  CalendarEvent,
  OAuthSettings,
  Provider,
  ProviderCalendar,
  WrittenEvent,
} from "./provider.ts";

const scopes = ["calendar.events", "calendar.calendarlist.readonly"];
/** The scope that includes all others. */
const everything = "auth/calendar";
/** Polls of an event whose meeting is still being created. */
const MAX_POLLS = 4;

/** Google Calendar (API v3) with Meet. */
export const google: Provider = {
  key: "google",
  oauth: settingsFrom,
  async connect(runtime, grant) {
    mustGrant(grant, ...scopes.map((scope) => [scope, everything]));
    const url = address(runtime.env, "/users/me/calendarList/primary");
    const primary = jsonOf<{ id: string }>(await callWithToken(runtime, grant.accessToken, { url }));
    // The id of the primary calendar is the account's address.
    return { account: primary.id, secret: secretFor(grant) };
  },
  async disconnect(runtime, { secret }) {
    const settings = settingsFrom(runtime.env);
    const { refreshToken, accessToken } = tokensIn(secret);
    if (settings) await revokeToken(runtime, settings, refreshToken ?? accessToken);
  },
  calendars: { meeting: "google_meet", list: listCalendars, busy: readBusy, put: putEvent, remove: removeEvent },
};

/** Google issues a refresh token only with consent, so every authorisation asks for consent. */
function settingsFrom(env: Env): OAuthSettings | undefined {
  const { GOOGLE_CLIENT_ID: clientId, GOOGLE_CLIENT_SECRET: clientSecret } = env;
  if (!clientId || !clientSecret) return undefined;
  return {
    clientId,
    clientSecret,
    authorize: under(env.GOOGLE_AUTH_BASE, "/o/oauth2/v2/auth"),
    token: under(env.GOOGLE_TOKEN_BASE, "/token"),
    revoke: under(env.GOOGLE_TOKEN_BASE, "/revoke"),
    scope: scopes.map((scope) => `https://www.googleapis.com/auth/${scope}`).join(" "),
    login: "post",
    parameters: { access_type: "offline", prompt: "consent" },
  };
}

interface GoogleCalendar {
  id: string;
  summary?: string;
  summaryOverride?: string;
  primary?: boolean;
  accessRole: string;
}

async function listCalendars(runtime: Runtime, account: Account): Promise<ProviderCalendar[]> {
  const listing = { path: "/users/me/calendarList", query: { maxResults: "250" } };
  const pages = await everyPage<{ items?: GoogleCalendar[] }>(runtime, account, listing);
  return pages.flatMap(({ items = [] }) =>
    items.map(({ id, summary = id, summaryOverride, primary = false, accessRole }) => ({
      calendarId: id,
      name: summaryOverride ?? summary,
      primary,
      writable: accessRole === "owner" || accessRole === "writer",
    })),
  );
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

interface EventPage {
  timeZone?: string;
  nextSyncToken?: string;
  items?: GoogleEvent[];
}

/** Parameters that must stay the same over all incremental readings. */
const everyReading = { maxResults: "2500", maxAttendees: "1" };
const busyFields =
  "timeZone,nextPageToken,nextSyncToken,items(id,status,transparency,eventType,start,end,recurringEventId,recurrence,attendees(self,responseStatus),extendedProperties/private)";

/**
 * Changes list series as such; the busy time of a changed series is read from its instances. The listing of instances has sync tokens too,
 * but doesn't show which instances a change of a series removed.
 */
async function readBusy(runtime: Runtime, account: Account, question: BusyQuestion): Promise<BusyAnswer> {
  const since = question.known && (await changesSince(runtime, account, { question, mark: question.known.mark }));
  return since ?? readWhole(runtime, account, question);
}

async function readWhole(runtime: Runtime, account: Account, question: BusyQuestion): Promise<BusyAnswer> {
  // The sync token comes first: a change during the reading is then read twice and not missed.
  const path = eventsOf(question.calendarId);
  const query = { ...everyReading, fields: "nextPageToken,nextSyncToken" };
  const marks = await everyPage<EventPage>(runtime, account, { path, query });
  const changed = busyObjects(await instancesAt(runtime, account, { question, path, more: { singleEvents: "true" } }));
  return { mark: marks.at(-1)?.nextSyncToken ?? null, isWhole: true, changed, removed: [] };
}

/** The changes since a sync token; undefined if Google has dropped the token. */
async function changesSince(
  runtime: Runtime,
  account: Account,
  { question, mark }: { question: BusyQuestion; mark: string },
): Promise<BusyAnswer | undefined> {
  const query = { ...everyReading, syncToken: mark, fields: busyFields };
  const path = eventsOf(question.calendarId);
  const pages = await everyPage<EventPage>(runtime, account, { path, query, gone: [400, 410] });
  if (pages.length === 0) return undefined;
  const zone = pages[0]?.timeZone ?? question.zone;
  const events = pages.flatMap(({ items = [] }) => items);
  const series = new Set(events.filter(isOfSeries).map(({ id, recurringEventId }) => recurringEventId ?? id));
  const single = events.filter((event) => !isOfSeries(event) && !series.has(event.id));
  const read = single.map((event) => instanceOf(event, { question, zone }));
  const gone = new Set(single.filter(({ status }) => status === "cancelled").map(({ id }) => id));
  for (const id of series) {
    const own = `${path}/${encodeURIComponent(id)}/instances`;
    const instances = await instancesAt(runtime, account, { question, path: own, more: {} });
    if (instances.length === 0) gone.add(id);
    else read.push(...instances);
  }
  const changed = busyObjects(read.filter(({ objectId }) => !gone.has(objectId)));
  return { mark: pages.at(-1)?.nextSyncToken ?? null, isWhole: false, changed, removed: [...gone] };
}

function isOfSeries({ status, recurrence, recurringEventId }: GoogleEvent): boolean {
  return recurringEventId !== undefined || (recurrence !== undefined && status !== "cancelled");
}

/** The instances in the window; none if the resource is gone. */
async function instancesAt(
  runtime: Runtime,
  account: Account,
  { question, path, more }: { question: BusyQuestion; path: string; more: Record<string, string> },
): Promise<BusyInstance[]> {
  const [timeMin, timeMax] = [question.from, question.to].map((ms) => new Date(ms).toISOString()) as [string, string];
  const query = { ...everyReading, ...more, timeMin, timeMax, fields: busyFields };
  const pages = await everyPage<EventPage>(runtime, account, { path, query, gone: [404, 410] });
  return pages.flatMap(({ items = [], timeZone: zone = question.zone }) =>
    items.map((event) => instanceOf(event, { question, zone })),
  );
}

function instanceOf(event: GoogleEvent, asked: { question: BusyQuestion; zone: string }): BusyInstance {
  return { objectId: event.recurringEventId ?? event.id, taken: takenBy(event, asked) };
}

function takenBy(
  event: GoogleEvent,
  { question, zone }: { question: BusyQuestion; zone: string },
): BusyInstance["taken"] {
  const { id, status, transparency, eventType = "", start, end, attendees = [] } = event;
  const isDeclined = attendees.some(({ self, responseStatus }) => self && responseStatus === "declined");
  const isFree = transparency === "transparent" || ["workingLocation", "birthday"].includes(eventType);
  if (status === "cancelled" || isDeclined || isFree || !start || !end) return undefined;
  const uid = event.extendedProperties?.private?.uid ?? id;
  const stretch =
    start.date && end.date
      ? wholeDays(start.date, end.date, zone)
      : { from: Date.parse(start.dateTime ?? ""), to: Date.parse(end.dateTime ?? "") };
  return takenWithin({ ...stretch, uid }, question);
}

/** The event's id is derived from the booking, so that retries create it once. */
async function putEvent(
  runtime: Runtime,
  account: Account,
  { calendarId, event, earlier }: { calendarId: string; event: CalendarEvent; earlier?: WrittenEvent },
): Promise<WrittenEvent> {
  const id = earlier?.eventId ?? eventIdOf(event.uid);
  const place = { path: eventsOf(calendarId), id, event };
  const assumed = earlier && assumedOf(earlier);
  const state = await bringTo(event.sequence, assumed, {
    write: (current) => writeEvent(runtime, account, { ...place, current }),
    read: () => readEvent(runtime, account, place),
    sequenceOf: ({ status, extendedProperties }) =>
      status === "cancelled" ? -1 : Number(extendedProperties?.private?.sequence ?? -1),
  });
  const made = await withMeeting(runtime, account, { ...place, made: state });
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
  account: Account,
  { path, id, event, current }: EventAddress & { current: GoogleEvent | undefined },
): Promise<GoogleEvent | undefined> {
  const [etag, body] = [current?.etag, bodyOf(event, id, current)];
  const call: AuthorisedCall = etag
    ? { method: "PATCH", url: `${path}/${id}`, headers: { "if-match": etag }, json: body }
    : { method: "POST", url: path, json: { id, ...body } };
  const url = `${address(runtime.env, call.url)}?conferenceDataVersion=1&sendUpdates=none`;
  const answer = await callProvider(runtime, partyOf(account, settingsFrom(runtime.env)), { ...call, url });
  const isElsewhere = etag ? [404, 410, 412].includes(answer.status) : answer.status === 409;
  return isElsewhere ? undefined : jsonOf(answer);
}

async function readEvent(
  runtime: Runtime,
  account: Account,
  { path, id }: EventAddress,
): Promise<GoogleEvent | undefined> {
  const url = address(runtime.env, `${path}/${id}`);
  const answer = await callProvider(runtime, partyOf(account, settingsFrom(runtime.env)), { url });
  return isGone(answer) ? undefined : jsonOf(answer);
}

function isGone({ status }: OutboundAnswer): boolean {
  return status === 404 || status === 410;
}

/** Event ids allow base32hex only. The booking's own uid would let every guest cancel. */
function eventIdOf(uid: string): string {
  return digest(uid);
}

const digest = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 40);

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

/** The event with its meeting, which Google may create a moment later. Throws without a meeting, so that it is retried. */
async function withMeeting(
  runtime: Runtime,
  account: Account,
  { made, ...place }: EventAddress & { made: GoogleEvent },
): Promise<GoogleEvent> {
  let current = made;
  for (let looks = 1; wantsMeeting(place.event, current); looks++) {
    if (looks > MAX_POLLS || meetingState(current) === "failure") throw new Error("Google made no meeting.");
    await sleep(looks * 200);
    current = (await readEvent(runtime, account, place)) ?? made;
  }
  return current;
}

function meetingState({ conferenceData }: GoogleEvent): string | undefined {
  return conferenceData?.createRequest?.status?.statusCode;
}

function meetingUrlOf({ hangoutLink, conferenceData }: GoogleEvent): string | null {
  const video = conferenceData?.entryPoints?.find(({ entryPointType }) => entryPointType === "video");
  return hangoutLink ?? video?.uri ?? null;
}

async function removeEvent(runtime: Runtime, account: Account, { calendarId, eventId }: WrittenEvent): Promise<void> {
  const url = `${address(runtime.env, `${eventsOf(calendarId)}/${eventId}`)}?sendUpdates=none`;
  const party = partyOf(account, settingsFrom(runtime.env));
  const answer = await callProvider(runtime, party, { method: "DELETE", url });
  if (!isGone(answer)) jsonOf(answer);
}

/** A listing; `gone` are statuses of its first page that mean that the resource doesn't exist. */
interface Listing {
  path: string;
  query: Record<string, string>;
  gone?: number[];
}

/** All pages of a listing; empty if the resource is gone. */
async function everyPage<T extends { items?: unknown[] }>(
  runtime: Runtime,
  account: Account,
  { path, query, gone = [] }: Listing,
): Promise<T[]> {
  const party = partyOf(account, settingsFrom(runtime.env));
  const pages: T[] = [];
  let read = 0;
  for (let pageToken = ""; read <= MAX_INSTANCES && pages.length < MAX_PAGES; ) {
    const parameters = new URLSearchParams({ ...query, ...(pageToken ? { pageToken } : {}) });
    const answer = await callProvider(runtime, party, { url: `${address(runtime.env, path)}?${parameters}` });
    if (gone.includes(answer.status)) return [];
    const page = jsonOf<T & { nextPageToken?: string }>(answer);
    pages.push(page);
    if (!page.nextPageToken) return pages;
    pageToken = page.nextPageToken;
    read += page.items?.length ?? 0;
  }
  throw new Error("The calendar holds too many events.");
}

function address({ GOOGLE_API_BASE }: Env, path: string): string {
  return under(GOOGLE_API_BASE, `/calendar/v3${path}`);
}

function eventsOf(calendarId: string): string {
  return `/calendars/${encodeURIComponent(calendarId)}/events`;
}
