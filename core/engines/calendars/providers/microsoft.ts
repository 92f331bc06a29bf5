import { Fail } from "../../../platform/errors.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { mustGrant, secretFor } from "../access-tokens.ts";
import { callWithToken, isGone, responseJson } from "../authorised-calls.ts";
import { bringTo, untilMeeting } from "../event-states.ts";
import {
  askGraph,
  calendarAt,
  eventAt,
  type GraphEvent,
  graphPages,
  graphSettings,
  graphUrl,
  instantOf,
  transactionOf,
} from "./graph.ts";
import { readGraphBusy } from "./microsoft-busy.ts";
import type {
  CalendarEvent,
  EventWrite,
  Provider,
  ProviderAccount,
  ProviderCalendar,
  WrittenEvent,
} from "./provider.ts";

/** Microsoft 365 and Outlook (Graph v1.0) with Teams. Graph has no endpoint to revoke a grant; its owner must do that. */
export const microsoft: Provider = {
  oauth: graphSettings,
  async connect(runtime, grant) {
    mustGrant(grant, ["Calendars.ReadWrite"]);
    const url = graphUrl(runtime.env, "/me?$select=mail,userPrincipalName");
    const answer = await callWithToken(runtime, grant.accessToken, { url });
    const { mail, userPrincipalName } = responseJson<{ mail?: string | null; userPrincipalName?: string }>(answer);
    const account = mail ?? userPrincipalName;
    if (!account) throw new Fail("oauth_exchange_failed", { detail: "The account has no email address." });
    return { account, secret: secretFor(grant) };
  },
  calendars: { meeting: "teams", list: listCalendars, busy: readGraphBusy, put: putEvent, remove: removeEvent },
};

interface GraphCalendar {
  id: string;
  name: string;
  isDefaultCalendar?: boolean;
  canEdit?: boolean;
}

async function listCalendars(runtime: Runtime, account: ProviderAccount): Promise<ProviderCalendar[]> {
  const first = "/me/calendars?$select=id,name,isDefaultCalendar,canEdit&$top=100";
  const { items } = await graphPages<GraphCalendar>(runtime, account, { first });
  return items.map(({ id, name, isDefaultCalendar = false, canEdit = false }) => ({
    calendarId: id,
    name,
    primary: isDefaultCalendar,
    writable: canEdit,
  }));
}

/** A transaction id makes the creation of an event idempotent per booking and calendar; an extended property finds the event again. */
async function putEvent(runtime: Runtime, account: ProviderAccount, place: EventWrite): Promise<WrittenEvent> {
  const { calendarId, event, earlier } = place;
  const assumed = earlier && bareEvent(earlier);
  const state = await bringTo(event.sequence, assumed, {
    write: (current) =>
      current ? changeEvent(runtime, account, { event, current }) : makeEvent(runtime, account, place),
    read: () => findEvent(runtime, account, place),
    sequenceOf: (current) => Number(propertyOf(current, properties.sequence) ?? -1),
  });
  const made = await untilMeeting(state, {
    awaits: ({ onlineMeeting }) => event.meeting === "teams" && !onlineMeeting?.joinUrl,
    read: async () => responseJson(await askGraph(runtime, account, { path: eventAt(state.id) })),
  });
  const { credentialId } = account.credential;
  return {
    credentialId,
    calendarId,
    eventId: made.id,
    etag: made["@odata.etag"] ?? null,
    meetingUrl: made.onlineMeeting?.joinUrl ?? null,
  };
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
async function makeEvent(
  runtime: Runtime,
  account: ProviderAccount,
  place: EventWrite,
): Promise<GraphEvent | undefined> {
  const { calendarId, event } = place;
  const json = {
    ...timesOf(event),
    ...contentOf(event),
    ...(event.meeting === "teams" ? meeting : {}),
    transactionId: transactionOf(place),
  };
  const call = { method: "POST", path: `${calendarAt(calendarId)}/events`, json };
  const answer = await askGraph(runtime, account, call);
  if (answer.status === 409) return undefined;
  const made = responseJson<GraphEvent>(answer);
  return instantOf(made.start) === Date.parse(event.start) ? made : undefined;
}

/** Updates an event; undefined if its state has changed, or if it is gone. */
async function changeEvent(
  runtime: Runtime,
  account: ProviderAccount,
  { event, current }: { event: CalendarEvent; current: GraphEvent },
): Promise<GraphEvent | undefined> {
  const etag = current["@odata.etag"];
  const wantsMeeting = event.meeting === "teams" && !current.onlineMeeting;
  // The body of an event with a meeting contains the meeting, so it must not be replaced.
  const content = event.meeting === "teams" ? {} : contentOf(event);
  const json = { ...timesOf(event), ...content, ...(wantsMeeting ? meeting : {}) };
  const headers = etag ? { "if-match": etag } : {};
  const answer = await askGraph(runtime, account, { method: "PATCH", path: eventAt(current.id), headers, json });
  return [404, 409, 412].includes(answer.status) ? undefined : responseJson(answer);
}

/** The event of a booking: the one of the last write, or the one with its extended property. */
async function findEvent(
  runtime: Runtime,
  account: ProviderAccount,
  { calendarId, event, earlier }: EventWrite,
): Promise<GraphEvent | undefined> {
  const wanted = `$expand=${encodeURIComponent(`singleValueExtendedProperties($filter=id eq '${properties.sequence}')`)}`;
  if (earlier) {
    const answer = await askGraph(runtime, account, { path: `${eventAt(earlier.eventId)}?${wanted}` });
    if (!isGone(answer)) return responseJson(answer);
  }
  const any = `singleValueExtendedProperties/Any(ep: ep/id eq '${properties.uid}' and ep/value eq '${event.uid}')`;
  const path = `${calendarAt(calendarId)}/events?${wanted}&$filter=${encodeURIComponent(any)}`;
  const answer = await askGraph(runtime, account, { path });
  return responseJson<{ value: GraphEvent[] }>(answer).value[0];
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

async function removeEvent(runtime: Runtime, account: ProviderAccount, { eventId }: WrittenEvent): Promise<void> {
  const answer = await askGraph(runtime, account, { method: "DELETE", path: eventAt(eventId) });
  if (!isGone(answer)) responseJson(answer);
}
