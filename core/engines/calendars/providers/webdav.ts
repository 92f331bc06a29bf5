import { Buffer } from "node:buffer";
import { Fail } from "../../../platform/errors.ts";
import { type Limits, ResponseRefused, type Sink } from "../../../platform/exchange.ts";
import { AddressRefused, type Outbound, type OutboundResponse } from "../../../platform/outbound.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { isGone } from "../account-api.ts";
import { asCalendarServerError, CalendarServerError, errorForStatus } from "../server-error.ts";
import { type Element, every, textIn, XmlReader } from "../xml-reader.ts";
import type { ProviderAccount } from "./provider.ts";

/** Credentials for a calendar server; `home` is the URL of its calendars. */
export interface CaldavLogin {
  serverUrl: string;
  username: string;
  password: string;
  home: string;
}

/** Ms within which a server must begin to respond, and then make progress. An account degrades soon after its server falls silent. */
const IDLE_TIMEOUT_MS = 4_000;
/** The properties of one resource; those of all calendars of a person; any other response. */
const ONE_RESOURCE = { maxBytes: 65_536, timeoutMs: 10_000 };
const MANY_RESOURCES = { maxBytes: 1_048_576, timeoutMs: 20_000 };
const DEFAULT_LIMITS = { maxBytes: 4 * 1_048_576, timeoutMs: 20_000 };
/** Resources of one report: a person's calendar of a year has some thousand events. */
export const MAX_RESOURCES = 20_000;

/** Properties of a resource, and with depth 1 (default 0) of its direct members. */
interface PropertyQuestion {
  address: string;
  properties: string;
  depth?: 0 | 1;
}

/** One resource of a multistatus (RFC 4918, section 13). */
export interface Resource {
  href: string;
  /** Status of the resource; 200 if only its properties have one. */
  status: number;
  etag: string;
  /** The calendar object, if it was requested and exists. */
  data: string;
  /** True if the server failed to tell the resource or a property of it, which may exist. */
  hasFailed: boolean;
}

/** The status and address of a response, and its root if it is a multistatus. */
interface Multistatus {
  status: number;
  url: string;
  found: Element | undefined;
}

interface DavCall extends Partial<Pick<Limits, "maxBytes" | "timeoutMs">> {
  address: string;
  method: string;
  headers?: Record<string, string>;
  body?: string;
  /** Receives a multistatus; other bodies are not read then. */
  reader?: Sink;
}

/**
 * A report with its Depth: 1 for a query (RFC 4791, section 7.8); none for objects by their URLs, which should not have one (section 7.9);
 * 0 for changes, since servers refuse any other (RFC 6578, section 3.2).
 */
export type Report = Required<Pick<DavCall, "body">> & Pick<DavCall, "headers">;

/** A calendar server with the owner's credentials, which never leave it. */
export class CalendarServer {
  readonly #outbound: Outbound;
  readonly #login: Omit<CaldavLogin, "home">;

  constructor(outbound: Outbound, login: Omit<CaldavLogin, "home">) {
    this.#outbound = outbound;
    this.#login = login;
  }

  /** Sends one request; returns any response. */
  send({ address, reader, ...call }: DavCall): Promise<OutboundResponse> {
    const { serverUrl, username, password } = this.#login;
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
    const into = reader && { into: (status: number) => (status === 207 ? reader : undefined) };
    const request = { ...DEFAULT_LIMITS, ...call, ...into, headers: { ...call.headers, authorization } };
    const rules = { redirects: 3, idleTimeoutMs: IDLE_TIMEOUT_MS };
    return withReason(this.#outbound.request(within(serverUrl, address), { ...request, ...rules }));
  }

  /** Requests properties; returns any response. `found` is undefined unless it is a multistatus. */
  askProperties({ address, properties, depth = 0 }: PropertyQuestion): Promise<Multistatus> {
    const limits = depth === 0 ? ONE_RESOURCE : MANY_RESOURCES;
    const body = xml("d:propfind", `<d:prop>${properties}</d:prop>`);
    const headers = { depth: String(depth) };
    return this.#ask({ address, method: "PROPFIND", headers, body, ...limits }, new XmlReader());
  }

  /** The same, but throws unless it succeeds: `caldav_login_failed` for refused credentials, else a `CalendarServerError`. */
  async propfind(asked: PropertyQuestion): Promise<{ found: Element; url: string }> {
    const { status, found, url } = await this.askProperties(asked);
    mustSucceed({ status });
    if (found === undefined) throw notMultistatus(status);
    return { found, url };
  }

  /**
   * A report on a calendar (RFC 3253, section 3.6) with its status; successful ones have resources, and a sync token or "". The bytes of the
   * response are taken from the budget.
   */
  async report(
    asked: Omit<DavCall, "method"> & Report,
    budget = { bytes: 0 },
  ): Promise<{ status: number; resources: Resource[]; syncToken: string }> {
    const resources: Resource[] = [];
    const reader = new XmlReader((element) => element.name === "response" && addResource(resources, element));
    try {
      const { status, found } = await this.#ask({ ...asked, method: "REPORT" }, reader);
      if (status >= 200 && status <= 299 && found === undefined) throw notMultistatus(status);
      return { status, resources, syncToken: found ? textIn(found, "sync-token") : "" };
    } finally {
      budget.bytes -= reader.bytes;
    }
  }

  /** Sends XML, and reads a multistatus. */
  async #ask(call: DavCall, reader: XmlReader): Promise<Multistatus> {
    const headers = { ...call.headers, "content-type": "application/xml; charset=utf-8" };
    const { status, url } = await this.send({ ...call, headers, reader });
    const root = status === 207 ? await withReason(reader.root()) : undefined;
    return { status, url, found: root?.name === "multistatus" ? root : undefined };
  }
}

