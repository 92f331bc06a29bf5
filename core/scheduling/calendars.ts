import {
  type Calendar,
  type Credential,
  MAX_CALENDAR_ID_LENGTH,
  type newCaldavCredential,
  type ProviderKey,
  type SelectedCalendars,
  type StoredCredential,
  type selectedCalendars,
} from "../../schemas/integrations.ts";
import type { Input } from "../../schemas/schema.ts";
import { mustStillBeActive } from "../account/face.ts";
import {
  CalendarServerError,
  login,
  type ProviderCalendar,
  type ProviderCalendars,
  providers,
} from "../engines/calendars/calendars.ts";
import { clip, oneLine } from "../platform/characters.ts";
import { Fail, invalid, unavailable } from "../platform/errors.ts";
import { atInput } from "../platform/outbound.ts";
import type { Runtime } from "../platform/runtime.ts";
import { changeSelection } from "./busy-calendars.ts";
import { credentialRecords, storeCredential, updateHealth } from "./credentials.ts";

/** Most characters of a calendar's name. */
const MAX_NAME_LENGTH = 200;

/** Connects a calendar server after a real login; `caldav_login_failed`, `invalid_request` for a refused address. */
export async function connectCaldav(
  runtime: Runtime,
  { handle, serverUrl, username, password }: Input<"handle", typeof newCaldavCredential>,
): Promise<{ credential: Credential }> {
  await atInput("/serverUrl", runtime.outbound.check(serverUrl));
  const open = await atInput("/serverUrl", login(runtime, { serverUrl, username, password }));
  await mustStillBeActive(runtime.redis, handle);
  const account = `${username}@${new URL(serverUrl).host}`;
  const connected = { providerKey: "caldav" as const, account, secret: JSON.stringify(open) };
  return { credential: await storeCredential(runtime, handle, connected) };
}

/**
 * The calendars of a provider's accounts. An account that its owner must connect again is left out and marked as degraded; if all accounts
 * fail, its failure is thrown. `service_unavailable` if another one fails. `integration_not_found` if none is connected, or for providers
 * without calendars.
 */
export async function listCalendars(
  runtime: Runtime,
  { handle, providerKey }: Input<"handle" | "providerKey">,
): Promise<{ calendars: Calendar[] }> {
  mustHaveCalendars(providerKey);
  const all = (await credentialRecords.all(runtime, handle)).filter((one) => one.providerKey === providerKey);
  if (all.length === 0)
    throw new Fail("integration_not_found", { detail: "No account of this provider is connected." });
  const failures: Fail[] = [];
  const lists = all.map((credential) =>
    calendarsOf(runtime, handle, credential).catch(async (failure: Fail): Promise<Calendar[]> => {
      failures.push(failure);
      if (failure.permanent) await updateHealth(runtime, { handle, ...credential }, failure);
      return [];
    }),
  );
  const calendars = (await Promise.all(lists)).flat();
  const ended = failures.find(({ permanent }) => permanent);
  const away = failures.find(({ permanent }) => !permanent);
  const failure = failures.length === all.length ? (ended ?? away) : away;
  if (failure) throw failure;
  return { calendars };
}

/**
 * Selects the calendars of an account that block the owner's time, reads them at once, and selects the one for bookings. A handle has one
 * destination: that of the newest selection with one. `integration_not_found`, `invalid_request`.
 */
export async function selectCalendars(
  runtime: Runtime,
  { handle, ...selected }: Input<"handle", typeof selectedCalendars>,
): Promise<{ selectedCalendars: SelectedCalendars }> {
  const { credentialId, busyCalendarIds, destinationCalendarId: destination } = selected;
  const known = await calendarsOf(runtime, handle, await credentialRecords.read(runtime, handle, credentialId));
  const names = new Set(known.map(({ calendarId }) => calendarId));
  const unknown = busyCalendarIds.findIndex((id) => !names.has(id));
  if (unknown >= 0) throw invalid(`/busyCalendarIds/${unknown}`, "is not a calendar of this account");
  const target = known.find(({ calendarId }) => calendarId === destination);
  if (destination !== undefined && target?.writable !== true)
    throw invalid("/destinationCalendarId", target ? "is read-only" : "is not a calendar of this account");
  await mustStillBeActive(runtime.redis, handle);
  // The account works. If one of its calendars doesn't, the reading says so.
  await updateHealth(runtime, { handle, credentialId }, undefined);
  await changeSelection(runtime, handle, selected);
  return { selectedCalendars: selected };
}

async function calendarsOf(runtime: Runtime, handle: string, credential: StoredCredential): Promise<Calendar[]> {
  const { credentialId, providerKey } = credential;
  const calendars = mustHaveCalendars(providerKey);
  const found = await calendars.list(runtime, { handle, ...credential }).catch((cause: Error) => {
    const isNamed = cause instanceof CalendarServerError;
    throw unavailable(cause, isNamed ? cause.message : "The calendar server is not responding.");
  });
  return found.filter(({ calendarId }) => isCalendarId(calendarId)).map((one) => calendarOf(one, credentialId));
}

function isCalendarId(given: unknown): boolean {
  return typeof given === "string" && given !== "" && given.length <= MAX_CALENDAR_ID_LENGTH;
}

/** A calendar as its owner reads it, whatever its server says of it. */
function calendarOf({ calendarId, name, primary, writable }: ProviderCalendar, credentialId: string): Calendar {
  const shown = typeof name === "string" ? clip(oneLine(name), MAX_NAME_LENGTH) : "";
  const flags = { primary: primary === true, writable: writable === true };
  return { calendarId, credentialId, name: shown || calendarId, ...flags };
}

function mustHaveCalendars(providerKey: string): ProviderCalendars {
  const calendars = providers[providerKey as ProviderKey]?.calendars;
  if (calendars === undefined) throw new Fail("integration_not_found", { detail: "This provider has no calendars." });
  return calendars;
}
