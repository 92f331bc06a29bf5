import type { SelectedCalendars } from "../../schemas/integrations.ts";
import type { StoredBooking } from "../../schemas/scheduling.ts";
import {
  type ProviderAccount,
  type ProviderCalendars,
  type ProviderMeetings,
  providers,
} from "../engines/calendars/calendars.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { credentialRecords } from "./credentials.ts";

/** An owner's selection for an account, with the account and its provider. */
export interface Selection {
  account: ProviderAccount;
  calendars: ProviderCalendars;
  busyCalendarIds: string[];
  destinationCalendarId: string | null;
}

export type Destination = Pick<Selection, "account" | "calendars"> & { calendarId: string };

/** The stored form; `at` is its creation in real ms. */
export type StoredSelection = SelectedCalendars & { at: number };

/** The selections of a handle whose accounts are still connected, oldest first; others are forgotten. */
export async function selectionsOf(runtime: Runtime, handle: string): Promise<Selection[]> {
  const [stored, credentials] = await Promise.all([
    runtime.redis.hgetall(keys.selectedCalendars(handle)),
    credentialRecords.all(runtime, handle),
  ]);
  const gone = Object.keys(stored).filter((id) => !credentials.some(({ credentialId }) => credentialId === id));
  if (gone.length > 0) await runtime.redis.hdel(keys.selectedCalendars(handle), ...gone);
  const found = credentials.flatMap((credential) => {
    const json = stored[credential.credentialId];
    const calendars = providers[credential.providerKey]?.calendars;
    if (json === undefined || calendars === undefined) return [];
    const { busyCalendarIds, destinationCalendarId = null, at = 0 } = JSON.parse(json) as StoredSelection;
    return [{ at, account: { handle, ...credential }, calendars, busyCalendarIds, destinationCalendarId }];
  });
  return found.sort((one, other) => one.at - other.at);
}

/** The destination of a handle's bookings: that of the newest selection with one; undefined if there is none. */
export function destinationAmong(selections: Selection[]): Destination | undefined {
  const newest = selections.findLast(({ destinationCalendarId }) => destinationCalendarId !== null);
  return newest && { ...newest, calendarId: newest.destinationCalendarId as string };
}

/** The account that creates the meetings of a location type, the oldest first; undefined if there is none. */
export async function meetingMaker(
  runtime: Runtime,
  handle: string,
  { location }: Pick<StoredBooking, "location">,
): Promise<{ account: ProviderAccount; meetings: ProviderMeetings } | undefined> {
  if (location === null) return undefined;
  for (const credential of await credentialRecords.all(runtime, handle)) {
    const meetings = providers[credential.providerKey]?.meetings;
    if (meetings?.kind === location.type) return { account: { handle, ...credential }, meetings };
  }
  return undefined;
}

/** True while a booking still waits for the link of a provider. */
export async function awaitsLink(runtime: Runtime, handle: string, booking: StoredBooking): Promise<boolean> {
  const { location, meetingUrl, status } = booking;
  if (location === null || meetingUrl !== null || status !== "ACCEPTED") return false;
  if (await meetingMaker(runtime, handle, booking)) return true;
  const destination = destinationAmong(await selectionsOf(runtime, handle));
  return destination?.calendars.meeting === location.type;
}
