import { sha256 } from "../../../platform/digest.ts";
import type { Env } from "../../../platform/env.ts";
import { mustGrant, secretFor } from "../access-tokens.ts";
import { AccountApi, GONE, getWithGrant } from "../account-api.ts";
import { instantsOf, type ListedEvent, readItems, readMarked, wholeDays } from "../busy-objects.ts";
import { awaitMeeting, bringTo, meetingLink } from "../event-states.ts";
import { calendarRefusals, listRefusals } from "../server-error.ts";
import {
  type CalendarEvent,
  type EventWrite,
  type OAuthSettings,
  ownUid,
  type Provider,
  type ProviderCalendars,
} from "./provider.ts";

/** Microsoft 365 and Outlook (Graph v1.0) with Teams. */
const calendars: ProviderCalendars = {
  meeting: "teams",
  async list(runtime, account) {
    const first = "/me/calendars?$select=id,name,isDefaultCalendar,canEdit&$top=100";
    const calls = new AccountApi({ runtime, account, settings: settingsFrom(runtime.env) }, listRefusals);
    const listing = await listAll<GraphCalendar>(calls, first);
    return (listing?.items ?? []).map(({ id, name, isDefaultCalendar = false, canEdit = false }) => ({
      calendarId: id,
      name,
      primary: isDefaultCalendar,
      writable: canEdit,
    }));
  },

  /**
   * Changes name events and series. The busy time of a series is read from its instances, because its changes include neither how an
   * occurrence is shown nor which occurrence was deleted.
   */
  async busy(runtime, account, question) {
    const calls = new AccountApi({ runtime, account, settings: settingsFrom(runtime.env) }, calendarRefusals);
    const view = `${calendarAt(question.calendarId)}/calendarView`;
    const [startDateTime, endDateTime] = instantsOf(question);
    const window = new URLSearchParams({ startDateTime, endDateTime }).toString();
    const read = async (first: string, absent?: readonly number[]) => {
      const listing = await listAll<GraphEvent>(calls, first, absent);
      const link = listing?.last["@odata.deltaLink"];
      const items = listing?.items ?? [];
      const events = readItems(runtime, items, (event) => toListedEvent(runtime.env, event, question.zone));
      return listing && { mark: link ? pathOf(link) : null, events };
    };
    return readMarked(
      {
        /** The delta link after a whole round of changes, whose content is ignored. */
        async newMark() {
          return (await read(`${view}/delta?${window}`))?.mark ?? null;
        },
        async changesSince({ mark, tags }) {
          const changes = await read(mark, LOST);
          const removed = changes?.events.filter(({ kind }) => kind === "removed") ?? [];
          const known = removed.length > 0 ? await tags() : undefined;
          // The deletion of an occurrence doesn't name its series.
          return changes && { ...changes, isUnclear: removed.some(({ objectId }) => !known?.has(objectId)) };
        },
        async instances(series) {
          const path = series ? `${eventAt(series)}/instances` : view;
          return (await read(`${path}?${window}&$select=${busyFields}&$top=1000`, GONE))?.events ?? [];
        },
      },
      question,
    );
  },

  /** A transaction id makes the creation of an event idempotent per booking and calendar; an extended property finds it again. */
  async put(runtime, account, write) {
    const calls = new AccountApi({ runtime, account, settings: settingsFrom(runtime.env) }, calendarRefusals);
    const { event } = write;
    const state = await bringTo(write, {
      write: (current) => (current ? changeEvent(calls, event, current) : makeEvent(calls, write)),
      read: () => findEvent(calls, write),
      sequenceOf: ({ singleValueExtendedProperties: found = [] }) =>
        Number(found.find(({ id }) => id === properties.sequence)?.value ?? -1),
    });
    const made = await awaitMeeting(state, {
      awaits: ({ onlineMeeting }) => event.meeting === "teams" && meetingLink(onlineMeeting?.joinUrl) === null,
      read: () => calls.call<GraphEvent>({ path: eventAt(state.id) }),
    });
    if (typeof made.id !== "string") throw new Error("Microsoft did not answer with the event.");
    return { eventId: made.id, meetingUrl: meetingLink(made.onlineMeeting?.joinUrl) };
  },

  async remove(runtime, account, { eventId }) {
    const calls = new AccountApi({ runtime, account, settings: settingsFrom(runtime.env) }, calendarRefusals);
    await calls.find({ method: "DELETE", path: eventAt(eventId) });
  },
};

