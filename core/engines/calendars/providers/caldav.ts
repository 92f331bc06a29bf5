import { Fail } from "../../../platform/errors.ts";
import type { OutboundAnswer } from "../../../platform/outbound.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { isGone } from "../account-api.ts";
import { calendarObject } from "../calendar-file.ts";
import { bringTo } from "../event-states.ts";
import { CalendarServerError, errorForStatus } from "../server-error.ts";
import { type Element, every, hrefIn, textIn } from "../xml-reader.ts";
import { readCaldavBusy } from "./caldav-busy.ts";
import type {
  CalendarEvent,
  EventWrite,
  Provider,
  ProviderAccount,
  ProviderCalendar,
  WrittenEvent,
} from "./provider.ts";
import {
  askProperties,
  type CaldavLogin,
  loginOf,
  mustSucceed,
  propfind,
  report,
  sendWebdav,
  type Tools,
  within,
  XML_NAMESPACES,
} from "./webdav.ts";

/** Any CalDAV server (RFC 4791). */
export const caldav: Provider = {
  calendars: {
    list: listCalendars,
    busy: readCaldavBusy,
    put: putEvent,
    async remove(runtime, account, { eventId }) {
      const answer = await sendWebdav(runtime, loginOf(account), { address: eventId, method: "DELETE" });
      if (!isGone(answer)) mustSucceed(answer);
    },
  },
};

/**
 * Logs in and finds the principal and its calendar home (RFC 4791, RFC 6764). `caldav_login_failed` with the reason in its detail,
 * `AddressRefused`.
 */
export async function login(
  tools: Tools,
  { serverUrl, username, password }: Omit<CaldavLogin, "home">,
): Promise<CaldavLogin> {
  const open = { serverUrl, username, password, home: serverUrl };
  try {
    const address = await principalOf(tools, open);
    const { found, url } = await propfind(tools, open, { address, properties: "<c:calendar-home-set/>" });
    const home = hrefIn(found, "calendar-home-set");
    if (home === undefined)
      throw new CalendarServerError("no_calendar_server", "It answered without a home of calendars.");
    return { ...open, home: within(url, home) };
  } catch (error) {
    if (!(error instanceof CalendarServerError)) throw error;
    throw new Fail("caldav_login_failed", { detail: error.message }, error);
  }
}

/** The calendars of a login that can hold events; the first one counts as primary. */
async function listCalendars(runtime: Runtime, account: ProviderAccount): Promise<ProviderCalendar[]> {
  const open = loginOf(account);
  const properties =
    "<d:resourcetype/><d:displayname/><d:current-user-privilege-set/><c:supported-calendar-component-set/>";
  const { found, url } = await propfind(runtime, open, { address: open.home, depth: 1, properties });
  const calendars = every(found, "response").flatMap((response) => calendarOf(url, response));
  return calendars.map((calendar, at) => ({ ...calendar, primary: at === 0 }));
}

/**
 * Creates the event under a fixed name, so that it is created once; an update applies only to the state that was read. If the owner's
 * program has already imported the invitation under another name, that object is updated.
 */
async function putEvent(runtime: Runtime, account: ProviderAccount, asked: EventWrite): Promise<WrittenEvent> {
  const { calendarId, event, earlier } = asked;
  const open = loginOf(account);
  const { credentialId } = account.credential;
  let eventId = earlier?.eventId ?? within(calendarId, `${event.bookingUid}.ics`);
  const { etag } = await bringTo<ObjectState>(event.sequence, earlier && { etag: earlier.etag, sequence: -1 }, {
    write: (assumed) => putObject(runtime, open, { eventId, event, etag: assumed?.etag ?? null }),
    async read() {
      const there = await readEvent(runtime, open, eventId);
      if (there === undefined) eventId = (await findEvent(runtime, open, { calendarId, uid: event.uid })) ?? eventId;
      return there;
    },
    sequenceOf: ({ sequence }) => sequence,
  });
  return { credentialId, calendarId, eventId, etag, meetingUrl: null };
}

/** The state of a calendar object: its etag, if the server has any, and the sequence of its event. */
interface ObjectState {
  etag: string | null;
  sequence: number;
}

/** Another state exists, or another object has the same UID (RFC 4791, section 5.3.2.1). */
function isConflict({ status, body }: OutboundAnswer): boolean {
  return status === 412 || status === 409 || (status === 403 && body.includes("no-uid-conflict"));
}

