import {
  array,
  boolean,
  handle,
  type Infer,
  ignored,
  instant,
  object,
  oneOf,
  optional,
  string,
  webAddress,
} from "./schema.ts";

/** Keys of the providers (docs/reference.md, "Connected accounts"). */
export const providerKeys = ["google", "microsoft", "caldav", "zoom", "stripe"] as const;
export type ProviderKey = (typeof providerKeys)[number];

const providerKey = string();

/** The path of a handle's integrations, and of one provider there. */
export const integrationsPath = object({ handle });
export const providerPath = object({ handle, providerKey });
/** `POST …/oauth/callback`. */
export const oauthCallback = object({
  handle,
  providerKey,
  code: string({ minLength: 1, maxLength: 4096 }),
  state: string({ minLength: 1, maxLength: 256 }),
});
/** `GET /oauth/scheduling/{providerKey}/return`: the query with which a provider returns the browser. */
export const oauthReturn = object({
  providerKey,
  code: optional(string({ maxLength: 4096 })),
  state: optional(string({ maxLength: 256 })),
  error: optional(string({ maxLength: 256 })),
  cookie: optional(string()),
});
/** The consent page for connecting an account, and its form. */
const consentId = string({ minLength: 1, maxLength: 128 });
export const consentPage = object({ providerKey, consentId, cookie: optional(string()) });
export const consentForm = object({
  providerKey,
  consentId,
  decision: oneOf("connect", "cancel"),
  proof: string({ maxLength: 256 }),
  cookie: optional(string()),
});
/** The path of one credential. */
export const credentialPath = object({ handle, providerKey, credentialId: string() });

/** A connected account as its owner reads it. */
export const credential = object({
  credentialId: string(),
  providerKey: oneOf(...providerKeys),
  account: string(),
  status: oneOf("OK", "DEGRADED"),
  /** Why the account is degraded, in a sentence. */
  detail: optional(string()),
  createdAt: instant,
});
export type Credential = Infer<typeof credential>;
export const credentialAnswer = object({ credential });
export const integrationList = object({
  providers: array(object({ providerKey: oneOf(...providerKeys), configured: boolean })),
  credentials: array(credential),
});
export const oauthStarted = object({ authorizeUrl: string({ format: "uri" }), state: string() });

/** A stored account; `secret` is sealed JSON, null if the provider needs none. */
export type StoredCredential = Credential & { secret: string | null };

/** `POST …/integrations/caldav/credentials`. */
export const newCaldavCredential = object({
  handle,
  serverUrl: webAddress,
  username: string({ minLength: 1, maxLength: 320 }),
  password: string({ minLength: 1, maxLength: 1024 }),
  ...ignored("credentialId", "providerKey", "account", "status", "detail", "createdAt"),
});

export const calendar = object({
  calendarId: string(),
  credentialId: string(),
  name: string(),
  primary: boolean,
  writable: boolean,
});
export type Calendar = Infer<typeof calendar>;
export const calendarList = object({ calendars: array(calendar) });

/** Longest id of a calendar, in characters. */
export const MAX_CALENDAR_ID_LENGTH = 2048;
const calendarId = string({ minLength: 1, maxLength: MAX_CALENDAR_ID_LENGTH });
const calendarIds = array(calendarId, { maxItems: 50, uniqueItems: true });
const calendarSelection = {
  credentialId: string({ maxLength: 128 }),
  busyCalendarIds: calendarIds,
  destinationCalendarId: optional(calendarId),
};
/** `POST …/selected-calendars`: replaces the selection of this account. */
export const selection = object({ handle, ...calendarSelection });
export const selectedCalendars = object(calendarSelection);
export type SelectedCalendars = Infer<typeof selectedCalendars>;
export const selectedCalendarsAnswer = object({ selectedCalendars });