/** Microsoft, with calendars. Graph has no endpoint to revoke a grant; its owner must do that. */
export const microsoft: Provider = {
  oauth: settingsFrom,
  async connect(runtime, grant, settings) {
    mustGrant(grant, ["Calendars.ReadWrite"]);
    const url = `${settings.api}/me?$select=mail,userPrincipalName`;
    const user = await getWithGrant<{ mail?: string | null; userPrincipalName: string }>(runtime, grant, url);
    return { account: user.mail || user.userPrincipalName, secret: secretFor(grant) };
  },
  calendars,
};

function settingsFrom(env: Env): OAuthSettings {
  return {
    clientId: env.MICROSOFT_CLIENT_ID ?? "",
    clientSecret: env.MICROSOFT_CLIENT_SECRET ?? "",
    authorize: `${env.MICROSOFT_LOGIN_BASE}/common/oauth2/v2.0/authorize`,
    token: `${env.MICROSOFT_LOGIN_BASE}/common/oauth2/v2.0/token`,
    api: `${env.MICROSOFT_GRAPH_BASE}/v1.0`,
    headers: { prefer: PREFER },
    scope: "offline_access User.Read Calendars.ReadWrite",
    login: "post",
    parameters: { response_mode: "query", prompt: "select_account" },
  };
}

/** Times are in UTC, and ids do not change. */
const PREFER = 'outlook.timezone="UTC", outlook.body-content-type="text", IdType="ImmutableId", odata.maxpagesize=200';

/** The path of a link from Graph: the token is only ever sent to the configured address. */
function pathOf(link: string): string {
  const { pathname, search } = new URL(link, "http://graph");
  return (pathname + search).replace(/^.*?\/v1\.0/, "");
}

const calendarAt = (calendarId: string): string => `/me/calendars/${encodeURIComponent(calendarId)}`;
const eventAt = (eventId: string): string => `/me/events/${encodeURIComponent(eventId)}`;

interface Page<T> {
  value: T[];
  "@odata.nextLink"?: string;
  "@odata.deltaLink"?: string;
}

/** All pages of a listing, from a path or from a link of Graph; undefined if its status is one of `absent`. */
function listAll<T>(calls: AccountApi, first: string, absent?: readonly number[]) {
  const read = ({ value, "@odata.nextLink": next }: Page<T>) => ({ items: value, next: next && pathOf(next) });
  return calls.list(first, read, absent);
}

interface GraphCalendar {
  id: string;
  name: string;
  isDefaultCalendar?: boolean;
  canEdit?: boolean;
}

/** An event, an instance, or (with `@removed`) a deletion. */
interface GraphEvent {
  id: string;
  "@odata.etag": string;
  "@removed"?: object;
  type?: "singleInstance" | "occurrence" | "exception" | "seriesMaster";
  seriesMasterId?: string | null;
  start?: { dateTime: string };
  end?: { dateTime: string };
  isAllDay?: boolean;
  isCancelled?: boolean;
  showAs?: string;
  responseStatus?: { response?: string };
  transactionId?: string | null;
  onlineMeeting?: { joinUrl?: string } | null;
  singleValueExtendedProperties?: { id: string; value: string }[];
}

/** Every call requests times in UTC. */
function instantOf({ dateTime }: { dateTime: string }): number {
  return Date.parse(`${dateTime.slice(0, 19)}Z`);
}

const busyFields = "id,type,seriesMasterId,start,end,isAllDay,isCancelled,showAs,responseStatus,transactionId";

/** Statuses for a dropped delta link, or one that leads nowhere: they differ between mailboxes. */
const LOST = [400, 404, 409, 410, 412, 422];

