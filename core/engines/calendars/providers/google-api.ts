import type { Env } from "../../../platform/env.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { apiCaller, responseJson } from "../authorised-calls.ts";
import { MAX_INSTANCES, MAX_PAGES } from "../busy-objects.ts";
import type { OAuthSettings, ProviderAccount } from "./provider.ts";

/** Scopes of a grant, without their common prefix. */
export const GOOGLE_SCOPES = ["calendar.events", "calendar.calendarlist.readonly"];
/** The scope that includes all others. */
export const FULL_SCOPE = "auth/calendar";

/** An event, or an instance of one. */
export interface GoogleEvent {
  id: string;
  etag?: string;
  status?: "confirmed" | "tentative" | "cancelled";
  transparency?: string;
  eventType?: string;
  recurrence?: string[];
  /** The series of an instance. */
  recurringEventId?: string;
  start?: { date?: string; dateTime?: string };
  end?: { date?: string; dateTime?: string };
  attendees?: { self?: boolean; responseStatus?: string }[];
  extendedProperties?: { private?: Record<string, string> };
  hangoutLink?: string;
  conferenceData?: {
    createRequest?: { status?: { statusCode?: string } };
    entryPoints?: { entryPointType: string; uri: string }[];
  };
}

/** Google issues a refresh token only with consent, so every authorisation asks for consent. */
export function googleSettings(env: Env): OAuthSettings | undefined {
  const { GOOGLE_CLIENT_ID: clientId, GOOGLE_CLIENT_SECRET: clientSecret } = env;
  if (!clientId || !clientSecret) return undefined;
  return {
    clientId,
    clientSecret,
    authorize: `${env.GOOGLE_AUTH_BASE}/o/oauth2/v2/auth`,
    token: `${env.GOOGLE_TOKEN_BASE}/token`,
    revoke: `${env.GOOGLE_TOKEN_BASE}/revoke`,
    scope: GOOGLE_SCOPES.map((scope) => `https://www.googleapis.com/auth/${scope}`).join(" "),
    login: "post",
    parameters: { access_type: "offline", prompt: "consent" },
  };
}

/** One call of an account. */
export const askGoogle = apiCaller({ settings: googleSettings, url: googleUrl });

/** A listing; `gone` are statuses of its first page that mean that the resource doesn't exist. */
interface Listing {
  path: string;
  query: Record<string, string>;
  gone?: number[];
}

/** All pages of a listing; empty if the resource is gone. */
export async function googlePages<T extends { items?: unknown[] }>(
  runtime: Runtime,
  account: ProviderAccount,
  { path, query, gone = [] }: Listing,
): Promise<T[]> {
  const pages: T[] = [];
  let read = 0;
  for (let pageToken = ""; read <= MAX_INSTANCES && pages.length < MAX_PAGES; ) {
    const parameters = new URLSearchParams({ ...query, ...(pageToken ? { pageToken } : {}) });
    const answer = await askGoogle(runtime, account, { path: `${path}?${parameters}` });
    if (gone.includes(answer.status)) return [];
    const page = responseJson<T & { nextPageToken?: string }>(answer);
    pages.push(page);
    if (!page.nextPageToken) return pages;
    pageToken = page.nextPageToken;
    read += page.items?.length ?? 0;
  }
  throw new Error("The calendar holds too many events.");
}

/** The URL of a path of the API. */
export function googleUrl({ GOOGLE_API_BASE }: Env, path: string): string {
  return `${GOOGLE_API_BASE}/calendar/v3${path}`;
}

/** The path of a calendar's events. */
export function eventsOf(calendarId: string): string {
  return `/calendars/${encodeURIComponent(calendarId)}/events`;
}
