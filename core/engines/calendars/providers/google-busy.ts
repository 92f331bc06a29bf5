import type { Runtime } from "../../../platform/runtime.ts";
import { type BusyInstance, type CalendarChanges, instantsOf, readMarked, wholeDays } from "../busy-objects.ts";
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
export function readGoogleBusy(
  runtime: Runtime,
  account: ProviderAccount,
  question: BusyQuestion,
): Promise<BusyAnswer> {
  const events = eventsOf(question.calendarId);
  const pages = (path: string, query: Record<string, string>, gone: number[] = []): Promise<EventPage[]> =>
    googlePages<EventPage>(runtime, account, { path, query: { ...everyReading, ...query }, gone });
  return readMarked(
    {
      async newMark() {
        return markOf(await pages(events, { fields: "nextPageToken,nextSyncToken" }));
      },
      async changesSince({ mark }) {
        const found = await pages(events, { syncToken: mark, fields: busyFields }, [400, 410]);
        return found.length === 0 ? undefined : changesIn(found, question.zone);
      },
      async instances(series) {
        const path = series ? `${events}/${encodeURIComponent(series)}/instances` : events;
        const [timeMin, timeMax] = instantsOf(question);
        const query = { timeMin, timeMax, fields: busyFields, ...(series ? {} : { singleEvents: "true" }) };
        return instancesIn(await pages(path, query, [404, 410]), question.zone);
      },
    },
    question,
  );
}

function changesIn(pages: EventPage[], ownerZone: string): CalendarChanges {
  const events = pages.flatMap(({ items = [] }) => items);
  const series = new Set(events.filter(isOfSeries).map(({ id, recurringEventId }) => recurringEventId ?? id));
  const single = events.filter((event) => !isOfSeries(event) && !series.has(event.id));
  const removed = new Set(single.filter(({ status }) => status === "cancelled").map(({ id }) => id));
  const there = single.filter(({ id }) => !removed.has(id));
  return { mark: markOf(pages), single: instancesIn([{ ...pages[0], items: there }], ownerZone), series, removed };
}

function markOf(pages: EventPage[]): string | null {
  return pages.at(-1)?.nextSyncToken ?? null;
}

/** The instances of a listing, whose pages all name the calendar's zone. */
function instancesIn(pages: EventPage[], ownerZone: string): BusyInstance[] {
  const zone = pages[0]?.timeZone ?? ownerZone;
  return pages
    .flatMap(({ items = [] }) => items)
    .map((event) => ({ objectId: event.recurringEventId ?? event.id, taken: takenBy(event, zone) }));
}

function isOfSeries({ status, recurrence, recurringEventId }: GoogleEvent): boolean {
  return recurringEventId !== undefined || (recurrence !== undefined && status !== "cancelled");
}

function takenBy(event: GoogleEvent, zone: string): BusyInstance["taken"] {
  const { id, status, transparency, eventType = "", start, end, attendees = [] } = event;
  const isDeclined = attendees.some(({ self, responseStatus }) => self && responseStatus === "declined");
  const isFree = transparency === "transparent" || ["workingLocation", "birthday"].includes(eventType);
  if (status === "cancelled" || isDeclined || isFree || !start || !end) return undefined;
  const uid = event.extendedProperties?.private?.uid ?? id;
  if (start.date && end.date) return { uid, ...wholeDays(start.date, end.date, zone) };
  return { uid, from: Date.parse(start.dateTime ?? ""), to: Date.parse(end.dateTime ?? "") };
}
