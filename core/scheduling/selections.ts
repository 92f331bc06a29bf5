import type { SelectedCalendars, StoredCredential } from "../../schemas/integrations.ts";
import { keys } from "../store/keys.ts";
import type { Runtime } from "../platform/runtime.ts";
import { credentialsOf, secretOf } from "./credentials.ts";
import { type Account, type ProviderCalendars, providers } from "../engines/calendars/calendars.ts";

/** What an owner selected of an account, with the account and what its provider can do. */
export interface Selection {
  account: Account;
  calendars: ProviderCalendars;
  busyCalendarIds: string[];
  destinationCalendarId: string | null;
}

/** A calendar into which bookings are written. */
export interface Destination {
  account: Account;
  calendars: ProviderCalendars;
  calendarId: string;
}

/** As it is stored: `at` is the real ms at which it was made. */
type Stored = SelectedCalendars & { at: number };

/** Replaces the selection of an account. */
export async function keepSelection({ redis }: Runtime, handle: string, selected: SelectedCalendars): Promise<void> {
  const stored: Stored = { ...selected, at: Date.now() };
  await redis.hset(keys.selectedCalendars(handle), selected.credentialId, JSON.stringify(stored));
}

/** The selections of a handle whose account is still connected, the oldest first; others are forgotten. */
export async function selectionsOf(runtime: Runtime, handle: string): Promise<Selection[]> {
  const [stored, credentials] = await Promise.all([
    runtime.redis.hgetall(keys.selectedCalendars(handle)),
    credentialsOf(runtime, handle),
  ]);
  const gone = Object.keys(stored).filter((id) => !credentials.some(({ credentialId }) => credentialId === id));
  if (gone.length > 0) await runtime.redis.hdel(keys.selectedCalendars(handle), ...gone);
  const found = credentials.flatMap((credential) => {
    const json = stored[credential.credentialId];
    const calendars = providers[credential.providerKey]?.calendars;
    if (json === undefined || calendars === undefined) return [];
    const { busyCalendarIds, destinationCalendarId = null, at = 0 } = JSON.parse(json) as Stored;
    return [{ at, account: opened(runtime, handle, credential), calendars, busyCalendarIds, destinationCalendarId }];
  });
  return found.sort((one, other) => one.at - other.at);
}

/** Where a handle's bookings are written: the destination of the newest selection that names one. Undefined where none does. */
export function destinationAmong(selections: Selection[]): Destination | undefined {
  const newest = selections.findLast(({ destinationCalendarId }) => destinationCalendarId !== null);
  if (newest === undefined) return undefined;
  const { account, calendars, destinationCalendarId } = newest;
  return { account, calendars, calendarId: destinationCalendarId as string };
}

/** An account with its secret. */
export function opened(runtime: Runtime, handle: string, credential: StoredCredential): Account {
  return { handle, credential, secret: secretOf(runtime, handle, credential) };
}
