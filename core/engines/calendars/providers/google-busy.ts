import type { Runtime } from "../../../platform/runtime.ts";
import { type BusyInstance, busyObjects, overlapWith, wholeDays } from "../busy-objects.ts";
import { eventsOf, type GoogleEvent, googlePages } from "./google-api.ts";
import type { BusyAnswer, BusyQuestion, ProviderAccount } from "./provider.ts";

interface EventPage {
  timeZone?: string;
  nextSyncToken?: string;
  items?: GoogleEvent[];
}

/** Parameters that must stay the same over all incremental readings. */
const everyReading = { maxResults: "2500", maxAttendees: "1" };
const busyFields =
  "timeZone,nextPageToken,nextSyncToken,items(id,status,transparency,eventType,start,end,recurringEventId,recurrence,attendees(self,responseStatus),extendedProperties/private)";

/**
 * Changes list series as such; the busy time of a changed series is read from its instances. The listing of instances has sync tokens too,
 * but doesn't show which instances a change of a series removed.
 */
export async function readGoogleBusy(
  runtime: Runtime,
  account: ProviderAccount,
  question: BusyQuestion,
): Promise<BusyAnswer> {
  const since = question.known && (await changesSince(runtime, account, { question, mark: question.known.mark }));
  return since ?? readWhole(runtime, account, question);
}

async function readWhole(runtime: Runtime, account: ProviderAccount, question: BusyQuestion): Promise<BusyAnswer> {
  // The sync token comes first: a change during the reading is then read twice and not missed.
  const path = eventsOf(question.calendarId);
  const query = { ...everyReading, fields: "nextPageToken,nextSyncToken" };
  const marks = await googlePages<EventPage>(runtime, account, { path, query });
  const changed = busyObjects(await instancesAt(runtime, account, { question, path, more: { singleEvents: "true" } }));
  return { mark: marks.at(-1)?.nextSyncToken ?? null, isWhole: true, changed, removed: [] };
}

/** The changes since a sync token; undefined if Google has dropped the token. */
async function changesSince(
  runtime: Runtime,
  account: ProviderAccount,
  { question, mark }: { question: BusyQuestion; mark: string },
): Promise<BusyAnswer | undefined> {
  const query = { ...everyReading, syncToken: mark, fields: busyFields };
  const path = eventsOf(question.calendarId);
  const pages = await googlePages<EventPage>(runtime, account, { path, query, gone: [400, 410] });
  if (pages.length === 0) return undefined;
  const zone = pages[0]?.timeZone ?? question.zone;
  const events = pages.flatMap(({ items = [] }) => items);
  const series = new Set(events.filter(isOfSeries).map(({ id, recurringEventId }) => recurringEventId ?? id));
  const single = events.filter((event) => !isOfSeries(event) && !series.has(event.id));
  const read = single.map((event) => instanceOf(event, { question, zone }));
  const gone = new Set(single.filter(({ status }) => status === "cancelled").map(({ id }) => id));
  for (const id of series) {
    const own = `${path}/${encodeURIComponent(id)}/instances`;
    const instances = await instancesAt(runtime, account, { question, path: own, more: {} });
    if (instances.length === 0) gone.add(id);
    else read.push(...instances);
  }
  const changed = busyObjects(read.filter(({ objectId }) => !gone.has(objectId)));
  return { mark: pages.at(-1)?.nextSyncToken ?? null, isWhole: false, changed, removed: [...gone] };
}

function isOfSeries({ status, recurrence, recurringEventId }: GoogleEvent): boolean {
  return recurringEventId !== undefined || (recurrence !== undefined && status !== "cancelled");
}

/** The instances in the window; none if the resource is gone. */
async function instancesAt(
  runtime: Runtime,
  account: ProviderAccount,
  { question, path, more }: { question: BusyQuestion; path: string; more: Record<string, string> },
): Promise<BusyInstance[]> {
  const [timeMin, timeMax] = [question.from, question.to].map((ms) => new Date(ms).toISOString()) as [string, string];
  const query = { ...everyReading, ...more, timeMin, timeMax, fields: busyFields };
  const pages = await googlePages<EventPage>(runtime, account, { path, query, gone: [404, 410] });
  return pages.flatMap(({ items = [], timeZone: zone = question.zone }) =>
    items.map((event) => instanceOf(event, { question, zone })),
  );
}

function instanceOf(event: GoogleEvent, asked: { question: BusyQuestion; zone: string }): BusyInstance {
  return { objectId: event.recurringEventId ?? event.id, taken: takenBy(event, asked) };
}

function takenBy(
  event: GoogleEvent,
  { question, zone }: { question: BusyQuestion; zone: string },
): BusyInstance["taken"] {
  const { id, status, transparency, eventType = "", start, end, attendees = [] } = event;
  const isDeclined = attendees.some(({ self, responseStatus }) => self && responseStatus === "declined");
  const isFree = transparency === "transparent" || ["workingLocation", "birthday"].includes(eventType);
  if (status === "cancelled" || isDeclined || isFree || !start || !end) return undefined;
  const uid = event.extendedProperties?.private?.uid ?? id;
  const stretch =
    start.date && end.date
      ? wholeDays(start.date, end.date, zone)
      : { from: Date.parse(start.dateTime ?? ""), to: Date.parse(end.dateTime ?? "") };
  return overlapWith({ ...stretch, uid }, question);
}
