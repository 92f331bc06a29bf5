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

/** Looks at an event whose meeting is still being made. */
const MAX_POLLS = 4;

/** Microsoft 365 and Outlook (Graph v1.0) with Teams. There is no endpoint that takes a grant back: its owner does that. */
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

/** An event, an instance of one, or (with `@removed`) the end of one. */
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
 * Changes tell which events and series changed; what a series takes is read as its instances, because its changes name neither what
 * an occurrence shows itself as nor which occurrence was deleted.
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

/** The end of a whole round of changes: what changes from now on comes after it. Its content is left aside. */
async function newMark(runtime: Runtime, account: Account, question: BusyQuestion): Promise<string | null> {
  const first = `${calendarAt(question.calendarId)}/calendarView/delta?${windowOf(question)}`;
  return (await everyPage<GraphEvent>(runtime, account, { first })).deltaLink;
}

/** What changed since a mark; undefined where the mark is no longer known. */
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
  // The end of a single occurrence doesn't say of which series it was one.
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

/** A mark that Graph has forgotten: the words differ from mailbox to mailbox. */
function isLost({ status, body }: OutboundAnswer): boolean {
  return status === 410 || (status >= 400 && status < 500 && /syncState|resync|fullSync/i.test(body.toString("utf8")));
}

/** The instances in the window; none where the path is gone. */
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
    ? // Days are told as midnights of UTC, whatever their zone.
      wholeDays(start.dateTime.slice(0, 10), end.dateTime.slice(0, 10), question.zone)
    : { from: instantOf(start), to: instantOf(end) };
  return takenWithin({ ...stretch, uid }, question);
}

/** Every call asks for times in UTC. */
function instantOf({ dateTime }: { dateTime: string }): number {
  return Date.parse(`${dateTime.slice(0, 19)}Z`);
}

/** An event is made once for a booking and calendar by its transaction, and found again by a property of ours. */
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

/** What is known of an event from its last writing. */
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

/** Makes the event; undefined where its transaction was used before, with this content or another. */
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

/** Writes onto an event; undefined where it is not as assumed, or gone. */
async function changeEvent(
  runtime: Runtime,
  account: Account,
  { event, current }: { event: CalendarEvent; current: GraphEvent },
): Promise<GraphEvent | undefined> {
  const etag = current["@odata.etag"];
  const wantsMeeting = event.meeting === "teams" && !current.onlineMeeting;
  // The text of an event with a meeting holds the meeting: writing another one would take that away.
  const content = event.meeting === "teams" ? {} : contentOf(event);
  const json = { ...timesOf(event), ...content, ...(wantsMeeting ? meeting : {}) };
  const headers = etag ? { "if-match": etag } : {};
  const answer = await ask(runtime, account, { method: "PATCH", path: eventAt(current.id), headers, json });
  return [404, 409, 412].includes(answer.status) ? undefined : jsonOf(answer);
}

/** The event of a booking: the one that was written last, or the one that carries its property. */
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

/** Names of our properties at an event. */
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

/** A transaction of a booking in a calendar; another one for an event that is made again because its owner deleted it. */
function transactionOf({ calendarId, event, earlier }: EventAddress): string {
  const turn = createHash("sha256")
    .update(`${calendarId} ${earlier?.eventId ?? ""}`)
    .digest("hex")
    .slice(0, 12);
  return `${event.bookingUid}.${turn}`;
}

/** The UID of the booking that a transaction was made for. */
function uidOf(env: Env, transaction: string): string | undefined {
  const [, bookingUid] = /^(.+)\.[0-9a-f]{12}$/.exec(transaction) ?? [];
  return bookingUid && ownUid(env, bookingUid);
}

/** The event with its meeting, which may be made a moment later. Fails where there is none: then it is tried again. */
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

/** A listing whole, with the link that its changes come after. */
interface Listing<T> {
  items: T[];
  deltaLink: string | null;
  /** The first answer was one of those that the caller knows. */
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

/** The path of a link that Graph gave: the token goes to the address of the settings and nowhere else. */
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
