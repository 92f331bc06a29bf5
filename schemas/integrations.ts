import * as s from "./schema.ts";

/** Keys of the providers (docs/reference.md, "Connected accounts"). */
export const providerKeys = ["google", "microsoft", "caldav", "zoom", "stripe"] as const;
export type ProviderKey = (typeof providerKeys)[number];

export const oauthCallback = s.object({
  code: s.string({ minLength: 1, maxLength: 4096 }),
  state: s.string({ minLength: 1, maxLength: 256 }),
});
/** `GET /oauth/scheduling/{providerKey}/return`: the query with which a provider returns the browser. */
export const oauthReturn = s.object({
  code: s.optional(s.string({ maxLength: 4096 })),
  state: s.optional(s.string({ maxLength: 256 })),
  error: s.optional(s.string({ maxLength: 256 })),
  cookie: s.optional(s.string()),
});
const consentId = s.string({ minLength: 1, maxLength: 128 });
export const consentPage = s.object({ consentId, cookie: s.optional(s.string()) });
export const consentForm = s.object({
  consentId,
  decision: s.oneOf("connect", "cancel"),
  proof: s.string({ maxLength: 256 }),
  cookie: s.optional(s.string()),
});

export const credential = s.component("ConnectedAccount", {
  credentialId: s.string(),
  providerKey: s.oneOf(...providerKeys),
  account: s.string(),
  status: s.oneOf("OK", "DEGRADED"),
  /** Why the account is degraded, in a sentence. */
  detail: s.optional(s.string()),
  createdAt: s.instant,
});
export type Credential = s.Infer<typeof credential>;
export const integrationList = s.object({
  providers: s.array(s.object({ providerKey: s.oneOf(...providerKeys), configured: s.boolean })),
  credentials: s.array(credential),
});
export const oauthStarted = s.object({ authorizeUrl: s.string({ format: "uri" }), state: s.string() });

/** A stored account; `secret` is sealed JSON, null if the provider needs none. */
export type StoredCredential = Credential & { secret: string | null };

export const newCaldavCredential = s.object({
  serverUrl: s.webAddress,
  username: s.string({ minLength: 1, maxLength: 320 }),
  password: s.string({ minLength: 1, maxLength: 1024 }),
  ...s.ignored("credentialId", "providerKey", "account", "status", "detail", "createdAt"),
});

const calendar = s.component("Calendar", {
  calendarId: s.string(),
  credentialId: s.string(),
  name: s.string(),
  primary: s.boolean,
  writable: s.boolean,
});
export type Calendar = s.Infer<typeof calendar>;
export const calendarList = s.object({ calendars: s.array(calendar) });

/** Longest id of a calendar, in characters. */
export const MAX_CALENDAR_ID_LENGTH = 2048;
const calendarId = s.string({ minLength: 1, maxLength: MAX_CALENDAR_ID_LENGTH });
const calendarIds = s.array(calendarId, { maxItems: 50, uniqueItems: true });
/** `POST …/selected-calendars` replaces the selection of this account. */
export const selectedCalendars = s.component("SelectedCalendars", {
  credentialId: s.string({ maxLength: 128 }),
  busyCalendarIds: calendarIds,
  destinationCalendarId: s.optional(calendarId),
});
export type SelectedCalendars = s.Infer<typeof selectedCalendars>;
