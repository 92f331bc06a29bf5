import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Env } from "../../../platform/env.ts";
import { Fail } from "../../../platform/errors.ts";
import type { OutboundAnswer } from "../../../platform/outbound.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { mustGrant, secretFor } from "../access-tokens.ts";
import { type AuthorisedCall, callProvider, callWithToken, jsonOf, partyOf, under } from "../authorised-calls.ts";
import { type BusyInstance, busyObjects, MAX_PAGES, takenWithin, MAX_INSTANCES, wholeDays } from "../busy-objects.ts";
import { bringTo } from "../event-states.ts";
import {
  type Account,
  type BusyAnswer,
  type BusyQuestion,
  type CalendarEvent,
  type OAuthSettings,
  ownUid,
  type Provider,
  type ProviderCalendar,
  type WrittenEvent,
} from "./provider.ts";

/** Polls of an event whose meeting is still being created. */
const MAX_POLLS = 4;

/** Microsoft 365 and Outlook (Graph v1.0) with Teams. Graph has no endpoint to revoke a grant; its owner must do that. */
export const microsoft: Provider = {
  key: "microsoft",
  oauth: settingsFrom,
  async connect(runtime, grant) {
    mustGrant(grant, ["Calendars.ReadWrite"]);
    const url = address(runtime.env, "/me?$select=mail,userPrincipalName");
    const answer = await callWithToken(runtime, grant.accessToken, { url });
    const { mail, userPrincipalName } = jsonOf<{ mail?: string | null; userPrincipalName?: string }>(answer);
    const account = mail ?? userPrincipalName;
    if (!account) throw new Fail("oauth_exchange_failed", { detail: "The account has no email address." });
    return { account, secret: secretFor(grant) };
  },
  calendars: { meeting: "teams", list: listCalendars, busy: readBusy, put: putEvent, remove: removeEvent },
};

function settingsFrom(env: Env): OAuthSettings | undefined {
  const { MICROSOFT_CLIENT_ID: clientId, MICROSOFT_CLIENT_SECRET: clientSecret } = env;
  if (!clientId || !clientSecret) return undefined;
  return {
    clientId,
    clientSecret,
    authorize: under(env.MICROSOFT_LOGIN_BASE, "/common/oauth2/v2.0/authorize"),
    token: under(env.MICROSOFT_LOGIN_BASE, "/common/oauth2/v2.0/token"),
    scope: "offline_access User.Read Calendars.ReadWrite",
    login: "post",
    parameters: { response_mode: "query", prompt: "select_account" },
  };
}

interface GraphCalendar {
  id: string;
  name: string;
  isDefaultCalendar?: boolean;
  canEdit?: boolean;
}

async function listCalendars(runtime: Runtime, account: Account): Promise<ProviderCalendar[]> {
  const first = "/me/calendars?$select=id,name,isDefaultCalendar,canEdit&$top=100";
  const { items } = await everyPage<GraphCalendar>(runtime, account, { first });
  return items.map(({ id, name, isDefaultCalendar = false, canEdit = false }) => ({
    calendarId: id,
    name,
    primary: isDefaultCalendar,
    writable: canEdit,
  }));
}

/** An event, an instance, or (with `@removed`) a deletion. */
interface GraphEvent {
  id: string;
  "@odata.etag"?: string;
  "@removed"?: object;
  type?: "singleInstance" | "occurrence" | "exception" | "seriesMaster";
  seriesMasterId?: string | null;
  start: { dateTime: string; timeZone: string };
  end: { dateTime: string; timeZone: string };
  isAllDay?: boolean;
  isCancelled?: boolean;
  showAs?: string;
  responseStatus?: { response?: string };
  transactionId?: string | null;
  onlineMeeting?: { joinUrl?: string } | null;
  singleValueExtendedProperties?: { id: string; value: string }[];
}

const busyFields = "id,type,seriesMasterId,start,end,isAllDay,isCancelled,showAs,responseStatus,transactionId";

/**
 * Changes name events and series. The busy time of a series is read from its instances, because its changes include neither how an
 * occurrence is shown nor which occurrence was deleted.
 */
async function readBusy(runtime: Runtime, account: Account, question: BusyQuestion): Promise<BusyAnswer> {
  const since = question.known && (await changesSince(runtime, account, { question, ...question.known }));
  return since ?? readWhole(runtime, account, { question, mark: await newMark(runtime, account, question) });
}

