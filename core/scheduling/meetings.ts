import type { StoredBooking } from "../../schemas/scheduling.ts";
import { type ProviderAccount, type ProviderMeetings, providers } from "../engines/calendars/calendars.ts";
import type { Runtime } from "../platform/runtime.ts";
import { credentialsOf } from "./credentials.ts";
import { destinationAmong, opened, selectionsOf } from "./selections.ts";

/** An account that creates meetings without a calendar. */
interface MeetingMaker {
  account: ProviderAccount;
  meetings: ProviderMeetings;
}

/** The account that creates the meetings of a location type, the oldest first; undefined if there is none. */
export async function meetingMaker(
  runtime: Runtime,
  handle: string,
  { location }: Pick<StoredBooking, "location">,
): Promise<MeetingMaker | undefined> {
  if (location === null) return undefined;
  for (const credential of await credentialsOf(runtime, handle)) {
    const meetings = providers[credential.providerKey]?.meetings;
    if (meetings?.kind === location.type) return { account: opened(runtime, handle, credential), meetings };
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