/** The server of a connected account, and its stored credentials. */
export async function openServer(
  { outbound, credentials }: Runtime,
  account: ProviderAccount,
): Promise<{ server: CalendarServer; login: CaldavLogin }> {
  const login = JSON.parse((await credentials.secret(account)) ?? "{}") as CaldavLogin;
  return { server: new CalendarServer(outbound, login), login };
}

function addResource(resources: Resource[], response: Element): true {
  const own = (name: string): string => response.children.find((child) => child.name === name)?.text.trim() ?? "";
  const statuses = every(response, "status").map(({ text }) => statusIn(text));
  const found = resources.push({
    href: own("href"),
    status: statusIn(own("status")),
    hasFailed: statuses.some((status) => status >= 400) && !statuses.some((status) => isGone({ status })),
    etag: textIn(response, "getetag"),
    data: textIn(response, "calendar-data"),
  });
  if (found > MAX_RESOURCES)
    throw new ResponseRefused("limit", `The answer tells of more than ${MAX_RESOURCES} resources.`);
  return true;
}

/** The code of a status line; 200 without one. */
function statusIn(text: string): number {
  return Number(/ (\d{3})/.exec(text)?.[1] ?? 200);
}

/** Maps the error of a failed call to its reason; a refused address keeps its own error. */
async function withReason<T>(calling: Promise<T>): Promise<T> {
  try {
    return await calling;
  } catch (error) {
    throw error instanceof AddressRefused ? error : asCalendarServerError(error);
  }
}

/** The XML of a request. */
export function xml(name: string, content: string): string {
  const namespaces = 'xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav" xmlns:s="http://calendarserver.org/ns/"';
  return `<${name} ${namespaces}>${content}</${name}>`;
}

/** A query for properties of the events that match a filter (RFC 4791, section 7.8). */
export function eventQuery(properties: string, filter: string): Report {
  const events = `<c:comp-filter name="VEVENT">${filter}</c:comp-filter>`;
  const calendar = `<c:filter><c:comp-filter name="VCALENDAR">${events}</c:comp-filter></c:filter>`;
  const body = xml("c:calendar-query", `<d:prop>${properties}</d:prop>${calendar}`);
  return { body, headers: { depth: "1" } };
}

/** Throws `caldav_login_failed` for refused credentials, and a `CalendarServerError` for any other unsuccessful status. */
export function mustSucceed({ status }: { status: number }): void {
  if (status === 401 || status === 403)
    throw new Fail("caldav_login_failed", {
      detail: "The calendar server refused the login; check name and password.",
    });
  if (status < 200 || status > 299) throw errorForStatus(status);
}

/** A success that is not a multistatus: a page for people, or an incomplete response. */
function notMultistatus(status: number): CalendarServerError {
  return new CalendarServerError("no_calendar_server", `It answered ${status} with something else than WebDAV.`);
}

/** Resolves a URL from the server on the server's own origin; other origins are ignored. */
export function within(base: string, href: string): string {
  if (!isWithin(base, href)) throw new CalendarServerError("other_origin");
  return new URL(href, base).href;
}

/** True if a URL from the server is on the server's own origin. */
export function isWithin(base: string, href: string): boolean {
  return URL.canParse(href, base) && new URL(href, base).origin === new URL(base).origin;
}
