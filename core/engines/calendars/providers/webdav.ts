import { Buffer } from "node:buffer";
import { Fail } from "../../../platform/errors.ts";
import type { Sink } from "../../../platform/exchange.ts";
import { AddressRefused, type OutboundAnswer } from "../../../platform/outbound.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { asCalendarServerError, CalendarServerError, errorForStatus } from "../server-error.ts";
import { type Element, textIn, XmlReader } from "../xml-reader.ts";
import { MultistatusReader, type Resource } from "./multistatus.ts";
import type { ProviderAccount } from "./provider.ts";

export type Tools = Pick<Runtime, "outbound">;

/** Credentials for a calendar server; `home` is the URL of its calendars. */
export interface CaldavLogin {
  serverUrl: string;
  username: string;
  password: string;
  home: string;
}

/** Limits of one response: bytes, and ms in all. */
interface AnswerLimits {
  limit: number;
  timeoutMs: number;
}

/** Ms within which a server must begin to respond, and then make progress. An account degrades soon after its server falls silent. */
const IDLE_TIMEOUT_MS = 4_000;
/** The properties of one resource; those of all calendars of a person; any other response. */
const ONE_RESOURCE: AnswerLimits = { limit: 65_536, timeoutMs: 10_000 };
const MANY_RESOURCES: AnswerLimits = { limit: 1_048_576, timeoutMs: 20_000 };
const DEFAULT_LIMITS: AnswerLimits = { limit: 4 * 1_048_576, timeoutMs: 20_000 };

/** XML namespaces of the requests. */
export const XML_NAMESPACES =
  'xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav" xmlns:s="http://calendarserver.org/ns/"';

/** The stored credentials of an account. */
export function loginOf({ secret }: ProviderAccount): CaldavLogin {
  return JSON.parse(secret ?? "{}") as CaldavLogin;
}

/** The response to a PROPFIND; `found` is undefined unless it is a multistatus (RFC 4918, section 13). */
interface PropertyAnswer {
  status: number;
  url: string;
  found: Element | undefined;
}

/** Properties of a resource, and with depth 1 (default 0) of its direct members. */
interface PropertyQuestion {
  address: string;
  properties: string;
  depth?: 0 | 1;
}

/** Requests properties; returns any response. */
export async function askProperties(
  tools: Tools,
  open: CaldavLogin,
  { address, properties, depth = 0 }: PropertyQuestion,
): Promise<PropertyAnswer> {
  const limits = depth === 0 ? ONE_RESOURCE : MANY_RESOURCES;
  const reader = new XmlReader();
  const body = `<d:propfind ${XML_NAMESPACES}><d:prop>${properties}</d:prop></d:propfind>`;
  const request = { address, method: "PROPFIND", headers: xml(depth), body, ...limits, reader };
  const { status, url } = await sendWebdav(tools, open, request);
  return { status, url, found: status === 207 ? await multistatusIn(reader) : undefined };
}

/** The same, but throws unless it succeeds: `caldav_login_failed` for refused credentials, else a `CalendarServerError`. */
export async function propfind(
  tools: Tools,
  open: CaldavLogin,
  asked: PropertyQuestion,
): Promise<{ found: Element; url: string }> {
  const { status, found, url } = await askProperties(tools, open, asked);
  mustSucceed({ status });
  if (found === undefined) throw notMultistatus(status);
  return { found, url };
}

/** The root of a multistatus; undefined for anything else. */
async function multistatusIn(reader: XmlReader): Promise<Element | undefined> {
  const root = await withReason(reader.root());
  return root?.name === "multistatus" ? root : undefined;
}

/** The resources of a report, and its sync token ("" if there is none). */
export interface Report {
  status: number;
  resources: Resource[];
  syncToken: string;
}

/** A report on a calendar (RFC 3253, section 3.6) with its status; successful ones have resources. */
export async function report(
  tools: Tools,
  open: CaldavLogin,
  asked: { address: string; body: string; reader?: MultistatusReader } & Partial<AnswerLimits>,
): Promise<Report> {
  const { reader = new MultistatusReader() } = asked;
  const { status } = await sendWebdav(tools, open, { ...asked, method: "REPORT", headers: xml(1), reader });
  if (status !== 207) return { status, resources: [], syncToken: "" };
  const root = await multistatusIn(reader);
  if (root === undefined) throw notMultistatus(status);
  return { status, resources: reader.resources, syncToken: textIn(root, "sync-token") };
}

interface DavCall extends Partial<AnswerLimits> {
  address: string;
  method: string;
  headers?: Record<string, string>;
  body?: string;
  reader?: Sink;
}

/** One request with the credentials, which never leave the owner's server. `reader` receives a multistatus; other bodies are not read. */
export function sendWebdav(
  { outbound }: Tools,
  { serverUrl, username, password }: CaldavLogin,
  asked: DavCall,
): Promise<OutboundAnswer> {
  const { address, reader, ...call } = asked;
  const url = within(serverUrl, address);
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
  const headers = { ...asked.headers, authorization };
  const into = reader && { into: (status: number) => (status === 207 ? reader : undefined) };
  return withReason(
    outbound.request(url, {
      ...DEFAULT_LIMITS,
      ...call,
      ...into,
      headers,
      redirects: 3,
      idleTimeoutMs: IDLE_TIMEOUT_MS,
    }),
  );
}

/** Maps the error of a failed call to its reason; a refused address keeps its own error. */
async function withReason<T>(calling: Promise<T>): Promise<T> {
  try {
    return await calling;
  } catch (error) {
    throw error instanceof AddressRefused ? error : asCalendarServerError(error);
  }
}

/** Headers of a request with XML. */
function xml(depth: 0 | 1): Record<string, string> {
  return { depth: String(depth), "content-type": "application/xml; charset=utf-8" };
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
  const url = URL.canParse(href, base) ? new URL(href, base) : undefined;
  if (url?.origin !== new URL(base).origin) throw new CalendarServerError("other_origin");
  return url.href;
}