async function readWhole(
  runtime: Runtime,
  account: Account,
  { question, mark }: { question: BusyQuestion; mark: string | null },
): Promise<BusyAnswer> {
  const path = `${calendarAt(question.calendarId)}/calendarView`;
  return {
    mark,
    isWhole: true,
    changed: busyObjects(await instancesAt(runtime, account, { question, path })),
    removed: [],
  };
}

/** The delta link after a whole round of changes, whose content is ignored: later changes come after it. */
async function newMark(runtime: Runtime, account: Account, question: BusyQuestion): Promise<string | null> {
  const first = `${calendarAt(question.calendarId)}/calendarView/delta?${windowOf(question)}`;
  return (await everyPage<GraphEvent>(runtime, account, { first })).deltaLink;
}

/** The changes since a delta link; undefined if Graph has dropped the link. */
async function changesSince(
  runtime: Runtime,
  account: Account,
  asked: { question: BusyQuestion; mark: string; tags(): Promise<Map<string, string>> },
): Promise<BusyAnswer | undefined> {
  const { question, mark } = asked;
  const round = await everyPage<GraphEvent>(runtime, account, { first: mark, refuses: isLost });
  if (round.isRefused) return undefined;
  const gone = new Set(round.items.filter((event) => event["@removed"]).map(({ id }) => id));
  const known = gone.size > 0 ? await asked.tags() : undefined;
  // The deletion of an occurrence doesn't name its series.
  if (known && [...gone].some((id) => !known.has(id)))
    return readWhole(runtime, account, { question, mark: round.deltaLink });
  const events = round.items.filter(({ id }) => !gone.has(id));
  const series = new Set(events.filter(isOfSeries).map(({ id, seriesMasterId }) => seriesMasterId ?? id));
  const read = events.filter((event) => !isOfSeries(event)).map((event) => instanceOf(runtime, event, question));
  for (const id of series) {
    const instances = await instancesAt(runtime, account, { question, path: `${eventAt(id)}/instances` });
    if (instances.length === 0) gone.add(id);
    else read.push(...instances);
  }
  return { mark: round.deltaLink, isWhole: false, changed: busyObjects(read), removed: [...gone] };
}

function isOfSeries({ type, seriesMasterId }: GraphEvent): boolean {
  return type === "seriesMaster" || Boolean(seriesMasterId);
}

/** A dropped delta link: the error codes differ between mailboxes. */
function isLost({ status, body }: OutboundAnswer): boolean {
  return status === 410 || (status >= 400 && status < 500 && /syncState|resync|fullSync/i.test(body.toString("utf8")));
}

/** The instances in the window; none if the resource is gone. */
async function instancesAt(
  runtime: Runtime,
  account: Account,
  { question, path }: { question: BusyQuestion; path: string },
): Promise<BusyInstance[]> {
  const first = `${path}?${windowOf(question)}&$select=${busyFields}&$top=1000`;
  const { items } = await everyPage<GraphEvent>(runtime, account, { first, refuses: isGone });
  return items.map((event) => instanceOf(runtime, event, question));
}

function windowOf({ from, to }: BusyQuestion): string {
  const [startDateTime, endDateTime] = [from, to].map((ms) => new Date(ms).toISOString()) as [string, string];
  return new URLSearchParams({ startDateTime, endDateTime }).toString();
}

function instanceOf({ env }: Runtime, event: GraphEvent, question: BusyQuestion): BusyInstance {
  return { objectId: event.seriesMasterId ?? event.id, taken: takenBy(env, event, question) };
}

function takenBy(env: Env, event: GraphEvent, question: BusyQuestion): BusyInstance["taken"] {
  const { start, end, isAllDay, isCancelled, showAs = "busy", responseStatus } = event;
  const isFree = ["free", "workingElsewhere"].includes(showAs);
  if (isCancelled || isFree || responseStatus?.response === "declined") return undefined;
  const uid = uidOf(env, event.transactionId ?? "") ?? event.id;
  const stretch = isAllDay
    ? // All-day times are midnights in UTC, whatever their zone.
      wholeDays(start.dateTime.slice(0, 10), end.dateTime.slice(0, 10), question.zone)
    : { from: instantOf(start), to: instantOf(end) };
  return takenWithin({ ...stretch, uid }, question);
}

/** Every call requests times in UTC. */
function instantOf({ dateTime }: { dateTime: string }): number {
  return Date.parse(`${dateTime.slice(0, 19)}Z`);
}

