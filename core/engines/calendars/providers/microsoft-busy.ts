import type { Env } from "../../../platform/env.ts";
import type { OutboundAnswer } from "../../../platform/outbound.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { isGone } from "../authorised-calls.ts";
import { type BusyInstance, busyObjects, overlapWith, wholeDays } from "../busy-objects.ts";
import { calendarAt, eventAt, type GraphEvent, graphPages, instantOf, uidOf } from "./graph.ts";
import type { BusyAnswer, BusyQuestion, ProviderAccount } from "./provider.ts";

const busyFields = "id,type,seriesMasterId,start,end,isAllDay,isCancelled,showAs,responseStatus,transactionId";

/**
 * Changes name events and series. The busy time of a series is read from its instances, because its changes include neither how an
 * occurrence is shown nor which occurrence was deleted.
 */
export async function readGraphBusy(
  runtime: Runtime,
  account: ProviderAccount,
  question: BusyQuestion,
): Promise<BusyAnswer> {
  const since = question.known && (await changesSince(runtime, account, { question, ...question.known }));
  return since ?? readWhole(runtime, account, { question, mark: await newMark(runtime, account, question) });
}

async function readWhole(
  runtime: Runtime,
  account: ProviderAccount,
  { question, mark }: { question: BusyQuestion; mark: string | null },
): Promise<BusyAnswer> {
  const path = `${calendarAt(question.calendarId)}/calendarView`;
  return {
    mark,
    isWhole: true,
    changed: busyObjects(await instancesAt(runtime, account, { question, path })),
    removed: [],
  };
}

/** The delta link after a whole round of changes, whose content is ignored: later changes come after it. */
async function newMark(runtime: Runtime, account: ProviderAccount, question: BusyQuestion): Promise<string | null> {
  const first = `${calendarAt(question.calendarId)}/calendarView/delta?${windowOf(question)}`;
  return (await graphPages<GraphEvent>(runtime, account, { first })).deltaLink;
}

/** The changes since a delta link; undefined if Graph has dropped the link. */
async function changesSince(
  runtime: Runtime,
  account: ProviderAccount,
  asked: { question: BusyQuestion; mark: string; tags(): Promise<Map<string, string>> },
): Promise<BusyAnswer | undefined> {
  const { question, mark } = asked;
  const round = await graphPages<GraphEvent>(runtime, account, { first: mark, refuses: isLost });
  if (round.isRefused) return undefined;
  const gone = new Set(round.items.filter((event) => event["@removed"]).map(({ id }) => id));
  const known = gone.size > 0 ? await asked.tags() : undefined;
  // The deletion of an occurrence doesn't name its series.
  if (known && [...gone].some((id) => !known.has(id)))
    return readWhole(runtime, account, { question, mark: round.deltaLink });
  const events = round.items.filter(({ id }) => !gone.has(id));
  const series = new Set(events.filter(isOfSeries).map(({ id, seriesMasterId }) => seriesMasterId ?? id));
  const read = events.filter((event) => !isOfSeries(event)).map((event) => instanceOf(runtime, event, question));
  for (const id of series) {
    const instances = await instancesAt(runtime, account, { question, path: `${eventAt(id)}/instances` });
    if (instances.length === 0) gone.add(id);
    else read.push(...instances);
  }
  return { mark: round.deltaLink, isWhole: false, changed: busyObjects(read), removed: [...gone] };
}

function isOfSeries({ type, seriesMasterId }: GraphEvent): boolean {
  return type === "seriesMaster" || Boolean(seriesMasterId);
}

/** A dropped delta link: the error codes differ between mailboxes. */
function isLost({ status, body }: OutboundAnswer): boolean {
  return status === 410 || (status >= 400 && status < 500 && /syncState|resync|fullSync/i.test(body.toString("utf8")));
}

/** The instances in the window; none if the resource is gone. */
async function instancesAt(
  runtime: Runtime,
  account: ProviderAccount,
  { question, path }: { question: BusyQuestion; path: string },
): Promise<BusyInstance[]> {
  const first = `${path}?${windowOf(question)}&$select=${busyFields}&$top=1000`;
  const { items } = await graphPages<GraphEvent>(runtime, account, { first, refuses: isGone });
  return items.map((event) => instanceOf(runtime, event, question));
}

function windowOf({ from, to }: BusyQuestion): string {
  const [startDateTime, endDateTime] = [from, to].map((ms) => new Date(ms).toISOString()) as [string, string];
  return new URLSearchParams({ startDateTime, endDateTime }).toString();
}

function instanceOf({ env }: Runtime, event: GraphEvent, question: BusyQuestion): BusyInstance {
  return { objectId: event.seriesMasterId ?? event.id, taken: takenBy(env, event, question) };
}

function takenBy(env: Env, event: GraphEvent, question: BusyQuestion): BusyInstance["taken"] {
  const { start, end, isAllDay, isCancelled, showAs = "busy", responseStatus } = event;
  const isFree = ["free", "workingElsewhere"].includes(showAs);
  if (isCancelled || isFree || responseStatus?.response === "declined") return undefined;
  const uid = uidOf(env, event.transactionId ?? "") ?? event.id;
  const stretch = isAllDay
    ? // All-day times are midnights in UTC, whatever their zone.
      wholeDays(start.dateTime.slice(0, 10), end.dateTime.slice(0, 10), question.zone)
    : { from: instantOf(start), to: instantOf(end) };
  return overlapWith({ ...stretch, uid }, question);
}
