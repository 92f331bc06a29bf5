import { Buffer } from "node:buffer";
import { Fail } from "../../../platform/errors.ts";
import type { Sink } from "../../../platform/exchange.ts";
import { AddressRefused, type OutboundAnswer } from "../../../platform/outbound.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { asCalendarServerError, CalendarServerError, errorForStatus } from "../server-error.ts";
import { type Element, TreeReader } from "../xml-reader.ts";
import { type Multistatus, MultistatusReader } from "./multistatus.ts";
import type { Account } from "./provider.ts";

export type Tools = Pick<Runtime, "outbound">;

/** A login at a calendar server; `home` is where its calendars are. */
export interface CaldavLogin {
  serverUrl: string;
  username: string;
  password: string;
  home: string;
}

/** What one answer may take: bytes, and ms in all. */
export interface AnswerLimits {
  limit: number;
  timeoutMs: number;
}

/** Ms in which a server must begin to answer, and go on where it has begun: its account is degraded soon after its last word. */
const IDLE_TIMEOUT_MS = 4_000;
/** The properties of one resource; those of all calendars of a person; any other answer. */
const ONE_RESOURCE = { limit: 65_536, timeoutMs: 10_000, maxElements: 2_000 };
const MANY_RESOURCES = { limit: 1_048_576, timeoutMs: 20_000, maxElements: 20_000 };
const DEFAULT_LIMITS: AnswerLimits = { limit: 4 * 1_048_576, timeoutMs: 20_000 };

/** Namespaces of the requests. */
export const spaces = 'xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav" xmlns:s="http://calendarserver.org/ns/"';

/** The login of an account, as it was kept when the account was connected. */
export function loginOf({ secret }: Account): CaldavLogin {
  return JSON.parse(secret ?? "{}") as CaldavLogin;
}

/** What a server answers when it is asked for properties; `found` is undefined unless it is a multistatus (RFC 4918, section 13). */
export interface PropertyAnswer {
  status: number;
  url: string;
  found: Element | undefined;
}

/** Asks for properties of a resource, and with depth 1 of those right below it, whatever comes of it. */
export async function askProperties(
  tools: Tools,
  open: CaldavLogin,
  address: string,
  { depth, properties }: { depth: 0 | 1; properties: string },
): Promise<PropertyAnswer> {
  const { maxElements, ...limits } = depth === 0 ? ONE_RESOURCE : MANY_RESOURCES;
  const reader = new TreeReader(maxElements);
  const body = `<d:propfind ${spaces}><d:prop>${properties}</d:prop></d:propfind>`;
  const request = { method: "PROPFIND", headers: xml(depth), body, ...limits, reader };
  const { status, url } = await send(tools, open, address, request);
  const tree = status === 207 ? await named(reader.tree()) : undefined;
  return { status, url, found: tree?.children[0]?.name === "multistatus" ? tree : undefined };
}

/** The same where only success will do: `caldav_login_failed` where the login is refused, else a `CalendarServerError`. */
export async function propfind(
  tools: Tools,
  open: CaldavLogin,
  address: string,
  asked: { depth: 0 | 1; properties: string },
): Promise<{ found: Element; url: string }> {
  const { status, found, url } = await askProperties(tools, open, address, asked);
  mustSucceed({ status });
  if (found === undefined) throw notMultistatus(status);
  return { found, url };
}

/** A report on a calendar (RFC 3253, section 3.6), with its status; resources are there where that is a success. */
export async function report(
  tools: Tools,
  open: CaldavLogin,
  address: string,
  {
    body,
    reader = new MultistatusReader(),
    ...limits
  }: { body: string; reader?: MultistatusReader } & Partial<AnswerLimits>,
): Promise<{ status: number } & Multistatus> {
  const request = { method: "REPORT", headers: xml(1), body, ...limits, reader };
  const { status } = await send(tools, open, address, request);
  if (status !== 207) return { status, resources: [], syncToken: "" };
  const multistatus = await named(reader.multistatus());
  if (multistatus === undefined) throw notMultistatus(status);
  return { status, ...multistatus };
}

/** One request with the login, which never leaves the server that the owner named. `reader` takes a multistatus, and no other body is read. */
export function send(
  { outbound }: Tools,
  { serverUrl, username, password }: CaldavLogin,
  address: string,
  asked: { method: string; headers: Record<string, string>; body?: string; reader?: Sink } & Partial<AnswerLimits>,
): Promise<OutboundAnswer> {
  const { reader, ...call } = asked;
  const url = within(serverUrl, address);
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
  const headers = { ...asked.headers, authorization };
  const into = reader && { into: (status: number) => (status === 207 ? reader : undefined) };
  return named(
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

/** Names the reason of a failed call; an address that may not be called is its own. */
async function named<T>(calling: Promise<T>): Promise<T> {
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

/** `caldav_login_failed` where the login is refused, a `CalendarServerError` for any other status that is no success. */
export function mustSucceed({ status }: { status: number }): void {
  if (status === 401 || status === 403)
    throw new Fail("caldav_login_failed", {
      detail: "The calendar server refused the login; check name and password.",
    });
  if (status < 200 || status > 299) throw errorForStatus(status);
}

/** A success that is none for a calendar server: a page for people, or an answer that was cut off. */
function notMultistatus(status: number): CalendarServerError {
  return new CalendarServerError("no_calendar_server", `It answered ${status} with something else than WebDAV.`);
}

/** An address that a server gave, on the server's own origin: what it says of others is not believed. */
export function within(base: string, href: string): string {
  const url = URL.canParse(href, base) ? new URL(href, base) : undefined;
  if (url?.origin !== new URL(base).origin) throw new CalendarServerError("other_origin");
  return url.href;
}
