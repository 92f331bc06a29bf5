import { Fail } from "../../../platform/errors.ts";
import type { OutboundResponse } from "../../../platform/outbound.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { isGone } from "../account-api.ts";
import { calendarObject, writtenSequence } from "../calendar-file.ts";
import { bringTo } from "../event-states.ts";
import { CalendarServerError, errorForStatus } from "../server-error.ts";
import { type Element, every, hrefIn, textIn } from "../xml-reader.ts";
import { ownersOf, readCaldavBusy } from "./caldav-busy.ts";
import type { Provider, ProviderCalendar, ProviderCalendars } from "./provider.ts";
import { type CaldavLogin, CalendarServer, eventQuery, isWithin, mustSucceed, openServer, within } from "./webdav.ts";

/** Any CalDAV server (RFC 4791). */
const calendars: ProviderCalendars = {
  /** The calendars of a login that can hold events; the first one counts as primary. */
  async list(runtime, account) {
    const { server, login } = await openServer(runtime, account);
    const properties =
      "<d:resourcetype/><d:displayname/><d:current-user-privilege-set/><c:supported-calendar-component-set/>";
    const { found, url } = await server.propfind({ address: login.home, depth: 1, properties });
    const all = every(found, "response").filter(isCalendarOfEvents);
    const own = all.filter((response) => isWithin(url, textIn(response, "href")));
    if (own.length === 0 && all.length > 0) throw new CalendarServerError("other_origin");
    const calendars = own.map((response) => calendarOf(url, response));
    return calendars.map((calendar, at) => ({ ...calendar, primary: at === 0 }));
  },

  busy: readCaldavBusy,

  /**
   * Creates the event under a fixed name, so that it is created once; a change applies only to the state that was read. If the owner's
   * program has imported the invitation under another name, that object becomes the event.
   */
  async put(runtime, account, write) {
    const { calendarId, event, earlier } = write;
    const { server, login } = await openServer(runtime, account);
    const owners = await ownersOf(runtime, account.handle, login);
    let eventId = earlier?.eventId ?? within(calendarId, `${event.bookingUid}.ics`);
    const read = async (): Promise<ObjectState | undefined> => {
      const there = await readObject(server, eventId);
      if (there === undefined) eventId = (await findEvent(server, calendarId, event.uid)) ?? eventId;
      return there;
    };
    await bringTo(write, {
      write(there) {
        const object = calendarObject(event, there && { object: there.object, owners });
        return putObject(server, eventId, { over: there, object });
      },
      read,
      sequenceOf: ({ object }) => writtenSequence(object),
    });
    return { eventId, meetingUrl: null };
  },

  async remove(runtime, account, { eventId }) {
    const { server } = await openServer(runtime, account);
    const answer = await server.send({ address: eventId, method: "DELETE" });
    if (!isGone(answer)) mustSucceed(answer);
  },
};

export const caldav: Provider = { calendars };

/**
 * Logs in and finds the principal and its calendar home (RFC 4791, RFC 6764). `caldav_login_failed` with the reason in its detail,
 * `AddressRefused`.
 */
export async function login({ outbound }: Runtime, account: Omit<CaldavLogin, "home">): Promise<CaldavLogin> {
  const server = new CalendarServer(outbound, account);
  try {
    const address = await principalOf(server, account.serverUrl);
    const { found, url } = await server.propfind({ address, properties: "<c:calendar-home-set/>" });
    const home = hrefIn(found, "calendar-home-set");
    if (home === undefined)
      throw new CalendarServerError("no_calendar_server", "It answered without a home of calendars.");
    return { ...account, home: within(url, home) };
  } catch (error) {
    if (!(error instanceof CalendarServerError)) throw error;
    throw new Fail("caldav_login_failed", { detail: error.message }, error);
  }
}

/** The principal of a login, found at the owner's URL or at the well-known one (RFC 6764, section 5). */
async function principalOf(server: CalendarServer, serverUrl: string): Promise<string> {
  const statuses: number[] = [];
  for (const address of [serverUrl, new URL("/.well-known/caldav", serverUrl).href]) {
    const { status, found, url } = await server.askProperties({ address, properties: "<d:current-user-principal/>" });
    // After these another URL would not help; 403 may be the answer of a web site at this path.
    if ([401, 429].includes(status) || (status >= 500 && status !== 501)) mustSucceed({ status });
    const href = found && hrefIn(found, "current-user-principal");
    if (href !== undefined) return within(url, href);
    statuses.push(status);
  }
  const [status] = statuses as [number];
  mustSucceed({ status });
  throw errorForStatus(status);
}

/** The state of a calendar object, with its etag if the server has any. */
interface ObjectState {
  etag: string | null;
  object: string;
}

/** Another state exists, or another object has the same UID (RFC 4791, section 5.3.2.1). */
function isConflict({ status, body }: OutboundResponse): boolean {
  return status === 412 || status === 409 || (status === 403 && body.includes("no-uid-conflict"));
}

/** A strong etag. Some proxies weaken etags, and a weak one never matches. */
function etagOf({ headers }: OutboundResponse): string | null {
  return headers.etag?.replace(/^W\//, "") ?? null;
}

/** URL of the object with a UID anywhere in the calendar. */
async function findEvent(server: CalendarServer, calendarId: string, uid: string): Promise<string | undefined> {
  const match = `<c:prop-filter name="UID"><c:text-match collation="i;octet">${uid}</c:text-match></c:prop-filter>`;
  const answer = await server.report({ address: calendarId, ...eventQuery("<d:getetag/>", match) });
  mustSucceed(answer);
  const [found] = answer.resources;
  return found && within(calendarId, found.href);
}

/** Writes an object over the state that was read, or a new one. Undefined if another state exists. */
async function putObject(
  server: CalendarServer,
  eventId: string,
  { over, object }: { over: ObjectState | undefined; object: string },
): Promise<ObjectState | undefined> {
  // A server without etags can only be asked whether the object exists.
  const condition: Record<string, string> = over ? { "if-match": over.etag ?? "*" } : { "if-none-match": "*" };
  const headers = { ...condition, "content-type": "text/calendar; charset=utf-8" };
  const answer = await server.send({ address: eventId, method: "PUT", headers, body: object });
  if (isConflict(answer)) return undefined;
  mustSucceed(answer);
  return { etag: etagOf(answer), object };
}

async function readObject(server: CalendarServer, eventId: string): Promise<ObjectState | undefined> {
  const answer = await server.send({ address: eventId, method: "GET" });
  if (isGone(answer)) return undefined;
  mustSucceed(answer);
  return { etag: etagOf(answer), object: answer.body.toString("utf8") };
}

/** False for resources that are no calendars, and for calendars of tasks. */
function isCalendarOfEvents(response: Element): boolean {
  const components = every(response, "comp").map(({ named }) => named);
  const isCalendar = every(response, "resourcetype").some((type) => every(type, "calendar").length > 0);
  return isCalendar && (components.length === 0 || components.includes("VEVENT"));
}

function calendarOf(base: string, response: Element): Omit<ProviderCalendar, "primary"> {
  const calendarId = within(base, textIn(response, "href"));
  // A server without privileges names their set as not found (RFC 4918, section 9.1).
  const privileges = every(response, "privilege").flatMap(({ children }) => children.map(({ name }) => name));
  const writes = ["write", "write-content", "all", "bind"];
  const writable = privileges.length === 0 || privileges.some((name) => writes.includes(name));
  const name = textIn(response, "displayname") || (new URL(calendarId).pathname.split("/").at(-2) ?? "");
  return { calendarId, name, writable };
}