function toListedEvent(env: Env, event: GraphEvent, zone: string): ListedEvent {
  const { id, type, seriesMasterId } = event;
  if (event["@removed"]) return { objectId: id, kind: "removed", busy: undefined };
  const kind = type === "seriesMaster" || seriesMasterId ? "series" : "single";
  return { objectId: seriesMasterId ?? id, kind, busy: busyTimeOf(env, event, zone) };
}

function busyTimeOf(env: Env, event: GraphEvent, zone: string): ListedEvent["busy"] {
  const { start, end, isAllDay, isCancelled, showAs = "busy", responseStatus } = event;
  const isFree = ["free", "workingElsewhere"].includes(showAs);
  if (isCancelled || isFree || responseStatus?.response === "declined" || !start || !end) return undefined;
  const uid = uidOf(env, event.transactionId) ?? event.id;
  // All-day times are midnights in UTC, whatever their zone.
  if (isAllDay) return { uid, ...wholeDays(start.dateTime.slice(0, 10), end.dateTime.slice(0, 10), zone) };
  return { uid, from: instantOf(start), to: instantOf(end) };
}

/** The transaction id of a booking in a calendar; a new one for an event that its owner deleted. */
function transactionOf({ calendarId, event, earlier }: EventWrite): string {
  const turn = sha256(`${calendarId} ${earlier?.eventId ?? ""}`).toString("hex", 0, 6);
  return `${event.bookingUid}.${turn}`;
}

function uidOf(env: Env, transaction: string | null | undefined): string | undefined {
  const [, bookingUid] = /^(.+)\.[0-9a-f]{12}$/.exec(transaction ?? "") ?? [];
  return bookingUid && ownUid(env, bookingUid);
}

/** Creates the event; undefined if its transaction id was used before, with this or another content. */
async function makeEvent(calls: AccountApi, write: EventWrite): Promise<GraphEvent | undefined> {
  const { calendarId, event } = write;
  const json = {
    ...timesOf(event),
    ...contentOf(event),
    ...(event.meeting === "teams" ? meeting : {}),
    transactionId: transactionOf(write),
  };
  const call = { method: "POST", path: `${calendarAt(calendarId)}/events`, json };
  const made = await calls.find<GraphEvent>(call, [409]);
  return made?.start && instantOf(made.start) === Date.parse(event.start) ? made : undefined;
}

/** Updates an event; undefined if its state has changed, or if it is gone. */
function changeEvent(calls: AccountApi, event: CalendarEvent, current: GraphEvent): Promise<GraphEvent | undefined> {
  const wantsMeeting = event.meeting === "teams" && !current.onlineMeeting;
  // The body of an event with a meeting contains the meeting, so it must not be replaced.
  const content = event.meeting === "teams" ? {} : contentOf(event);
  const json = { ...timesOf(event), ...content, ...(wantsMeeting ? meeting : {}) };
  const headers = { "if-match": current["@odata.etag"] };
  const call = { method: "PATCH", path: eventAt(current.id), headers, json };
  return calls.find(call, [404, 409, 412]);
}

/** The event of a booking: the one of the last write, or the one with its extended property. */
async function findEvent(
  calls: AccountApi,
  { calendarId, event, earlier }: EventWrite,
): Promise<GraphEvent | undefined> {
  const wanted = `$expand=${encodeURIComponent(`singleValueExtendedProperties($filter=id eq '${properties.sequence}')`)}`;
  const known = earlier && (await calls.find<GraphEvent>({ path: `${eventAt(earlier.eventId)}?${wanted}` }));
  if (known) return known;
  const any = `singleValueExtendedProperties/Any(ep: ep/id eq '${properties.uid}' and ep/value eq '${event.uid}')`;
  const path = `${calendarAt(calendarId)}/events?${wanted}&$filter=${encodeURIComponent(any)}`;
  return (await calls.call<Page<GraphEvent>>({ path })).value[0];
}

/** Namespace of our extended properties. */
const namespace = "{6f3cbb53-33b4-4d2c-9a0c-2f7f1f7c5b11}";
const properties = {
  uid: `String ${namespace} Name bookingUid`,
  sequence: `String ${namespace} Name bookingSequence`,
};
const meeting = { isOnlineMeeting: true, onlineMeetingProvider: "teamsForBusiness" };

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