/** A transaction id makes the creation of an event idempotent per booking and calendar; an extended property finds the event again. */
async function putEvent(
  runtime: Runtime,
  account: Account,
  { calendarId, event, earlier }: { calendarId: string; event: CalendarEvent; earlier?: WrittenEvent },
): Promise<WrittenEvent> {
  const place = { calendarId, event, ...(earlier ? { earlier } : {}) };
  const assumed = earlier && bareEvent(earlier);
  const state = await bringTo(event.sequence, assumed, {
    write: (current) =>
      current ? changeEvent(runtime, account, { event, current }) : makeEvent(runtime, account, place),
    read: () => findEvent(runtime, account, place),
    sequenceOf: (current) => Number(propertyOf(current, properties.sequence) ?? -1),
  });
  const made = await withMeeting(runtime, account, { event, made: state });
  const { credentialId } = account.credential;
  return {
    credentialId,
    calendarId,
    eventId: made.id,
    etag: made["@odata.etag"] ?? null,
    meetingUrl: made.onlineMeeting?.joinUrl ?? null,
  };
}

interface EventAddress {
  calendarId: string;
  event: CalendarEvent;
  earlier?: WrittenEvent;
}

/** The state of the last write. */
function bareEvent({ eventId, etag, meetingUrl }: WrittenEvent): GraphEvent {
  const nowhere = { dateTime: "", timeZone: "" };
  return {
    id: eventId,
    start: nowhere,
    end: nowhere,
    ...(etag ? { "@odata.etag": etag } : {}),
    ...(meetingUrl ? { onlineMeeting: { joinUrl: meetingUrl } } : {}),
  };
}

/** Creates the event; undefined if its transaction id was used before, with this or another content. */
async function makeEvent(runtime: Runtime, account: Account, place: EventAddress): Promise<GraphEvent | undefined> {
  const { calendarId, event } = place;
  const json = {
    ...timesOf(event),
    ...contentOf(event),
    ...(event.meeting === "teams" ? meeting : {}),
    transactionId: transactionOf(place),
  };
  const call = { method: "POST", path: `${calendarAt(calendarId)}/events`, json };
  const answer = await ask(runtime, account, call);
  if (answer.status === 409) return undefined;
  const made = jsonOf<GraphEvent>(answer);
  return instantOf(made.start) === Date.parse(event.start) ? made : undefined;
}

/** Updates an event; undefined if its state has changed, or if it is gone. */
async function changeEvent(
  runtime: Runtime,
  account: Account,
  { event, current }: { event: CalendarEvent; current: GraphEvent },
): Promise<GraphEvent | undefined> {
  const etag = current["@odata.etag"];
  const wantsMeeting = event.meeting === "teams" && !current.onlineMeeting;
  // The body of an event with a meeting contains the meeting, so it must not be replaced.
  const content = event.meeting === "teams" ? {} : contentOf(event);
  const json = { ...timesOf(event), ...content, ...(wantsMeeting ? meeting : {}) };
  const headers = etag ? { "if-match": etag } : {};
  const answer = await ask(runtime, account, { method: "PATCH", path: eventAt(current.id), headers, json });
  return [404, 409, 412].includes(answer.status) ? undefined : jsonOf(answer);
}

/** The event of a booking: the one of the last write, or the one with its extended property. */
async function findEvent(
  runtime: Runtime,
  account: Account,
  { calendarId, event, earlier }: EventAddress,
): Promise<GraphEvent | undefined> {
  const wanted = `$expand=${encodeURIComponent(`singleValueExtendedProperties($filter=id eq '${properties.sequence}')`)}`;
  if (earlier) {
    const answer = await ask(runtime, account, { path: `${eventAt(earlier.eventId)}?${wanted}` });
    if (!isGone(answer)) return jsonOf(answer);
  }
  const any = `singleValueExtendedProperties/Any(ep: ep/id eq '${properties.uid}' and ep/value eq '${event.uid}')`;
  const path = `${calendarAt(calendarId)}/events?${wanted}&$filter=${encodeURIComponent(any)}`;
  const answer = await ask(runtime, account, { path });
  return jsonOf<{ value: GraphEvent[] }>(answer).value[0];
}

/** Namespace of our extended properties. */
const namespace = "{6f3cbb53-33b4-4d2c-9a0c-2f7f1f7c5b11}";
const properties = {
  uid: `String ${namespace} Name bookingUid`,
  sequence: `String ${namespace} Name bookingSequence`,
};
const meeting = { isOnlineMeeting: true, onlineMeetingProvider: "teamsForBusiness" };

function propertyOf({ singleValueExtendedProperties = [] }: GraphEvent, id: string): string | undefined {
  return singleValueExtendedProperties.find((one) => one.id === id)?.value;
}