/** A strong etag. Some proxies weaken etags, and a weak one never matches. */
function etagOf({ headers }: OutboundAnswer): string | null {
  return headers.etag?.replace(/^W\//, "") ?? null;
}

/** URL of the object with a UID anywhere in the calendar. */
async function findEvent(
  tools: Tools,
  open: CaldavLogin,
  { calendarId, uid }: { calendarId: string; uid: string },
): Promise<string | undefined> {
  const filter = `<c:comp-filter name="VEVENT"><c:prop-filter name="UID"><c:text-match collation="i;octet">${uid}</c:text-match></c:prop-filter></c:comp-filter>`;
  const body = `<c:calendar-query ${XML_NAMESPACES}><d:prop><d:getetag/></d:prop><c:filter><c:comp-filter name="VCALENDAR">${filter}</c:comp-filter></c:filter></c:calendar-query>`;
  const answer = await report(tools, open, { address: calendarId, body });
  mustSucceed(answer);
  const [found] = answer.resources;
  return found && within(calendarId, found.href);
}

/** Without an etag the event must not exist yet. Undefined if another state exists. */
async function putObject(
  tools: Tools,
  open: CaldavLogin,
  { eventId, event, etag }: { eventId: string; event: CalendarEvent; etag: string | null },
): Promise<ObjectState | undefined> {
  const condition: Record<string, string> = etag === null ? { "if-none-match": "*" } : { "if-match": etag };
  const headers = { ...condition, "content-type": "text/calendar; charset=utf-8" };
  const call = { address: eventId, method: "PUT", headers, body: calendarObject(event) };
  const answer = await sendWebdav(tools, open, call);
  if (isConflict(answer)) return undefined;
  mustSucceed(answer);
  return { etag: etagOf(answer), sequence: event.sequence };
}

/** State of an existing event; undefined if there is none. */
async function readEvent(tools: Tools, open: CaldavLogin, eventId: string): Promise<ObjectState | undefined> {
  const answer = await sendWebdav(tools, open, { address: eventId, method: "GET" });
  if (isGone(answer)) return undefined;
  mustSucceed(answer);
  const sequence = /^SEQUENCE:(\d+)/m.exec(answer.body.toString("utf8"))?.[1];
  return { etag: etagOf(answer), sequence: Number(sequence ?? 0) };
}

/** The principal of a login, found at the owner's URL or at the well-known one (RFC 6764, section 5). */
async function principalOf(tools: Tools, open: CaldavLogin): Promise<string> {
  const { serverUrl } = open;
  const first = await principalAt(tools, open, serverUrl);
  const { principal } = first.principal ? first : await principalAt(tools, open, wellKnown(serverUrl));
  if (principal === undefined) throw errorForStatus(first.status);
  return principal;
}

const wellKnown = (serverUrl: string): string => new URL("/.well-known/caldav", serverUrl).href;

/** The principal found at one URL; throws if another URL would not help. */
async function principalAt(
  tools: Tools,
  open: CaldavLogin,
  address: string,
): Promise<{ status: number; principal?: string }> {
  const properties = "<d:current-user-principal/>";
  const { status, found, url } = await askProperties(tools, open, { address, properties });
  if ([401, 403, 429].includes(status) || (status >= 500 && status !== 501)) mustSucceed({ status });
  const href = found && hrefIn(found, "current-user-principal");
  return href === undefined ? { status } : { status, principal: within(url, href) };
}

/** The calendar of a response, by its URL; none for other resources, and for calendars of tasks. */
function calendarOf(base: string, response: Element): Omit<ProviderCalendar, "primary">[] {
  const calendarId = within(base, textIn(response, "href"));
  const components = every(response, "comp").map(({ named }) => named);
  const isCalendar = every(response, "resourcetype").some((type) => every(type, "calendar").length > 0);
  if (!isCalendar) return [];
  if (components.length > 0 && !components.includes("VEVENT")) return [];
  const privileges = every(response, "current-user-privilege-set");
  const writes = ["write", "write-content", "all", "bind"];
  const writable =
    privileges.length === 0 || privileges.some((set) => writes.some((name) => every(set, name).length > 0));
  const name = textIn(response, "displayname") || (new URL(calendarId).pathname.split("/").at(-2) ?? "");
  return [{ calendarId, name, writable }];
}
