import { sha256 } from "../../../platform/digest.ts";
import type { Env } from "../../../platform/env.ts";
import type { OutboundAnswer } from "../../../platform/outbound.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { apiCaller, responseJson } from "../authorised-calls.ts";
import { MAX_INSTANCES, MAX_PAGES } from "../busy-objects.ts";
import { type EventWrite, type OAuthSettings, ownUid, type ProviderAccount } from "./provider.ts";

/** The OAuth client; undefined without its settings. */
export function graphSettings(env: Env): OAuthSettings | undefined {
  const { MICROSOFT_CLIENT_ID: clientId, MICROSOFT_CLIENT_SECRET: clientSecret } = env;
  if (!clientId || !clientSecret) return undefined;
  return {
    clientId,
    clientSecret,
    authorize: `${env.MICROSOFT_LOGIN_BASE}/common/oauth2/v2.0/authorize`,
    token: `${env.MICROSOFT_LOGIN_BASE}/common/oauth2/v2.0/token`,
    scope: "offline_access User.Read Calendars.ReadWrite",
    login: "post",
    parameters: { response_mode: "query", prompt: "select_account" },
  };
}

/** An event, an instance, or (with `@removed`) a deletion. */
export interface GraphEvent {
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

/** Every call requests times in UTC. */
export function instantOf({ dateTime }: { dateTime: string }): number {
  return Date.parse(`${dateTime.slice(0, 19)}Z`);
}

/** The transaction id of a booking in a calendar; a new one for an event that its owner deleted. */
export function transactionOf({ calendarId, event, earlier }: EventWrite): string {
  const turn = sha256(`${calendarId} ${earlier?.eventId ?? ""}`)
    .toString("hex")
    .slice(0, 12);
  return `${event.bookingUid}.${turn}`;
}

/** The booking UID of a transaction id. */
export function uidOf(env: Env, transaction: string): string | undefined {
  const [, bookingUid] = /^(.+)\.[0-9a-f]{12}$/.exec(transaction) ?? [];
  return bookingUid && ownUid(env, bookingUid);
}

/** A complete listing with its delta link. */
interface Listing<T> {
  items: T[];
  deltaLink: string | null;
  /** The first response had a status that the caller handles. */
  isRefused: boolean;
}

/** All pages of a listing, from a path or from a link of Graph. */
export async function graphPages<T>(
  runtime: Runtime,
  account: ProviderAccount,
  { first, refuses = () => false }: { first: string; refuses?: (answer: OutboundAnswer) => boolean },
): Promise<Listing<T>> {
  const items: T[] = [];
  let path = first;
  for (let pages = 0; items.length <= MAX_INSTANCES && pages < MAX_PAGES; pages++) {
    const answer = await askGraph(runtime, account, { path });
    if (refuses(answer)) return { items: [], deltaLink: null, isRefused: true };
    const page = responseJson<{ value: T[]; "@odata.nextLink"?: string; "@odata.deltaLink"?: string }>(answer);
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

/** One call of an account: times are in UTC, and ids do not change. */
export const askGraph = apiCaller({
  settings: graphSettings,
  url: graphUrl,
  headers: { prefer: preferences.join(", ") },
});

/** The URL of a path of the API. */
export function graphUrl({ MICROSOFT_GRAPH_BASE }: Env, path: string): string {
  return `${MICROSOFT_GRAPH_BASE}/v1.0${path}`;
}

/** The path of a calendar. */
export function calendarAt(calendarId: string): string {
  return `/me/calendars/${encodeURIComponent(calendarId)}`;
}

/** The path of an event. */
export function eventAt(eventId: string): string {
  return `/me/events/${encodeURIComponent(eventId)}`;
}
