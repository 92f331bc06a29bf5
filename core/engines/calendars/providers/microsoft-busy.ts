import type { Env } from "../../../platform/env.ts";
import type { OutboundAnswer } from "../../../platform/outbound.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { isGone } from "../authorised-calls.ts";
import { type BusyInstance, instantsOf, readMarked, wholeDays } from "../busy-objects.ts";
import { calendarAt, eventAt, type GraphEvent, graphPages, instantOf, uidOf } from "./graph.ts";
import type { BusyAnswer, BusyQuestion, ProviderAccount } from "./provider.ts";

const busyFields = "id,type,seriesMasterId,start,end,isAllDay,isCancelled,showAs,responseStatus,transactionId";

/**
 * Changes name events and series. The busy time of a series is read from its instances, because its changes include neither how an
 * occurrence is shown nor which occurrence was deleted.
 */
export function readGraphBusy(runtime: Runtime, account: ProviderAccount, question: BusyQuestion): Promise<BusyAnswer> {
  const view = `${calendarAt(question.calendarId)}/calendarView`;
  const read = (event: GraphEvent): BusyInstance => ({
    objectId: event.seriesMasterId ?? event.id,
    taken: takenBy(runtime.env, event, question.zone),
  });
  return readMarked(
    {
      /** The delta link after a whole round of changes, whose content is ignored. */
      async newMark() {
        const first = `${view}/delta?${windowOf(question)}`;
        return (await graphPages<GraphEvent>(runtime, account, { first })).deltaLink;
      },
      async changesSince({ mark, tags }) {
        const round = await graphPages<GraphEvent>(runtime, account, { first: mark, refuses: isLost });
        if (round.isRefused) return undefined;
        const removed = new Set(round.items.filter((event) => event["@removed"]).map(({ id }) => id));
        const events = round.items.filter(({ id }) => !removed.has(id));
        const series = new Set(events.filter(isOfSeries).map(({ id, seriesMasterId }) => seriesMasterId ?? id));
        const single = events.filter((event) => !isOfSeries(event)).map(read);
        const known = removed.size > 0 ? await tags() : undefined;
        // The deletion of an occurrence doesn't name its series.
        const isUnclear = [...removed].some((id) => !known?.has(id));
        return { mark: round.deltaLink, single, series, removed, isUnclear };
      },
      async instances(series) {
        const path = series ? `${eventAt(series)}/instances` : view;
        const first = `${path}?${windowOf(question)}&$select=${busyFields}&$top=1000`;
        return (await graphPages<GraphEvent>(runtime, account, { first, refuses: isGone })).items.map(read);
      },
    },
    question,
  );
}

function isOfSeries({ type, seriesMasterId }: GraphEvent): boolean {
  return type === "seriesMaster" || Boolean(seriesMasterId);
}

/** A dropped delta link: the error codes differ between mailboxes. */
function isLost({ status, body }: OutboundAnswer): boolean {
  return status === 410 || (status >= 400 && status < 500 && /syncState|resync|fullSync/i.test(body.toString("utf8")));
}

function windowOf(question: BusyQuestion): string {
  const [startDateTime, endDateTime] = instantsOf(question);
  return new URLSearchParams({ startDateTime, endDateTime }).toString();
}

function takenBy(env: Env, event: GraphEvent, zone: string): BusyInstance["taken"] {
  const { start, end, isAllDay, isCancelled, showAs = "busy", responseStatus } = event;
  const isFree = ["free", "workingElsewhere"].includes(showAs);
  if (isCancelled || isFree || responseStatus?.response === "declined") return undefined;
  const uid = uidOf(env, event.transactionId ?? "") ?? event.id;
  // All-day times are midnights in UTC, whatever their zone.
  if (isAllDay) return { uid, ...wholeDays(start.dateTime.slice(0, 10), end.dateTime.slice(0, 10), zone) };
  return { uid, from: instantOf(start), to: instantOf(end) };
}