function timesOf({ start, end, uid, sequence, title }: CalendarEvent): object {
  return {
    subject: title,
    start: { dateTime: start.slice(0, 19), timeZone: "UTC" },
    end: { dateTime: end.slice(0, 19), timeZone: "UTC" },
    showAs: "busy",
    singleValueExtendedProperties: [
      { id: properties.uid, value: uid },
      { id: properties.sequence, value: String(sequence) },
    ],
  };
}

function contentOf({ description, location }: CalendarEvent): object {
  return { body: { contentType: "text", content: description }, location: { displayName: location ?? "" } };
}

/** The transaction id of a booking in a calendar; a new one for an event that its owner deleted. */
function transactionOf({ calendarId, event, earlier }: EventAddress): string {
  const turn = createHash("sha256")
    .update(`${calendarId} ${earlier?.eventId ?? ""}`)
    .digest("hex")
    .slice(0, 12);
  return `${event.bookingUid}.${turn}`;
}

/** The booking UID of a transaction id. */
function uidOf(env: Env, transaction: string): string | undefined {
  const [, bookingUid] = /^(.+)\.[0-9a-f]{12}$/.exec(transaction) ?? [];
  return bookingUid && ownUid(env, bookingUid);
}

/** The event with its meeting, which may be created a moment later. Throws without a meeting, so that it is retried. */
async function withMeeting(
  runtime: Runtime,
  account: Account,
  { event, made }: { event: CalendarEvent; made: GraphEvent },
): Promise<GraphEvent> {
  let current = made;
  for (let looks = 1; event.meeting === "teams" && !current.onlineMeeting?.joinUrl; looks++) {
    if (looks > MAX_POLLS) throw new Error("Microsoft made no meeting.");
    await sleep(looks * 200);
    current = jsonOf(await ask(runtime, account, { path: eventAt(made.id) }));
  }
  return current;
}

async function removeEvent(runtime: Runtime, account: Account, { eventId }: WrittenEvent): Promise<void> {
  const answer = await ask(runtime, account, { method: "DELETE", path: eventAt(eventId) });
  if (!isGone(answer)) jsonOf(answer);
}

function isGone({ status }: OutboundAnswer): boolean {
  return status === 404 || status === 410;
}

/** A complete listing with its delta link. */
interface Listing<T> {
  items: T[];
  deltaLink: string | null;
  /** The first response had a status that the caller handles. */
  isRefused: boolean;
}

async function everyPage<T>(
  runtime: Runtime,
  account: Account,
  { first, refuses = () => false }: { first: string; refuses?: (answer: OutboundAnswer) => boolean },
): Promise<Listing<T>> {
  const items: T[] = [];
  let path = first;
  for (let pages = 0; items.length <= MAX_INSTANCES && pages < MAX_PAGES; pages++) {
    const answer = await ask(runtime, account, { path });
    if (refuses(answer)) return { items: [], deltaLink: null, isRefused: true };
    const page = jsonOf<{ value: T[]; "@odata.nextLink"?: string; "@odata.deltaLink"?: string }>(answer);
    for (const item of page.value) items.push(item);
    const { "@odata.nextLink": next, "@odata.deltaLink": last } = page;
    if (!next) return { items, deltaLink: last ? within(runtime.env, last) : null, isRefused: false };
    path = within(runtime.env, next);
  }
  throw new Error("The calendar holds too many events.");
}

/** The path of a link from Graph: the token is only ever sent to the configured address. */
function within({ MICROSOFT_GRAPH_BASE }: Env, link: string): string {
  const { pathname, search } = new URL(link, MICROSOFT_GRAPH_BASE);
  return (pathname + search).replace(/^.*?\/v1\.0/, "");
}

const preferences = [
  'outlook.timezone="UTC"',
  'outlook.body-content-type="text"',
  'IdType="ImmutableId"',
  "odata.maxpagesize=200",
];

function ask(
  runtime: Runtime,
  account: Account,
  { path, ...call }: Omit<AuthorisedCall, "url"> & { path: string },
): Promise<OutboundAnswer> {
  const headers = { ...call.headers, prefer: preferences.join(", ") };
  const party = partyOf(account, settingsFrom(runtime.env));
  return callProvider(runtime, party, { ...call, url: address(runtime.env, path), headers });
}

function address({ MICROSOFT_GRAPH_BASE }: Env, path: string): string {
  return under(MICROSOFT_GRAPH_BASE, `/v1.0${path}`);
}

function calendarAt(calendarId: string): string {
  return `/me/calendars/${encodeURIComponent(calendarId)}`;
}

function eventAt(eventId: string): string {
  return `/me/events/${encodeURIComponent(eventId)}`;
}
